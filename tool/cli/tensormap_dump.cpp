// Reads the tensor maps that a framework printed when one could not be made, as their logs have them:
//   CUTLASS and what is built on it (FlashAttention, vLLM, SGLang): a line each for format, dim, gmem_address,
//   globalDim ... TileLang (SGLang, vLLM) too: lists in brackets, numbers with their names behind them, im2col maps.
//   Of an im2col map CUTLASS prints nothing but its assertion
//   FlashInfer and TensorRT-LLM (vLLM and SGLang too): tmaFormat, dim, gmem, Shape, Stride, tileShapes ...
//   DeepGEMM, with DG_JIT_DEBUG=1: Making TMA desc: global memory: ...
#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <sstream>

#include "cli/tensormap.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"

namespace tmaops::cli {
namespace {

using Numbers = std::vector<std::int64_t>;

[[noreturn]] void bad_dump(std::size_t line, const std::string& got, const std::string& needed) {
  fail(ErrorCode::usage, "tensormap: --dump, line " + std::to_string(line), display_text(got), needed);
}

/// Numbers between anything else; what is too large for 64 bits, as garbage behind a list may be, is the largest.
Numbers numbers(const std::string& text) {
  static const std::regex number("0[xX][0-9a-fA-F]+|-?[0-9]+");
  Numbers values;
  for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at) {
    const std::string word = at->str();
    values.push_back(std::strtoll(word.c_str(), nullptr, word.find_first_of("xX") == std::string::npos ? 10 : 16));
  }
  return values;
}

/// What one dump says, by the field's name in CUTLASS.
class Fields {
 public:
  explicit Fields(std::size_t line) : line_(line) {}
  void set(const std::string& name, const std::string& text) { values_[name] = numbers(text); }
  bool has(const std::string& name) const { return values_.contains(name); }
  std::size_t line() const { return line_; }
  const Numbers& list(const std::string& name) const {
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
    bad_dump(line_, "a tensor map without " + name, "all of its fields: is the text complete?");
  }
  std::int64_t number(const std::string& name, std::int64_t most) const {
    const Numbers& values = list(name);
    if (values.size() != 1 || values[0] < 0 || values[0] > most)
      bad_dump(line_, name + " " + (values.empty() ? "empty" : std::to_string(values[0])),
               "a number from 0 to " + std::to_string(most));
    return values[0];
  }
  /// The first `count` entries: lists are padded to five.
  Numbers first(const std::string& name, std::size_t count) const {
    const Numbers& values = list(name);
    if (values.size() < count)
      bad_dump(line_, name + " with " + std::to_string(values.size()) + " entries",
               std::to_string(count) + " or more, as dim says");
    return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  std::size_t line_;
  std::map<std::string, Numbers> values_{};
};

DumpedMap to_map(const Fields& fields) {
  if (fields.has("assertion"))
    bad_dump(fields.line(), "an im2col map of which CUTLASS prints an assertion and no field",
             "the map as options: tmaops tensormap --dtype T --dims C,W,H,N --lower-corner W,H --upper-corner W,H "
             "--element-strides 1,W,H,1 --channels-per-pixel N --pixels-per-column N --swizzle S");
  DumpedMap map{.line = fields.line()};
  const auto rank = static_cast<std::size_t>(fields.number("dim", 5));
  map.spec.dtype = static_cast<tma::ElementType>(fields.number("format", 15));
  const Numbers& address = fields.list("gmem_address");
  map.null_address = address.empty() || address[0] == 0;
  if (!map.null_address) map.spec.address = static_cast<std::uint64_t>(address[0]);
  map.spec.dims = fields.first("globalDim", rank);
  if (fields.has("smem_box_channel")) {
    map.spec.mode = tma::Mode::im2col;
    map.spec.lower_corner = fields.first("pixelBoxLowerCorner", std::max<std::size_t>(rank, 2) - 2);
    map.spec.upper_corner = fields.first("pixelBoxUpperCorner", map.spec.lower_corner.size());
    map.spec.channels_per_pixel = fields.number("smem_box_channel", 0xffffffff);
    map.spec.pixels_per_column = fields.number("smem_box_pixel", 0xffffffff);
  } else {
    map.spec.box = fields.first("boxDim", rank);
  }
  // CUTLASS prints a list that begins with the size of an element, which the driver does not get.
  Numbers strides = fields.list("globalStrides");
  if (!fields.has("strides as given") && strides.size() >= rank && !strides.empty()) strides.erase(strides.begin());
  if (strides.size() + 1 < rank) fields.first("globalStrides", rank);
  strides.resize(std::max<std::size_t>(rank, 1) - 1);
  map.spec.strides = std::move(strides);
  map.spec.element_strides = fields.first("elementStrides", rank);
  map.spec.swizzle = static_cast<tma::Swizzle>(fields.number("swizzle", 6));
  if (fields.has("interleave")) map.spec.interleave = static_cast<tma::Interleave>(fields.number("interleave", 2));
  if (fields.has("l2Promotion")) map.spec.l2_promotion = static_cast<tma::L2Promotion>(fields.number("l2Promotion", 3));
  if (fields.has("oobFill")) map.spec.fill = static_cast<tma::Fill>(fields.number("oobFill", 1));
  return map;
}

/// DeepGEMM names the size of an element alone, its outer strides in elements, its swizzle in bytes.
DumpedMap of_deep_gemm(const std::smatch& found, std::size_t line) {
  DumpedMap map{.line = line};
  map.spec.dims = numbers(found[1]);
  map.spec.box = numbers(found[2]);
  const std::int64_t size = numbers(found[6]).at(0);
  map.spec.dtype = size == 1   ? tma::ElementType::u8
                   : size == 2 ? tma::ElementType::bf16
                   : size == 4 ? tma::ElementType::f32
                               : tma::ElementType::f64;
  for (const std::int64_t stride : numbers(found[3])) map.spec.strides.push_back(stride * size);
  const std::string swizzle = found[4].str() == "0" ? "none" : found[4].str() + "B";
  const std::string atom =
      found[5].matched && found[5].str() != "0" && found[5].str() != "16" ? "_ATOM_" + found[5].str() + "B" : "";
  const auto parsed = tma::parse_swizzle(swizzle + atom);
  if (!parsed) bad_dump(line, "swizzle " + swizzle + atom, "0, 32, 64 or 128 bytes");
  map.spec.swizzle = *parsed;
  map.spec.l2_promotion = tma::L2Promotion::b256;
  map.spec.element_strides.assign(map.spec.dims.size(), 1);
  return map;
}

}  // namespace

Dump read_dump(const std::string& text) {
  static const std::regex field(
      "(?:^|[\\])}:\\s])(format|tensorDataType|dim|tensorRank|gmem_address|globalDim|globalStrides|boxDim|"
      "smem_box_pixel|smem_box_channel|pixelBoxLowerCorner|pixelBoxUpperCorner|"
      "elementStrides|interleave|swizzle|l2Promotion|oobFill)(?:Raw)?\\s+"
      "([(\\[]?(?:0[xX])?[-0-9a-fA-F, ]+[)\\]]?)(?:\\s*\\([A-Za-z].*\\))?\\s*$");
  static const std::regex head("tmaFormat:\\s*(\\d+)\\s+dim:\\s*(\\d+)\\s+gmem:\\s*(0[xX][0-9a-fA-F]+|\\d+|\\(nil\\))");
  static const std::regex row("(Shape|Stride|tileShapes|tileStrides|swizzleType):\\s*([-0-9 ]+?)\\s*$");
  static const std::regex deep_gemm(
      "TMA desc: global memory: ([-\\d ]+), shared memory: ([-\\d ]+), outer stride: ([-\\d ]+), swizzle: (\\d+)"
      "(?: \\(base: (\\d+)\\))?,? elem size: (\\d+)");
  static const std::regex answer("initialize the TMA descriptor\\s+(\\d+)");
  static const std::map<std::string, std::string> names = {
      {"tensorDataType", "format"}, {"tensorRank", "dim"},    {"Shape", "globalDim"},
      {"Stride", "globalStrides"},  {"tileShapes", "boxDim"}, {"tileStrides", "elementStrides"},
      {"swizzleType", "swizzle"}};
  const auto name_of = [&](const std::string& word) { return names.contains(word) ? names.at(word) : word; };
  Dump dump;
  std::vector<std::pair<std::string, Fields>> open;  // with what stands before their lines: ranks write at one time
  const auto add = [&](DumpedMap map) {
    const auto same = [&](const DumpedMap& one) {
      return one.spec == map.spec && one.null_address == map.null_address;
    };
    if (std::ranges::none_of(dump.maps, same)) dump.maps.push_back(std::move(map));
  };
  const auto of_prefix = [&](const std::string& prefix) {  // prefixes with the time are never the same
    auto at = std::ranges::find(open.rbegin(), open.rend(), prefix, [](const auto& one) { return one.first; });
    return at != open.rend() ? &at->second : &open.back().second;
  };
  std::istringstream lines(text);
  std::size_t number = 0;
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find("copy_traits_sm90_im2col") != std::string::npos && line.find("Assertion") != std::string::npos)
      open.emplace_back(line, number).second.set("assertion", "");
    if (line.size() > 1000) continue;  // no dump has such lines
    if (std::regex_search(line, found, answer)) {
      const auto code = static_cast<int>(std::min<std::int64_t>(numbers(found[1]).at(0), 99999));
      if (std::ranges::find(dump.codes, code) == dump.codes.end()) dump.codes.push_back(code);
    } else if (std::regex_search(line, found, deep_gemm)) {
      add(of_deep_gemm(found, number));
    } else if (std::regex_search(line, found, head)) {
      Fields& map = open.emplace_back(found.prefix(), number).second;
      map.set("format", found[1]);
      map.set("dim", found[2]);
      map.set("gmem_address", found[3]);
      map.set("strides as given", "");
    } else if (std::regex_search(line, found, field) || std::regex_search(line, found, row)) {
      const std::string name = name_of(found[1]);
      if (name == "format") open.emplace_back(found.prefix(), number);
      if (!open.empty())  // else prose, or the end of a map whose beginning is not here
        of_prefix(found.prefix())->set(name, found[2]);
    }
  }
  for (const auto& [prefix, fields] : open) {
    try {
      add(to_map(fields));
    } catch (const Error& error) {
      dump.not_read.push_back("line " + std::to_string(fields.line()) + ": not read: " + error.details().got);
    }
  }
  if (dump.maps.empty() && !open.empty()) to_map(open.front().second);  // throws again
  if (dump.maps.empty())
    fail(ErrorCode::usage, "tensormap: --dump", std::to_string(number) + " lines without a tensor map",
         "what CUTLASS or TileLang (format, dim ...), FlashInfer (tmaFormat: ...) or DeepGEMM (Making TMA desc: ...) "
         "prints");
  return dump;
}

}  // namespace tmaops::cli
