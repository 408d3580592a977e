// What `tmaops tensormap` found, as text and as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/cuda_results.hpp"
#include "cli/tensormap.hpp"
#include "core/spelling.hpp"
#include "offers/console.hpp"
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

std::string barrier_text(const TensorMapAnswer& answer) {
  return "barrier   expects " + std::to_string(answer.barrier_bytes) + " bytes (expect_tx), inside or outside" +
         (answer.gather4 ? ", of four rows" : "") + (is_packed(answer.spec.dtype) ? ", without gaps" : "") + "\n";
}

std::size_t inside_of(const std::vector<tma::Pixel>& pixels) {
  return static_cast<std::size_t>(std::ranges::count_if(pixels, &tma::Pixel::inside));
}

/// The window of base pixels, and the pixels of the load, a line for each row of the window.
std::string pixels_text(const TensorMapAnswer& answer) {
  const tma::TensorMapSpec& spec = answer.spec;
  constexpr std::size_t kMostShown = 256;
  std::string text = "window   ";
  for (std::size_t i = 0; i < spec.lower_corner.size(); ++i)
    text += " " + std::string(1, "WHD"[i]) + " " + std::to_string(spec.lower_corner[i]) + " to " +
            std::to_string(spec.dims[i + 1] - 1 + spec.upper_corner[i]) + (i + 1 < spec.lower_corner.size() ? "," : "");
  const std::size_t inside = inside_of(answer.pixels);
  text += "\n" + barrier_text(answer) + "load      at " + tma::comma_list(answer.load.coordinates) + ", offsets " +
          tma::comma_list(answer.offsets) + ": " + std::to_string(answer.pixels.size()) + " pixels of " +
          std::to_string(spec.channels_per_pixel) + " channels, " + std::to_string(answer.pixels.size() - inside) +
          " of them fill (" + std::string(to_string(spec.fill)) +
          ")\n\nPixels in the order of shared memory, W first, the image last (* fill):";
  for (std::size_t i = 0; i < answer.pixels.size() && i < kMostShown; ++i) {
    const tma::Pixel& pixel = answer.pixels[i];
    const bool new_row = i == 0 || pixel.image != answer.pixels[i - 1].image ||
                         pixel.at[1] != answer.pixels[i - 1].at[1] || pixel.at[2] != answer.pixels[i - 1].at[2];
    text += new_row ? "\n" : "  ";
    text += tma::comma_list(std::span(pixel.at).first(spec.lower_corner.size())) + "," + std::to_string(pixel.image) +
            (pixel.inside ? "" : "*");
  }
  if (answer.pixels.size() > kMostShown)
    text += "\n... " + std::to_string(answer.pixels.size() - kMostShown) + " more pixels";
  return text + "\n";
}

std::string tile_text(const TensorMapAnswer& answer) {
  const tma::TileLayout& tile = answer.picture->layout;
  std::string text = "tile      " + joined(std::span(tile.loaded).first(static_cast<std::size_t>(tile.rank)), " x ") +
                     " elements, " + std::to_string(tile.rows) + (tile.rows == 1 ? " row of " : " rows of ") +
                     std::to_string(tile.row_bytes) + " B";
  if (tile.row_pitch != tile.row_bytes) text += ", one every " + std::to_string(tile.row_pitch) + " B";
  text += "\n" + barrier_text(answer);
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

Json picture_json(const Picture& picture) {
  Json lines = Json::array();
  const auto rank = static_cast<std::size_t>(picture.layout.rank);
  for (const Line& line : picture.lines) {
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

Json to_json(const TensorMapAnswer& answer) {
  Json json{{"valid", answer.report.valid() && !answer.null_address},
            {"null_address", answer.null_address},
            {"specification", spec_json(answer.spec, command_line(answer))},
            {"findings", findings_json(answer.report)},
            {"proposal", nullptr},
            {"load", nullptr}};
  if (answer.report.proposal)
    json["proposal"] = {{"change", answer.report.proposal->change},
                        {"specification", spec_json(answer.report.proposal->spec, proposal_line(answer))}};
  if (answer.report.valid()) {
    Json load{{"valid", answer.load_report.valid()},          {"coordinates", answer.load.coordinates},
              {"shared_address", answer.load.shared_address}, {"findings", findings_json(answer.load_report)},
              {"transaction_bytes", answer.barrier_bytes},    {"tile", nullptr}};
    if (!answer.pixels.empty()) {
      load["offsets"] = answer.offsets;
      load["pixels_inside"] = inside_of(answer.pixels);
      load["pixels"] = Json::array();
      for (const tma::Pixel& pixel : answer.pixels) {
        std::vector<std::int64_t> at(pixel.at.begin(), pixel.at.begin() + answer.spec.rank() - 2);
        at.push_back(pixel.image);
        load["pixels"].push_back(std::move(at));
      }
    }
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
  return json;
}

/// What else a log has: maps that were not read, and what the driver's answers mean.
std::string rest_text(const Dump& dump) {
  std::string text;
  for (const std::string& one : dump.not_read) text += one + "\n";
  for (const int code : dump.codes) {
    text += "the log names " + std::to_string(code);
    if (const CudaResult* result = find_cuda_result(code))
      text += ", " + std::string(result->driver.empty() ? result->runtime : result->driver) + ": " +
              std::string(result->cause) + "\n";
    else
      text += ", not 1, the answer to a wrong map: the map is seldom to blame\n";
  }
  return text;
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

std::string text_of(const TensorMapAnswer& answer, bool color, bool picture) {
  std::string text = command_line(answer) + "\n";
  const std::string null_text =
      answer.null_address
          ? "  " + styled("error:", Style::bad, color) +
                " the address is null: drivers answer CUDA_ERROR_INVALID_VALUE, and encode() refuses it" +
                styled(" [E016]", Style::faint, color) + "\n"
          : "";
  if (!answer.report.valid() || answer.null_address) {
    text += styled("not valid", Style::bad, color) + "\n" + null_text + report_text(answer.report, color);
    if (answer.report.proposal)
      text += styled("valid instead", Style::good, color) + ": " + answer.report.proposal->change +
              "\n  tmaops tensormap " + proposal_line(answer) + "\n";
    return text;
  }
  text += styled("valid", Style::good, color) + "\n" + report_text(answer.report, color);
  if (!answer.load_report.valid())
    return text + styled("this load would fault", Style::bad, color) + "\n" + report_text(answer.load_report, color);
  text += report_text(answer.load_report, color);
  if (!answer.pixels.empty()) return text + pixels_text(answer);
  if (!answer.picture) return text + barrier_text(answer) + "no picture: " + answer.not_modelled + " is not modelled\n";
  text += tile_text(answer);
  if (!picture) return text;
  text +=
      "\nShared memory, 128 bytes a line; a cell is 16 bytes, named by the tile index of its first element"
      " (* fill, + partly fill):\n";
  return text + picture_text(*answer.picture, color);
}

std::string json_of(const TensorMapAnswer& answer) { return to_json(answer).dump(2) + "\n"; }

std::string text_of(const Dump& dump, const std::vector<TensorMapAnswer>& answers, bool color) {
  std::string text;
  for (std::size_t i = 0; i < answers.size(); ++i)
    text +=
        (i > 0 ? "\nline " : "line ") + std::to_string(dump.maps[i].line) + ": " + text_of(answers[i], color, false);
  const std::string rest = rest_text(dump);
  return rest.empty() ? text : text + "\n" + rest;
}

std::string json_of(const Dump& dump, const std::vector<TensorMapAnswer>& answers) {
  Json json{{"codes", dump.codes}, {"not_read", dump.not_read}, {"maps", Json::array()}};
  for (std::size_t i = 0; i < answers.size(); ++i) {
    json["maps"].push_back(to_json(answers[i]));
    json["maps"].back()["line"] = dump.maps[i].line;
  }
  return json.dump(2) + "\n";
}

}  // namespace tmaops::cli
