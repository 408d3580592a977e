// Building and printing specifications.
#include <cstdio>
#include <limits>

#include "core/entry.hpp"
#include "tma/sizes.hpp"
#include "tma/text.hpp"

namespace tmaops::tma {
namespace {

std::string joined(std::span<const std::int64_t> values, std::string_view separator) {
  std::string text;
  for (const std::int64_t value : values) {
    if (!text.empty()) text += separator;
    text += std::to_string(value);
  }
  return text;
}

}  // namespace

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
    bool ones = true;
    for (const std::int64_t step : element_strides) ones = ones && step == 1;
    if (!ones) option("element-strides", comma_list(element_strides));
    if (interleave != Interleave::none) option("interleave", std::string(to_string(interleave)));
    if (swizzle != Swizzle::none) option("swizzle", std::string(to_string(swizzle)));
    if (l2_promotion != L2Promotion::none) option("l2-promotion", std::string(to_string(l2_promotion)));
    if (fill != Fill::zero) option("fill", std::string(to_string(fill)));
    if (address != 0) option("address", hex(address));
    return line;
  });
}

}  // namespace tmaops::tma
