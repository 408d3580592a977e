#include "cli/tile_picture.hpp"

#include <algorithm>

#include "tma/sizes.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

// Pale backgrounds that stay apart for most colour-blind readers: number in the 256-colour table, and as RGB.
struct Tint {
  int terminal;
  const char* rgb;
};
constexpr std::array<Tint, 8> kTints = {{{153, "#afd7ff"},
                                         {223, "#ffd7af"},
                                         {158, "#afffd7"},
                                         {225, "#ffd7ff"},
                                         {229, "#ffffaf"},
                                         {189, "#d7d7ff"},
                                         {252, "#d0d0d0"},
                                         {217, "#ffafaf"}}};

const Tint& tint_of(const Chunk& chunk) { return kTints[static_cast<std::size_t>(chunk.row) % kTints.size()]; }

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

std::string rectangle(std::size_t x, std::size_t y, std::size_t width, std::size_t height, const char* fill) {
  return "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" + std::to_string(width) +
         "\" height=\"" + std::to_string(height) + "\" fill=\"" + fill + "\" stroke=\"#888\"/>";
}

std::string words(std::size_t x, std::size_t y, const std::string& text, const char* anchor = "middle") {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" text-anchor=\"" + anchor + "\">" +
         escaped(text) + "</text>";
}

}  // namespace

Picture draw(const tma::TensorMapSpec& spec, const tma::TileLoad& load) {
  Picture picture;
  picture.layout = tma::tile_layout(spec);
  tma::require_valid(spec, load);
  const tma::TileLayout& layout = picture.layout;
  for (std::int64_t offset = 0; offset < layout.footprint; offset += 128)
    picture.lines.push_back({load.shared_address + static_cast<std::uint32_t>(offset), {}});
  const std::int64_t per_chunk = 16 / layout.element_bytes;
  for (std::int64_t i = 0; i < tile_size(layout); ++i) {
    const tma::TileElement element = tile_element(spec, layout, load, i);
    const std::uint32_t offset = element.shared_address - load.shared_address;
    auto& chunk = picture.lines[offset / 128].chunks[offset % 128 / 16];
    if (!chunk) chunk = Chunk{i / layout.loaded[0], element.index, 0, 0};
    chunk->index[0] = std::min(chunk->index[0], element.index[0] / per_chunk * per_chunk);
    ++chunk->elements;
    (element.inside ? chunk->inside : picture.fill) += 1;
    picture.inside += element.inside ? 1 : 0;
  }
  return picture;
}

std::string label(const Picture& picture, const Chunk& chunk) {
  const auto rank = static_cast<std::size_t>(picture.layout.rank);
  std::string text = tma::comma_list(std::span(chunk.index).first(rank));
  if (chunk.inside == 0)
    text += "*";
  else if (chunk.inside < chunk.elements)
    text += "+";
  return text;
}

std::string picture_text(const Picture& picture, bool color, std::size_t most_lines) {
  std::size_t width = 7;
  for (const Line& line : picture.lines)
    for (const auto& chunk : line.chunks)
      if (chunk) width = std::max(width, label(picture, *chunk).size());
  std::string text = padded("banks", 10);
  for (int cell = 0; cell < 8; ++cell)
    text += padded(std::to_string(4 * cell) + "-" + std::to_string(4 * cell + 3), width) + (cell < 7 ? " " : "");
  while (text.back() == ' ') text.pop_back();
  text += "\n";
  for (std::size_t i = 0; i < picture.lines.size() && i < most_lines; ++i) {
    const Line& line = picture.lines[i];
    std::string row = padded(tma::hex(line.address), 10);
    for (const auto& chunk : line.chunks) {
      const std::string cell = padded(chunk ? label(picture, *chunk) : ".", width);
      if (color && chunk)
        row += (chunk->inside == 0 ? "\033[2;30;48;5;" : "\033[30;48;5;") + std::to_string(tint_of(*chunk).terminal) +
               "m" + cell + "\033[0m ";
      else
        row += cell + " ";
    }
    while (row.back() == ' ') row.pop_back();
    text += row + "\n";
  }
  if (picture.lines.size() > most_lines)
    text += "... " + std::to_string(picture.lines.size() - most_lines) + " more lines of 128 bytes\n";
  return text;
}

std::string picture_svg(const Picture& picture, const std::string& title) {
  constexpr std::size_t cell_width = 84;
  constexpr std::size_t cell_height = 22;
  constexpr std::size_t left = 84;
  constexpr std::size_t top = 56;
  const std::size_t width = left + 8 * cell_width + 10;
  const std::size_t height = top + picture.lines.size() * cell_height + 30;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(width) + "\" height=\"" +
                    std::to_string(height) + "\" viewBox=\"0 0 " + std::to_string(width) + " " +
                    std::to_string(height) + "\" font-family=\"monospace\" font-size=\"11\">\n" +
                    rectangle(0, 0, width, height, "#ffffff") + "\n" + words(10, 20, title, "start") + "\n" +
                    words(10, 46, "banks", "start") + "\n";
  for (std::size_t cell = 0; cell < 8; ++cell)
    svg += words(left + cell * cell_width + cell_width / 2, 46,
                 std::to_string(4 * cell) + "-" + std::to_string(4 * cell + 3)) +
           "\n";
  for (std::size_t i = 0; i < picture.lines.size(); ++i) {
    const std::size_t y = top + i * cell_height;
    svg += words(10, y + 15, tma::hex(picture.lines[i].address), "start") + "\n";
    for (std::size_t cell = 0; cell < 8; ++cell) {
      const auto& chunk = picture.lines[i].chunks[cell];
      const std::size_t x = left + cell * cell_width;
      svg += rectangle(x, y, cell_width, cell_height, chunk ? tint_of(*chunk).rgb : "#f8f8f8");
      if (chunk) svg += words(x + cell_width / 2, y + 15, label(picture, *chunk));
      svg += "\n";
    }
  }
  svg +=
      words(
          10, top + picture.lines.size() * cell_height + 20,
          "Each cell: 16 bytes, named by the tile index of its first element, innermost first. * fill, + partly fill.",
          "start") +
      "\n</svg>\n";
  return svg;
}

}  // namespace tmaops::cli
