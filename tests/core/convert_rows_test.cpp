// Rows of 16-bit values to f32 and back agree with the conversions one by one, whatever the processor does.
#include "core/convert_rows.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace tmaops::test {
namespace {

template <class Half>
Half half_of(std::uint16_t bits) {
  Half half;
  half.bits = bits;
  return half;
}

void expect_same(float got, float want, std::int64_t i) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << "element " << i;
  } else {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(want)) << "element " << i;
  }
}

template <class Half>
class ConvertRows : public testing::Test {};
using Halves = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(ConvertRows, Halves);

TYPED_TEST(ConvertRows, every_value_to_f32) {
  std::vector<TypeParam> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    all.push_back(half_of<TypeParam>(static_cast<std::uint16_t>(bits)));
  std::vector<float> out(all.size());
  load_f32(all.data(), dtype_of<TypeParam>, 0, 1, static_cast<std::int64_t>(all.size()), out.data());
  for (std::size_t i = 0; i < all.size(); ++i)
    expect_same(out[i], static_cast<float>(all[i]), static_cast<std::int64_t>(i));
}

TYPED_TEST(ConvertRows, from_f32_rounded) {
  std::vector<float> in{0.0F,     -0.0F,    INFINITY,   -INFINITY,  NAN,        65504.0F, 65519.9F, 65520.0F,
                        0x1p-24F, 0x1p-25F, 0x1.8p-25F, 0x1.004p0F, 0x1.00cp0F, 1e-45F,   3e38F,    -3.4e38F};
  std::mt19937 random(7);
  for (int i = 0; i < 100'000; ++i) in.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (int i = 0; i < 100'000; ++i)  // near f16's range
    in.push_back(std::ldexp(static_cast<float>(random()) * 0x1p-31F - 1.0F, static_cast<int>(random() % 44) - 27));
  std::vector<TypeParam> out(in.size());
  store_f32(out.data(), dtype_of<TypeParam>, 0, 1, static_cast<std::int64_t>(in.size()), in.data());
  for (std::size_t i = 0; i < in.size(); ++i)
    expect_same(static_cast<float>(out[i]), static_cast<float>(TypeParam(in[i])), static_cast<std::int64_t>(i));
}

TYPED_TEST(ConvertRows, strides_and_short_rows_touch_nothing_else) {
  for (const std::int64_t stride : {1, 3})
    for (const std::int64_t count : {0, 1, 7, 8, 9, 31, 255, 256, 257, 600}) {
      std::vector<TypeParam> row(static_cast<std::size_t>(count * stride + 5), TypeParam(-1.0F));
      std::vector<float> in(static_cast<std::size_t>(count));
      std::iota(in.begin(), in.end(), 1.0F);
      store_f32(row.data(), dtype_of<TypeParam>, 2, stride, count, in.data());
      std::vector<float> out(static_cast<std::size_t>(count) + 1, -2.0F);
      load_f32(row.data(), dtype_of<TypeParam>, 2, stride, count, out.data());
      EXPECT_EQ(out.back(), -2.0F);
      for (std::int64_t i = 0; i < count; ++i)
        EXPECT_EQ(out[static_cast<std::size_t>(i)], static_cast<float>(TypeParam(in[static_cast<std::size_t>(i)])));
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(row.size()); ++i) {
        const bool written = i >= 2 && i < 2 + count * stride && (i - 2) % stride == 0;
        if (written) continue;
        EXPECT_EQ(static_cast<float>(row[static_cast<std::size_t>(i)]), -1.0F) << i << " of " << stride;
      }
    }
}

TEST(ConvertRowsOfF32, are_copied) {
  const std::vector<float> in{1, 2, 3, 4, 5, 6};
  std::vector<float> out(3);
  load_f32(in.data(), DType::f32, 1, 2, 3, out.data());
  EXPECT_EQ(out, (std::vector<float>{2, 4, 6}));
  load_f32(in.data(), DType::f32, 3, 1, 3, out.data());
  EXPECT_EQ(out, (std::vector<float>{4, 5, 6}));
  store_f32(out.data(), DType::f32, 0, 1, 3, out.data());  // the same elements
  EXPECT_EQ(out, (std::vector<float>{4, 5, 6}));
}

}  // namespace
}  // namespace tmaops::test
