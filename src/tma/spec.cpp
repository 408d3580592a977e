// Building and printing specifications, and the bytes that their elements take.
#include <algorithm>
#include <cstdio>
#include <limits>

#include "core/entry.hpp"
#include "core/spelling.hpp"
#include "tma/sizes.hpp"

namespace tmaops::tma {

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  if (value > std::numeric_limits<std::int64_t>::max() - multiple) return value;
  return (value + multiple - 1) / multiple * multiple;
}

int span_of(Swizzle swizzle) {
  constexpr int spans[] = {0, 32, 64};  // the others have 128
  const auto i = static_cast<std::size_t>(swizzle);
  return i < std::size(spans) ? spans[i] : 128;
}

std::int64_t bytes_of(ElementType type, std::int64_t elements) {
  // The clamp keeps invalid counts from overflowing. No count that keeps the rules comes near these bounds.
  return (std::clamp<std::int64_t>(elements, 0, std::int64_t{1} << 56) * bits_of(type) + 7) / 8;
}

std::int64_t shared_row_bytes(ElementType type, std::int64_t elements) {
  return packed_16(type) ? (elements + 15) / 16 * 16 : bytes_of(type, elements);
}

std::string hex(std::uint64_t value) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(value));
  return digits;
}

std::string comma_list(std::span<const std::int64_t> values) { return joined(values, ","); }

std::string braces(std::span<const std::int64_t> values) { return "{" + joined(values, ", ") + "}"; }

std::vector<std::int64_t> dense_strides(ElementType type, const std::vector<std::int64_t>& dims) {
  return public_entry("tensor map", [&] {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    std::vector<std::int64_t> strides;
    if (dims.empty()) return strides;
    std::int64_t stride = dims[0] > most / bits_of(type) ? most : bytes_of(type, dims[0]);
    for (std::size_t i = 1; i < dims.size(); ++i) {
      strides.push_back(stride);
      if (dims[i] > 0 && stride > most / dims[i])
        stride = most;
      else
        stride *= dims[i] > 0 ? dims[i] : 1;
    }
    return strides;
  });
}

TensorMapSpec tiled_spec(ElementType type, std::vector<std::int64_t> dims, std::vector<std::int64_t> box) {
  return public_entry("tensor map", [&] {
    TensorMapSpec spec;
    spec.dtype = type;
    spec.strides = dense_strides(type, dims);
    spec.dims = std::move(dims);
    spec.box = std::move(box);
    return spec;
  });
}

std::string TensorMapSpec::text() const {
  return public_entry("tensor map", [&] {
    std::string line = "--dtype " + std::string(to_string(dtype)) + " --dims " + comma_list(dims);
    const auto option = [&](std::string_view name, const std::string& value) {
      line += " --" + std::string(name) + " " + value;
    };
    if (mode == Mode::tiled) {
      option("box", comma_list(box));
    } else {
      option("lower-corner", comma_list(lower_corner));
      option("upper-corner", comma_list(upper_corner));
      option("channels-per-pixel", std::to_string(channels_per_pixel));
      option("pixels-per-column", std::to_string(pixels_per_column));
    }
    if (strides != dense_strides(dtype, dims)) option("strides", comma_list(strides));
    if (std::ranges::any_of(element_strides, [](std::int64_t step) { return step != 1; }))
      option("element-strides", comma_list(element_strides));
    if (interleave != Interleave::none) option("interleave", std::string(to_string(interleave)));
    if (swizzle != Swizzle::none) option("swizzle", std::string(to_string(swizzle)));
    if (l2_promotion != L2Promotion::none) option("l2-promotion", std::string(to_string(l2_promotion)));
    if (fill != Fill::zero) option("fill", std::string(to_string(fill)));
    if (address != 0) option("address", hex(address));
    return line;
  });
}

}  // namespace tmaops::tma
