// What an im2col map brings: the pixels that one tap of a convolution's filter reads (PTX ISA "im2col mode").
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tmaops/tensor_map.hpp"

namespace tmaops::tma {

/// A convolution along its spatial dimensions, innermost (W) first.
struct Convolution {
  std::vector<std::int64_t> filter, padding, strides, dilation;
};
/// Corners and element strides of the map whose loads bring the pixels of one tap: the window holds the first tap's
/// pixels, from -padding to the last one at which the whole filter lies inside.
void set_window(TensorMapSpec& spec, const Convolution& convolution);

/// A pixel of the tensor: W, H, D as far as there are, and the image.
struct Pixel {
  std::array<std::int64_t, 3> at{};
  std::int64_t image = 0;
  bool inside = false;  // otherwise it is fill
};
/// The pixels of one load through a valid im2col map without interleave. The load begins at the base pixel of
/// `coordinates` (channel, w[, h[, d]], n), walks over the window, W fastest, in steps of the element strides, and adds
/// `offsets` (w[, h[, d]]) to every pixel.
std::vector<Pixel> im2col_pixels(const TensorMapSpec& spec, const std::vector<std::int64_t>& coordinates,
                                 const std::vector<std::int64_t>& offsets);

}  // namespace tmaops::tma
