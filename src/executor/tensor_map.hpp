// What the executor keeps in the 128 bytes of a tensor map, in place of the driver's bits.
#pragma once

#include <cstdint>

#include "tmaops/tensor_map.hpp"

namespace tmaops::executor {

struct EncodedMap {
  static constexpr std::uint64_t kMagic = 0x70616D5F736F706Dull;
  std::uint64_t magic;  // 128 bytes that nothing has encoded do not hold it
  std::uint64_t address;
  std::uint64_t strides[4];
  std::uint32_t last_index[5];  // dims - 1, since a dimension may be 2^32
  std::uint16_t box[5];
  std::int16_t lower_corner[3], upper_corner[3];  // of im2col, as the two that follow
  std::uint16_t channels_per_pixel, pixels_per_column;
  std::uint8_t element_strides[5];
  std::uint8_t rank, dtype, interleave, swizzle, promotion, fill, mode;

  bool is_of(tma::Mode which) const { return magic == kMagic && mode == static_cast<std::uint8_t>(which); }
  tma::TensorMapSpec spec() const {
    tma::TensorMapSpec spec{.mode = static_cast<tma::Mode>(mode)};
    spec.dtype = static_cast<tma::ElementType>(dtype);
    spec.address = address;
    for (int i = 0; i < rank; ++i) {
      spec.dims.push_back(std::int64_t{last_index[i]} + 1);
      if (spec.mode == tma::Mode::tiled) spec.box.push_back(box[i]);
      spec.element_strides.push_back(element_strides[i]);
      if (i > 0) spec.strides.push_back(static_cast<std::int64_t>(strides[i - 1]));
    }
    if (spec.mode == tma::Mode::im2col) {
      spec.lower_corner.assign(lower_corner, lower_corner + rank - 2);
      spec.upper_corner.assign(upper_corner, upper_corner + rank - 2);
      spec.channels_per_pixel = channels_per_pixel;
      spec.pixels_per_column = pixels_per_column;
    }
    spec.interleave = static_cast<tma::Interleave>(interleave);
    spec.swizzle = static_cast<tma::Swizzle>(swizzle);
    spec.l2_promotion = static_cast<tma::L2Promotion>(promotion);
    spec.fill = static_cast<tma::Fill>(fill);
    return spec;
  }
};
static_assert(sizeof(EncodedMap) <= sizeof(tma::TensorMap));

}  // namespace tmaops::executor
