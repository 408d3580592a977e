// Tensor maps for the tests of the device layer.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "tmaops/tensor_map.hpp"

namespace tmaops::test {

/// A dense tensor, extents and box innermost first.
template <std::size_t rank>
CUtensorMap encode_tiled(void* data, const std::array<std::uint64_t, rank>& extents,
                         const std::array<std::uint32_t, rank>& box, tma::Swizzle swizzle = tma::Swizzle::none,
                         tma::ElementType type = tma::ElementType::u16) {
  tma::TensorMapSpec spec = tma::tiled_spec(type, {extents.begin(), extents.end()}, {box.begin(), box.end()});
  spec.address = reinterpret_cast<std::uintptr_t>(data);
  spec.swizzle = swizzle;
  return std::bit_cast<CUtensorMap>(tma::encode(spec));
}

/// A dense image of 16-bit elements, (channels, w[, h[, d]], n); corners of the box of base pixels in (w[, h[, d]]),
/// which lie `step` pixels apart.
template <std::size_t rank>
CUtensorMap encode_im2col(void* data, const std::array<std::uint64_t, rank>& extents,
                          const std::array<int, rank - 2>& lower, const std::array<int, rank - 2>& upper,
                          unsigned channels, unsigned pixels, int step = 1) {
  tma::TensorMapSpec spec;
  spec.mode = tma::Mode::im2col;
  spec.dtype = tma::ElementType::u16;
  spec.address = reinterpret_cast<std::uintptr_t>(data);
  spec.dims.assign(extents.begin(), extents.end());
  spec.strides = tma::dense_strides(spec.dtype, spec.dims);
  spec.strides.resize(rank - 1);
  spec.lower_corner.assign(lower.begin(), lower.end());
  spec.upper_corner.assign(upper.begin(), upper.end());
  spec.element_strides.assign(rank, 1);
  std::fill(spec.element_strides.begin() + 1, spec.element_strides.end() - 1, step);
  spec.channels_per_pixel = channels;
  spec.pixels_per_column = pixels;
  return std::bit_cast<CUtensorMap>(tma::encode(spec));
}

}  // namespace tmaops::test
