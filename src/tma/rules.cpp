// The rules as code: each function looks at one part of the specification and reports every violation with its numbers.
#include "tma/rules.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/checks.hpp"
#include "tma/sizes.hpp"

namespace tmaops::tma {
namespace {

constexpr Rule kRules[] = {
#define TMAOPS_TMA_RULE(id, severity, scope, driver, text, source) \
  {#id, Severity::severity, Scope::scope, Driver::driver, text, source},
#include "tma/rules.def"
#undef TMAOPS_TMA_RULE
};

constexpr std::int64_t kLargestDim = std::int64_t{1} << 32;
constexpr std::int64_t kStrideLimit = std::int64_t{1} << 40;
constexpr std::uint64_t kAddressLimit = std::uint64_t{1} << 57;

bool wants_32(const TensorMapSpec& spec) { return spec.interleave == Interleave::b32 || packed_16(spec.dtype); }
std::string why_32(const TensorMapSpec& spec) {
  return packed_16(spec.dtype) ? "type " + std::string(to_string(spec.dtype)) : std::string("interleave 32B");
}

std::string dimension(std::string_view list, std::size_t i, std::int64_t value) {
  return std::string(list) + "[" + std::to_string(i) + "] = " + std::to_string(value);
}

/// The rules assume that every enumerator is a named one.
void check_enumerators(const TensorMapSpec& spec) {
  const ArgumentChecks checks("tensor map");
  checks.enumerator("mode", spec.mode, 2, "tiled or im2col");
  checks.enumerator("dtype", spec.dtype, 16, "an ElementType");
  checks.enumerator("interleave", spec.interleave, 3, "none, b16 or b32");
  checks.enumerator("swizzle", spec.swizzle, 7, "a Swizzle");
  checks.enumerator("l2_promotion", spec.l2_promotion, 4, "none, b64, b128 or b256");
  checks.enumerator("fill", spec.fill, 2, "zero or nan");
}

void check_rank(const TensorMapSpec& spec, Findings& found) {
  const std::string got = "rank " + std::to_string(spec.rank());
  if (spec.mode == Mode::im2col) {
    if (spec.rank() < 3 || spec.rank() > 5) found.add(RuleId::rank_im2col, got + ", im2col takes 3 to 5");
    return;
  }
  if (spec.rank() < 1 || spec.rank() > 5) found.add(RuleId::rank, got + ", a tensor map has 1 to 5 dimensions");
  if (spec.interleave != Interleave::none && spec.rank() < 3)
    found.add(RuleId::rank_interleaved,
              got + " with interleave " + std::string(to_string(spec.interleave)) + ", which takes 3 to 5");
}

void check_lengths(const TensorMapSpec& spec, Findings& found) {
  const std::size_t rank = spec.dims.size();
  const auto expect = [&](std::string_view list, std::size_t got, std::size_t needed) {
    if (got != needed)
      found.add(RuleId::list_lengths, std::string(list) + " has " + std::to_string(got) + " entries, rank " +
                                          std::to_string(rank) + " takes " + std::to_string(needed));
  };
  if (rank == 0) return;  // check_rank() reports it
  expect("strides", spec.strides.size(), rank - 1);
  if (!spec.element_strides.empty()) expect("element_strides", spec.element_strides.size(), rank);
  if (spec.mode == Mode::tiled) {
    expect("box", spec.box.size(), rank);
  } else if (rank >= 3) {
    expect("lower_corner", spec.lower_corner.size(), rank - 2);
    expect("upper_corner", spec.upper_corner.size(), rank - 2);
  }
}

void check_architecture(const TensorMapSpec& spec, int compute_capability, Findings& found) {
  if (compute_capability >= 100) return;
  const std::string has =
      ", not " + std::to_string(compute_capability / 10) + "." + std::to_string(compute_capability % 10);
  if (is_packed(spec.dtype))
    found.add(RuleId::architecture,
              "type " + std::string(to_string(spec.dtype)) + " needs compute capability 10.0" + has);
  if (spec.swizzle >= Swizzle::b128_atom32)
    found.add(RuleId::architecture,
              "swizzle " + std::string(to_string(spec.swizzle)) + " needs compute capability 10.0" + has);
}

void check_address(const TensorMapSpec& spec, Findings& found) {
  if (spec.address == 0) return;
  const std::string got = "address " + hex(spec.address);
  const auto over = [&](std::uint64_t alignment) {
    return got + " is " + std::to_string(spec.address % alignment) + " past a multiple of " + std::to_string(alignment);
  };
  if (spec.address % 16 != 0) found.add(RuleId::address_16, over(16));
  if (spec.address >= kAddressLimit) found.add(RuleId::address_range, got + ", needs less than " + hex(kAddressLimit));
  if (wants_32(spec) && spec.address % 32 != 0) found.add(RuleId::address_32, over(32) + ", with " + why_32(spec));
  if (spec.swizzle != Swizzle::none && spec.address % 128 != 0 && spec.address % 16 == 0)
    found.add(RuleId::address_128, over(128) + ", with swizzle " + std::string(to_string(spec.swizzle)));
}

void check_dims(const TensorMapSpec& spec, Findings& found) {
  for (std::size_t i = 0; i < spec.dims.size(); ++i)
    if (spec.dims[i] < 1 || spec.dims[i] > kLargestDim)
      found.add(RuleId::dim_range, dimension("dims", i, spec.dims[i]) + ", needs 1 to 4294967296" +
                                       (spec.dims[i] == 0 ? " (an empty tensor has no map: skip the load)" : ""));
  if (spec.dims.empty()) return;
  if (packed_16(spec.dtype) && spec.dims[0] % 128 != 0)
    found.add(RuleId::dim_packed_128, dimension("dims", 0, spec.dims[0]) + ", not a multiple of 128");
  if (spec.dtype == ElementType::u4x16_align8 && spec.dims[0] % 2 != 0)
    found.add(RuleId::dim_packed_even, dimension("dims", 0, spec.dims[0]) + ", not a multiple of 2");
  if (spec.mode != Mode::tiled || spec.interleave != Interleave::none || is_packed(spec.dtype)) return;
  if (const std::int64_t over = bytes_of(spec.dtype, spec.dims[0]) % 16; over != 0)
    found.add(RuleId::store_inner_16,
              dimension("dims", 0, spec.dims[0]) + " x " + std::to_string(bits_of(spec.dtype) / 8) + " B end " +
                  std::to_string(over) + " B past a multiple of 16 B: a store writes the next " +
                  std::to_string(16 - over) + " B too, a load reads them as " + std::string(to_string(spec.fill)));
}

/// Elements along a dimension, within what a map can have.
std::int64_t extent_of(const TensorMapSpec& spec, std::size_t i) {
  return std::clamp<std::int64_t>(spec.dims[i], 1, kLargestDim);
}

/// The dimensions may be listed in any order (heads inside the rows of tokens), so strides are compared by size.
void check_overlap(const TensorMapSpec& spec, Findings& found) {
  if (spec.dims.empty() || spec.interleave != Interleave::none) return;  // slices of channels are not nested
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < spec.strides.size() && i + 1 < spec.dims.size(); ++i)
    if (spec.dims[i + 1] > 1 && spec.strides[i] >= 0 && spec.strides[i] < kStrideLimit) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return spec.strides[i]; });
  std::int64_t spanned = bytes_of(spec.dtype, extent_of(spec, 0));
  for (const std::size_t i : order) {
    const std::int64_t stride = spec.strides[i];
    if (stride < spanned)
      found.add(RuleId::stride_overlap, dimension("strides", i, stride) +
                                            " B, but the dimensions of smaller strides span " +
                                            std::to_string(spanned) + " B");
    const std::int64_t steps = extent_of(spec, i + 1) - 1;
    spanned += stride > 0 && steps > kStrideLimit / stride ? kStrideLimit : steps * stride;
  }
}

void check_strides(const TensorMapSpec& spec, Findings& found) {
  for (std::size_t i = 0; i < spec.strides.size(); ++i) {
    const std::int64_t stride = spec.strides[i];
    const std::string got = dimension("strides", i, stride) + " B";
    if (stride < 0 || stride >= kStrideLimit) {
      found.add(RuleId::stride_range, got + ", needs 0 to 1099511627775");
      continue;
    }
    if (stride % 16 != 0) found.add(RuleId::stride_16, got + ", not a multiple of 16 B");
    if (wants_32(spec) && stride % 32 != 0)
      found.add(RuleId::stride_32, got + ", not a multiple of 32 B, with " + why_32(spec));
  }
  check_overlap(spec, found);
}

/// "inner box 2 x 2 B = 4 B".
std::string inner_text(std::string_view name, const TensorMapSpec& spec, std::int64_t elements) {
  const int bits = bits_of(spec.dtype);
  const std::string unit = bits >= 8 ? std::to_string(bits / 8) + " B" : std::to_string(bits) + " bits";
  return std::string(name) + " " + std::to_string(elements) + " x " + unit + " = " +
         (bits >= 8 ? std::to_string(elements * (bits / 8)) + " B" : std::to_string(elements * bits) + " bits") +
         (packed_16(spec.dtype) ? ", " + std::to_string(shared_row_bytes(spec.dtype, elements)) + " B in shared memory"
                                : "");
}

void check_span(const TensorMapSpec& spec, std::string_view name, std::int64_t inner, Findings& found) {
  if (spec.interleave != Interleave::none || spec.swizzle == Swizzle::none || inner < 1 || inner > 256) return;
  const std::int64_t bytes = shared_row_bytes(spec.dtype, inner);
  const std::string with = " of swizzle " + std::string(to_string(spec.swizzle));
  if (bytes > span_of(spec.swizzle))
    found.add(RuleId::swizzle_span,
              inner_text(name, spec, inner) + ", more than the " + std::to_string(span_of(spec.swizzle)) + " B" + with);
  else if (bytes < span_of(spec.swizzle) && spec.mode == Mode::tiled)
    found.add(RuleId::swizzle_narrow,
              inner_text(name, spec, inner) + ", less than the " + std::to_string(span_of(spec.swizzle)) + " B" + with);
}

/// Elements that a load brings along a dimension: ceil(box / element stride); without interleave all of dimension 0.
std::int64_t loaded(const TensorMapSpec& spec, std::size_t i) {
  if (i == 0 && spec.interleave == Interleave::none) return spec.box[0];
  const std::int64_t step = i < spec.element_strides.size() ? std::max<std::int64_t>(1, spec.element_strides[i]) : 1;
  return (spec.box[i] + step - 1) / step;
}

/// For a box within 1 to 256 elements along every dimension.
std::int64_t tile_bytes(const TensorMapSpec& spec) {
  std::int64_t bytes = shared_row_bytes(spec.dtype, loaded(spec, 0));
  for (std::size_t i = 1; i < spec.box.size() && bytes < kStrideLimit; ++i) bytes *= loaded(spec, i);
  return bytes;
}

void check_tile_bytes(std::int64_t bytes, Findings& found) {
  if (bytes > kLargestTile)
    found.add(RuleId::tile_bytes,
              "one load has " + std::to_string(bytes) + " B, more than " + std::to_string(kLargestTile));
}

void check_box(const TensorMapSpec& spec, Findings& found) {
  bool in_range = !spec.box.empty();
  for (std::size_t i = 0; i < spec.box.size(); ++i) {
    if (spec.box[i] < 1 || spec.box[i] > 256) {
      in_range = false;
      found.add(RuleId::box_range, dimension("box", i, spec.box[i]) + ", needs 1 to 256 elements");
    } else if (i < spec.dims.size() && spec.dims[i] >= 1 && spec.box[i] > spec.dims[i]) {
      found.add(RuleId::box_exceeds_tensor, dimension("box", i, spec.box[i]) + ", the tensor has " +
                                                std::to_string(spec.dims[i]) + ": what lies outside reads as " +
                                                std::string(to_string(spec.fill)));
    }
  }
  if (spec.box.empty() || spec.box[0] < 1) return;
  const std::int64_t inner = spec.box[0];
  if (packed_16(spec.dtype)) {
    if (inner != 128) found.add(RuleId::box_packed_128, dimension("box", 0, inner) + ", must be 128");
  }
  if (inner <= kLargestDim && inner * bits_of(spec.dtype) % 128 != 0)
    found.add(RuleId::box_inner_16, inner_text("inner box", spec, inner) + ", not a multiple of 16 B");
  check_span(spec, "inner box", inner, found);
  if (in_range && spec.box.size() == spec.dims.size()) check_tile_bytes(tile_bytes(spec), found);
}

void check_element_strides(const TensorMapSpec& spec, Findings& found) {
  for (std::size_t i = 0; i < spec.element_strides.size(); ++i)
    if (spec.element_strides[i] < 1 || spec.element_strides[i] > 8)
      found.add(RuleId::element_stride_range,
                dimension("element_strides", i, spec.element_strides[i]) + ", needs 1 to 8");
}

void check_modes(const TensorMapSpec& spec, Findings& found) {
  const std::string swizzle(to_string(spec.swizzle));
  if (spec.interleave == Interleave::b32 && spec.swizzle != Swizzle::b32)
    found.add(RuleId::interleave_32_swizzle, "interleave 32B with swizzle " + swizzle + ", needs 32B");
  const bool common =
      spec.swizzle == Swizzle::none || spec.swizzle == Swizzle::b128 || spec.swizzle == Swizzle::b128_atom32;
  if (spec.dtype == ElementType::u6x16_align16) {
    if (spec.interleave != Interleave::none)
      found.add(RuleId::packed6_interleave,
                "u6x16_align16 with interleave " + std::string(to_string(spec.interleave)) + ", needs none");
    if (!common && spec.swizzle != Swizzle::b128_atom64)
      found.add(RuleId::packed6_swizzle, "u6x16_align16 with swizzle " + swizzle);
  }
  if (spec.dtype == ElementType::u4x16_align16 && !common)
    found.add(RuleId::packed4_swizzle, "u4x16_align16 with swizzle " + swizzle);
  if (spec.fill == Fill::nan && !is_floating(spec.dtype))
    found.add(RuleId::fill_nan, "NaN fill with type " + std::string(to_string(spec.dtype)));
}

void check_im2col(const TensorMapSpec& spec, Findings& found) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 3> limits = {{{-32768, 32767}, {-128, 127}, {-16, 15}}};
  if (spec.rank() >= 3 && spec.rank() <= 5) {
    const auto [low, high] = limits[spec.dims.size() - 3];
    const auto in_range = [&](std::string_view list, std::size_t i, std::int64_t value) {
      if (value >= low && value <= high) return true;
      found.add(RuleId::corner_range, dimension(list, i, value) + ", rank " + std::to_string(spec.rank()) + " takes " +
                                          std::to_string(low) + " to " + std::to_string(high));
      return false;
    };
    const std::size_t corners = std::min(spec.lower_corner.size(), spec.upper_corner.size());
    for (std::size_t i = 0; i < std::min(corners, spec.dims.size() - 2); ++i) {
      const bool lower = in_range("lower_corner", i, spec.lower_corner[i]);
      const bool upper = in_range("upper_corner", i, spec.upper_corner[i]);
      // Interleaved layouts have no dimension of channels in front of the pixels.
      const std::int64_t dim = static_cast<std::int32_t>(spec.dims[spec.interleave == Interleave::none ? i + 1 : i]);
      if (!lower || !upper) continue;
      const std::int64_t size = dim + spec.upper_corner[i] - spec.lower_corner[i];
      if (size < 1)
        found.add(RuleId::corner_box, "spatial dimension " + std::to_string(i) + ": " + std::to_string(dim) + " + " +
                                          std::to_string(spec.upper_corner[i]) + " - " +
                                          std::to_string(spec.lower_corner[i]) + " = " + std::to_string(size) +
                                          " pixels");
    }
  }
  const std::int64_t channels = spec.channels_per_pixel;
  if (channels < 1 || channels > 256)
    found.add(RuleId::channels_range, "channels_per_pixel = " + std::to_string(channels) + ", needs 1 to 256");
  if (packed_16(spec.dtype) && channels != 128)
    found.add(RuleId::channels_packed_128, "channels_per_pixel = " + std::to_string(channels) + ", must be 128");
  if (channels >= 1 && channels <= 256 && spec.pixels_per_column >= 1 && spec.pixels_per_column <= 1024)
    check_tile_bytes(shared_row_bytes(spec.dtype, channels) * spec.pixels_per_column, found);
  if (spec.pixels_per_column < 1 || spec.pixels_per_column > 1024)
    found.add(RuleId::pixels_range,
              "pixels_per_column = " + std::to_string(spec.pixels_per_column) + ", needs 1 to 1024");
  if (channels >= 1 && channels <= 256 && channels * bits_of(spec.dtype) % 128 != 0)
    found.add(RuleId::channels_inner_16, inner_text("channels_per_pixel", spec, channels) + ", not a multiple of 16 B");
  check_span(spec, "channels_per_pixel", channels, found);
}

}  // namespace

std::span<const Rule> rules() { return kRules; }

const Rule& rule(RuleId id) { return kRules[static_cast<std::size_t>(id)]; }

bool Findings::has_errors() const {
  return std::ranges::any_of(all_, [](const Finding& finding) { return finding.rule->severity == Severity::error; });
}

Findings find_violations(const TensorMapSpec& spec, int compute_capability) {
  check_enumerators(spec);
  Findings found;
  check_rank(spec, found);
  check_lengths(spec, found);
  check_architecture(spec, compute_capability, found);
  check_address(spec, found);
  check_dims(spec, found);
  check_strides(spec, found);
  if (spec.mode == Mode::tiled)
    check_box(spec, found);
  else
    check_im2col(spec, found);
  check_element_strides(spec, found);
  check_modes(spec, found);
  return found;
}

bool keeps_rules(const TensorMapSpec& spec, int compute_capability) {
  return !find_violations(spec, compute_capability).has_errors();
}

}  // namespace tmaops::tma
