#include "tma/im2col.hpp"

#include <cstddef>

namespace tmaops::tma {

void set_window(TensorMapSpec& spec, const Convolution& convolution) {
  spec.element_strides.assign(spec.dims.size(), 1);
  for (std::size_t i = 0; i < convolution.filter.size(); ++i) {
    spec.lower_corner.push_back(-convolution.padding[i]);
    spec.upper_corner.push_back(convolution.padding[i] - (convolution.filter[i] - 1) * convolution.dilation[i]);
    spec.element_strides[i + 1] = convolution.strides[i];
  }
}

std::vector<Pixel> im2col_pixels(const TensorMapSpec& spec, const std::vector<std::int64_t>& coordinates,
                                 const std::vector<std::int64_t>& offsets) {
  const std::size_t axes = spec.dims.size() - 2;
  std::vector<std::int64_t> base(coordinates.begin() + 1, coordinates.end());  // the image is the last
  std::vector<Pixel> pixels;
  for (std::int64_t i = 0; i < spec.pixels_per_column; ++i) {
    Pixel pixel{.image = base[axes], .inside = base[axes] >= 0 && base[axes] < spec.dims.back()};
    for (std::size_t axis = 0; axis < axes; ++axis) {
      pixel.at[axis] = base[axis] + offsets[axis];
      pixel.inside = pixel.inside && pixel.at[axis] >= 0 && pixel.at[axis] < spec.dims[axis + 1];
    }
    pixels.push_back(pixel);
    std::size_t axis = 0;
    for (; axis < axes; ++axis) {
      base[axis] += spec.element_strides.empty() ? 1 : spec.element_strides[axis + 1];
      if (base[axis] < spec.dims[axis + 1] + spec.upper_corner[axis]) break;
      base[axis] = spec.lower_corner[axis];
    }
    if (axis == axes) ++base[axes];
  }
  return pixels;
}

}  // namespace tmaops::tma
