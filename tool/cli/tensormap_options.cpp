// Converts the options to a specification.
#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "cli/tensormap.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "tma/banks.hpp"
#include "tma/sizes.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

[[noreturn]] void bad_option(std::string_view option, const std::string& got, std::string needed,
                             std::string mend = {}) {
  fail(ErrorCode::usage, "tensormap: --" + std::string(option), "'" + display_text(got) + "'", needed, mend);
}

/// A whole decimal or 0x... number.
template <class T>
bool parse(std::string_view text, T& value) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::vector<std::int64_t> list(std::string_view option, const std::string& text) {
  std::vector<std::int64_t> values;
  if (text.empty()) return values;
  for (const std::string& part : split_list(text)) {
    if (!parse(part, values.emplace_back()))
      bad_option(option, text, "whole numbers separated by commas, innermost dimension first, for example 32,160,92");
  }
  return values;
}

std::int64_t number(std::string_view option, const std::string& text) {
  std::int64_t value = 0;
  if (!parse(text, value)) bad_option(option, text, "a whole number");
  return value;
}

/// The value of an enumeration with `count` of them.
template <class Enum>
Enum named(std::string_view option, const std::string& text, std::optional<Enum> (*parse_name)(std::string_view),
           std::size_t count) {
  if (const std::optional<Enum> value = parse_name(text)) return *value;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(tma::to_string(static_cast<Enum>(i)));
  bad_option(option, text, "one of " + joined(names), did_you_mean(text, names));
}

/// The convolution that the options describe; without --filter it is empty.
tma::Convolution to_convolution(const TensorMapOptions& options, const tma::TensorMapSpec& spec) {
  tma::Convolution convolution;
  if (options.filter.empty()) {
    for (const auto& [name, text] : {std::pair("padding", &options.padding), std::pair("dilation", &options.dilation),
                                     std::pair("convolution-strides", &options.convolution_strides)})
      if (!text->empty()) bad_option(name, *text, "--filter beside it: corners follow from the whole convolution");
    return convolution;
  }
  if (spec.dims.size() < 3)
    bad_option("filter", options.filter, "a tensor of 3 to 5 dimensions: channels, W, H, ..., N");
  for (const auto& [name, text] :
       {std::pair("lower-corner", &options.lower_corner), std::pair("upper-corner", &options.upper_corner),
        std::pair("element-strides", &options.element_strides)})
    if (!text->empty()) bad_option(name, *text, "either --filter or this option, which follows from it");
  const std::size_t axes = spec.dims.size() - 2;
  const auto read = [&](const char* name, const std::string& text, std::int64_t otherwise, std::int64_t least) {
    std::vector<std::int64_t> values = text.empty() ? std::vector(axes, otherwise) : list(name, text);
    if (values.size() != axes ||
        std::ranges::any_of(values, [&](auto value) { return value < least || value > 65535; }))
      bad_option(name, text, std::to_string(axes) + " numbers from " + std::to_string(least) + " to 65535, W first");
    return values;
  };
  convolution.filter = read("filter", options.filter, 1, 1);
  convolution.padding = read("padding", options.padding, 0, 0);
  convolution.strides = read("convolution-strides", options.convolution_strides, 1, 1);
  convolution.dilation = read("dilation", options.dilation, 1, 1);
  return convolution;
}

std::string options_text(const tma::TensorMapSpec& spec, int compute_capability, const tma::TileLoad* load) {
  std::string text = spec.text();
  if (compute_capability != tma::kHopper)
    text += " --arch " + std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
  if (load == nullptr) return text;
  if (!load->coordinates.empty()) text += " --at " + tma::comma_list(load->coordinates);
  if (load->shared_address != 0) text += " --base " + tma::hex(load->shared_address);
  return text;
}

/// One load of four rows needs a box of one, and comes with compute capability 10.0 (PTX ISA, .tile::gather4).
void check_gather4(const TensorMapAnswer& answer) {
  const tma::TensorMapSpec& spec = answer.spec;
  if (spec.mode != tma::Mode::tiled || spec.dims.size() != 2 || spec.box.size() != 2 || spec.box[1] != 1)
    bad_option("gather4", spec.text(), "a tiled map of two dimensions with a box of one row: --box 64,1");
  if (answer.compute_capability < 100) bad_option("gather4", spec.text(), "--arch 10.0 or newer");
  if (answer.load_given) bad_option("gather4", spec.text(), "no --at: only the bytes of such a load are known");
}

std::vector<std::int64_t> to_offsets(const TensorMapOptions& options, const tma::TensorMapSpec& spec) {
  if (spec.mode != tma::Mode::im2col || spec.dims.size() < 3 || spec.dims.size() > 5) {
    if (!options.offsets.empty())
      bad_option("offsets", options.offsets, "an im2col map (--filter, or --lower-corner and so on)");
    return {};
  }
  const std::size_t axes = spec.dims.size() - 2;
  const std::int64_t most = axes == 1 ? 65535 : axes == 2 ? 255 : 31;
  const auto offsets = options.offsets.empty() ? std::vector<std::int64_t>(axes) : list("offsets", options.offsets);
  if (offsets.size() != axes ||
      std::ranges::any_of(offsets, [&](std::int64_t offset) { return offset < 0 || offset > most; }))
    bad_option("offsets", options.offsets,
               std::to_string(axes) + " numbers from 0 to " + std::to_string(most) +
                   ": the filter's tap times the dilation, W first");
  return offsets;
}

void examine_load(TensorMapAnswer& answer) {
  answer.barrier_bytes = tma::transaction_bytes(answer.spec) * (answer.gather4 ? 4 : 1);
  if (answer.gather4) {
    answer.not_modelled = "gather4";
  } else if (answer.spec.mode == tma::Mode::im2col && answer.spec.interleave == tma::Interleave::none) {
    answer.pixels = tma::im2col_pixels(answer.spec, answer.load.coordinates, answer.offsets);
  } else {
    try {
      answer.picture = draw(answer.spec, answer.load);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::tile_not_modelled) throw;
      answer.not_modelled = error.details().got;
      return;
    }
    const auto lanes = tma::column_access(answer.spec, answer.load, 0, 0, 8);
    if (answer.spec.swizzle == tma::Swizzle::b128_atom32_flip8) answer.column_bytes = 8;
    answer.column_wavefronts = tma::bank_use(lanes, answer.column_bytes).wavefronts;
    answer.column_lanes = static_cast<int>(std::min<std::int64_t>(8, answer.picture->layout.rows));
  }
}

}  // namespace

tma::TensorMapSpec to_spec(const TensorMapOptions& options) {
  tma::TensorMapSpec spec;
  spec.dtype = named<tma::ElementType>("dtype", options.dtype, tma::parse_element_type, 16);
  spec.dims = list("dims", options.dims);
  spec.box = list("box", options.box);
  spec.strides = options.strides.empty() ? tma::dense_strides(spec.dtype, spec.dims) : list("strides", options.strides);
  spec.element_strides = list("element-strides", options.element_strides);
  spec.interleave = named<tma::Interleave>("interleave", options.interleave, tma::parse_interleave, 3);
  spec.swizzle = named<tma::Swizzle>("swizzle", options.swizzle, tma::parse_swizzle, 7);
  spec.l2_promotion = named<tma::L2Promotion>("l2-promotion", options.l2_promotion, tma::parse_l2_promotion, 4);
  spec.fill = named<tma::Fill>("fill", options.fill, tma::parse_fill, 2);
  if (!options.address.empty() && !parse(options.address, spec.address))
    bad_option("address", options.address, "an address such as 0x7f0000000000");
  const tma::Convolution convolution = to_convolution(options, spec);
  const bool im2col = !convolution.filter.empty() || !options.lower_corner.empty() || !options.upper_corner.empty() ||
                      !options.channels_per_pixel.empty() || !options.pixels_per_column.empty();
  if (im2col) {
    if (!options.box.empty())
      bad_option("box", options.box, "either --box, or the four options of an im2col map (--lower-corner and so on)");
    spec.mode = tma::Mode::im2col;
    if (convolution.filter.empty()) {
      spec.lower_corner = list("lower-corner", options.lower_corner);
      spec.upper_corner = list("upper-corner", options.upper_corner);
    } else {
      set_window(spec, convolution);
    }
    spec.channels_per_pixel = number("channels-per-pixel", options.channels_per_pixel);
    spec.pixels_per_column = number("pixels-per-column", options.pixels_per_column);
  }
  return spec;
}

int to_compute_capability(const std::string& text) {
  int major = 0;
  int minor = 0;
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos || !parse(std::string_view(text).substr(0, dot), major) ||
      !parse(std::string_view(text).substr(dot + 1), minor) || major < 9 || major > 99 || minor < 0 || minor > 9)
    bad_option("arch", text, "a compute capability of 9.0 or newer, for example 9.0 or 10.0");
  return major * 10 + minor;
}

tma::TileLoad to_load(const TensorMapOptions& options, const tma::TensorMapSpec& spec) {
  tma::TileLoad load;
  load.coordinates = options.at.empty() ? std::vector<std::int64_t>(spec.dims.size()) : list("at", options.at);
  if (options.at.empty() && spec.lower_corner.size() + 2 == spec.dims.size())  // the window's first pixel
    std::ranges::copy(spec.lower_corner, load.coordinates.begin() + 1);
  if (!parse(options.base, load.shared_address) || load.shared_address >= (1U << 28))
    bad_option("base", options.base, "an address in shared memory, for example 0 or 0x400");
  return load;
}

std::string command_line(const TensorMapAnswer& answer) {
  std::string text = options_text(answer.spec, answer.compute_capability, answer.load_given ? &answer.load : nullptr);
  if (answer.null_address) text += " --address 0";
  if (answer.gather4) text += " --gather4";
  const bool tap = std::ranges::any_of(answer.offsets, [](std::int64_t offset) { return offset != 0; });
  return tap ? text + " --offsets " + tma::comma_list(answer.offsets) : text;
}

std::string proposal_line(const TensorMapAnswer& answer) {
  if (!answer.report.proposal) return "";
  const tma::TensorMapSpec& proposed = answer.report.proposal->spec;
  tma::TileLoad load = answer.load;
  const std::vector<std::int64_t> reversed(answer.spec.dims.rbegin(), answer.spec.dims.rend());
  if (proposed.dims != answer.spec.dims && proposed.dims == reversed) std::ranges::reverse(load.coordinates);
  const bool keep = answer.load_given && tma::check(proposed, load).valid();
  return options_text(proposed, answer.compute_capability, keep ? &load : nullptr);
}

TensorMapAnswer examine(const DumpedMap& map, const TensorMapOptions& options) {
  TensorMapAnswer answer;
  answer.spec = map.spec;
  answer.null_address = map.null_address;
  answer.load = to_load(options, answer.spec);
  answer.compute_capability = to_compute_capability(options.architecture);
  answer.load_given = !options.at.empty() || options.base != "0";
  answer.gather4 = options.gather4;
  answer.offsets = to_offsets(options, answer.spec);
  if (answer.gather4) check_gather4(answer);
  answer.report = tma::check(answer.spec, answer.compute_capability);
  if (!answer.report.valid()) return answer;
  answer.load_report = tma::check(answer.spec, answer.load);
  if (answer.load_report.valid()) examine_load(answer);
  return answer;
}

TensorMapAnswer examine(const TensorMapOptions& options) {
  DumpedMap map{.spec = to_spec(options)};
  map.null_address = !options.address.empty() && map.spec.address == 0;
  return examine(map, options);
}

}  // namespace tmaops::cli
