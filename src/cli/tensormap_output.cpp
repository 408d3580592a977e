// What `tmaops tensormap` found, as text and as JSON.
#include <nlohmann/json.hpp>

#include "cli/console.hpp"
#include "cli/tensormap.hpp"
#include "core/spelling.hpp"
#include "tma/sizes.hpp"

namespace tmaops::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string findings_text(const std::vector<tma::Finding>& findings, std::string_view word, Style style, bool color) {
  std::string text;
  for (const tma::Finding& finding : findings)
    text += "  " + styled(word, style, color) + " " + finding.text +
            styled(" [" + std::string(finding.rule->id) + "]", Style::faint, color) + "\n";
  return text;
}

std::string report_text(const tma::Report& report, bool color) {
  return findings_text(report.errors, "error:", Style::bad, color) +
         findings_text(report.warnings, "note:", Style::bold, color);
}

std::string tile_text(const TensorMapAnswer& answer) {
  const tma::TileLayout& tile = answer.picture->layout;
  std::string text = "tile      " + joined(std::span(tile.loaded).first(static_cast<std::size_t>(tile.rank)), " x ") +
                     " elements, " + std::to_string(tile.rows) + (tile.rows == 1 ? " row of " : " rows of ") +
                     std::to_string(tile.row_bytes) + " B";
  if (tile.row_pitch != tile.row_bytes) text += ", one every " + std::to_string(tile.row_pitch) + " B";
  text += "\nbarrier   expects " + std::to_string(tile.transaction_bytes) + " bytes (expect_tx), inside or outside\n";
  text += "load      at " + tma::comma_list(answer.load.coordinates) + ": " + std::to_string(answer.picture->inside) +
          " elements of the tensor, " + std::to_string(answer.picture->fill) + " of fill (" +
          std::string(to_string(answer.spec.fill)) + ")\n";
  text += "banks     " + std::to_string(answer.column_lanes) + " lanes that read " +
          std::to_string(answer.column_bytes) + " B of a row each: " + std::to_string(answer.column_wavefronts) +
          (answer.column_wavefronts == 1 ? " wavefront" : " wavefronts") +
          (answer.column_wavefronts > 1 ? ", 1 would do" : "") + "\n";
  return text;
}

Json findings_json(const tma::Report& report) {
  Json list = Json::array();
  for (const auto* findings : {&report.errors, &report.warnings})
    for (const tma::Finding& finding : *findings)
      list.push_back({{"rule", finding.rule->id},
                      {"severity", to_string(finding.rule->severity)},
                      {"text", finding.text},
                      {"source", finding.rule->source}});
  return list;
}

Json spec_json(const tma::TensorMapSpec& spec, const std::string& options) {
  Json json{{"mode", to_string(spec.mode)}, {"dtype", to_string(spec.dtype)}, {"dims", spec.dims}};
  json["strides"] = spec.strides;
  if (spec.mode == tma::Mode::tiled) {
    json["box"] = spec.box;
  } else {
    json["lower_corner"] = spec.lower_corner;
    json["upper_corner"] = spec.upper_corner;
    json["channels_per_pixel"] = spec.channels_per_pixel;
    json["pixels_per_column"] = spec.pixels_per_column;
  }
  json["element_strides"] =
      spec.element_strides.empty() ? std::vector<std::int64_t>(spec.dims.size(), 1) : spec.element_strides;
  json["interleave"] = to_string(spec.interleave);
  json["swizzle"] = to_string(spec.swizzle);
  json["l2_promotion"] = to_string(spec.l2_promotion);
  json["fill"] = to_string(spec.fill);
  json["address"] = spec.address;
  json["options"] = options;
  return json;
}

Json picture_json(const tma::Picture& picture) {
  Json lines = Json::array();
  const auto rank = static_cast<std::size_t>(picture.layout.rank);
  for (const tma::Line& line : picture.lines) {
    Json cells = Json::array();
    for (const auto& chunk : line.chunks) {
      if (!chunk) {
        cells.push_back(nullptr);
        continue;
      }
      cells.push_back({{"row", chunk->row},
                       {"index", std::vector<std::int64_t>(chunk->index.begin(), chunk->index.begin() + rank)},
                       {"elements", chunk->elements},
                       {"inside", chunk->inside}});
    }
    lines.push_back({{"address", line.address}, {"chunks", std::move(cells)}});
  }
  return lines;
}

}  // namespace

std::string rules_table() {
  std::string table =
      "| rule | severity | applies to | the driver | what it says | source |\n"
      "|---|---|---|---|---|---|\n";
  for (const tma::Rule& rule : tma::rules()) {
    table += "| `" + std::string(rule.id) + "` |";
    for (const std::string_view cell :
         {to_string(rule.severity), to_string(rule.scope), to_string(rule.driver), rule.text, rule.source})
      table += " " + std::string(cell) + " |";
    table += "\n";
  }
  return table;
}

std::string text_of(const TensorMapAnswer& answer, bool color) {
  std::string text = command_line(answer) + "\n";
  if (!answer.report.valid()) {
    text += styled("not valid", Style::bad, color) + "\n" + report_text(answer.report, color);
    if (answer.report.proposal)
      text += styled("valid instead", Style::good, color) + ": " + answer.report.proposal->change +
              "\n  tmaops tensormap " + proposal_line(answer) + "\n";
    return text;
  }
  text += styled("valid", Style::good, color) + "\n" + report_text(answer.report, color);
  if (!answer.load_report.valid())
    return text + styled("this load would fault", Style::bad, color) + "\n" + report_text(answer.load_report, color);
  text += report_text(answer.load_report, color);
  if (!answer.picture) return text + "no picture: " + answer.not_modelled + " is not modelled\n";
  text += tile_text(answer);
  text +=
      "\nShared memory, 128 bytes a line; a cell is 16 bytes, named by the tile index of its first element"
      " (* fill, + partly fill):\n";
  return text + tma::picture_text(*answer.picture, color);
}

std::string json_of(const TensorMapAnswer& answer) {
  Json json{{"valid", answer.report.valid()},
            {"specification", spec_json(answer.spec, command_line(answer))},
            {"findings", findings_json(answer.report)},
            {"proposal", nullptr},
            {"load", nullptr}};
  if (answer.report.proposal)
    json["proposal"] = {{"change", answer.report.proposal->change},
                        {"specification", spec_json(answer.report.proposal->spec, proposal_line(answer))}};
  if (answer.report.valid()) {
    Json load{{"valid", answer.load_report.valid()},
              {"coordinates", answer.load.coordinates},
              {"shared_address", answer.load.shared_address},
              {"findings", findings_json(answer.load_report)},
              {"tile", nullptr}};
    if (answer.picture) {
      const tma::TileLayout& tile = answer.picture->layout;
      const auto rank = static_cast<std::size_t>(tile.rank);
      load["tile"] = {{"elements", std::vector<std::int64_t>(tile.loaded.begin(), tile.loaded.begin() + rank)},
                      {"rows", tile.rows},
                      {"row_bytes", tile.row_bytes},
                      {"row_pitch", tile.row_pitch},
                      {"transaction_bytes", tile.transaction_bytes},
                      {"footprint_bytes", tile.footprint},
                      {"elements_inside", answer.picture->inside},
                      {"elements_fill", answer.picture->fill},
                      {"column_lanes", answer.column_lanes},
                      {"column_bytes", answer.column_bytes},
                      {"column_wavefronts", answer.column_wavefronts},
                      {"lines", picture_json(*answer.picture)}};
    }
    json["load"] = std::move(load);
  }
  return json.dump(2) + "\n";
}

}  // namespace tmaops::cli
