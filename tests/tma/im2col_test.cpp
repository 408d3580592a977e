// The pixels of im2col loads, against the loops of a convolution.
#include "tma/im2col.hpp"

#include <gtest/gtest.h>

#include <random>

namespace tmaops::tma {
namespace {

TEST(Im2col, a_load_brings_the_pixels_of_one_tap_in_the_order_of_the_outputs) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  int compared = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const int axes = 1 + trial % 3;
    TensorMapSpec spec;
    spec.mode = Mode::im2col;
    spec.dims = {64};
    Convolution convolution;
    std::vector<std::int64_t> outputs, tap;
    bool fits = true;
    for (int axis = 0; axis < axes; ++axis) {
      spec.dims.push_back(1 + below(9));
      convolution.filter.push_back(1 + below(3));
      convolution.padding.push_back(below(3));
      convolution.strides.push_back(1 + below(3));
      convolution.dilation.push_back(1 + below(2));
      const std::int64_t room = spec.dims.back() + 2 * convolution.padding.back() -
                                (convolution.filter.back() - 1) * convolution.dilation.back() - 1;
      fits = fits && room >= 0;
      outputs.push_back(room / convolution.strides.back() + 1);
      tap.push_back(below(static_cast<int>(convolution.filter.back())) * convolution.dilation.back());
    }
    if (!fits) continue;  // the filter is larger than the padded image
    constexpr std::int64_t kImages = 2;
    spec.dims.push_back(kImages);
    set_window(spec, convolution);
    std::vector<std::int64_t> first{0};
    first.insert(first.end(), spec.lower_corner.begin(), spec.lower_corner.end());
    first.push_back(0);
    outputs.resize(3, 1);
    spec.pixels_per_column = outputs[0] * outputs[1] * outputs[2] * kImages + 1;  // the last one is no image's
    const std::vector<Pixel> pixels = im2col_pixels(spec, first, tap);
    ASSERT_EQ(pixels.size(), static_cast<std::size_t>(spec.pixels_per_column));
    EXPECT_FALSE(pixels.back().inside);
    std::size_t i = 0;
    for (std::int64_t image = 0; image < kImages; ++image)
      for (std::int64_t d = 0; d < outputs[2]; ++d)
        for (std::int64_t h = 0; h < outputs[1]; ++h)
          for (std::int64_t w = 0; w < outputs[0]; ++w, ++i) {
            const std::int64_t output[] = {w, h, d};
            bool inside = true;
            for (std::size_t axis = 0; axis < static_cast<std::size_t>(axes); ++axis) {
              const std::int64_t at = output[axis] * convolution.strides[axis] - convolution.padding[axis] + tap[axis];
              ASSERT_EQ(pixels[i].at[axis], at) << "pixel " << i << ", axis " << axis;
              inside = inside && at >= 0 && at < spec.dims[axis + 1];
            }
            ASSERT_EQ(pixels[i].image, image);
            ASSERT_EQ(pixels[i].inside, inside);
            ++compared;
          }
  }
  EXPECT_GT(compared, 10'000);
}

TEST(Im2col, bytes_of_a_load_are_pixels_times_channels) {
  TensorMapSpec spec;
  spec.mode = Mode::im2col;
  spec.dims = {64, 32, 16, 4};
  spec.strides = dense_strides(spec.dtype, spec.dims);
  spec.channels_per_pixel = 64;
  spec.pixels_per_column = 48;
  set_window(spec, {.filter = {3, 3}, .padding = {1, 1}, .strides = {1, 1}, .dilation = {1, 1}});
  EXPECT_EQ(transaction_bytes(spec), 48 * 64 * 2);
}

}  // namespace
}  // namespace tmaops::tma
