#include "tmaops/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tmaops {
namespace {

TEST(Float16, every_value_survives_the_way_to_f32_and_back) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    float16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    const float value = static_cast<float>(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(float16(value))));
    } else {
      ASSERT_EQ(float16(value).bits, bits);
    }
    bfloat16 brain;
    brain.bits = static_cast<std::uint16_t>(bits);
    const float wide = static_cast<float>(brain);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(wide))));
    } else {
      ASSERT_EQ(bfloat16(wide).bits, bits);
    }
  }
}

/// Independent of the bit arithmetic: the nearest representable value, ties to the even mantissa.
float nearest_half(double value) {
  if (value == 0 || std::isinf(value)) return static_cast<float>(value);
  const double magnitude = std::abs(value);
  const int exponent = std::max(std::ilogb(magnitude), -14);
  const double step = std::ldexp(1.0, exponent - 10);
  const double rounded = std::nearbyint(magnitude / step) * step;  // default mode: ties to even
  return static_cast<float>(std::copysign(rounded >= 65520.0 || rounded > 65504.0 ? INFINITY : rounded, value));
}

TEST(Float16, rounds_to_nearest_even) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::uint32_t> bits;
  for (int i = 0; i < 2'000'000; ++i) {
    const float value = std::bit_cast<float>(bits(random));
    if (std::isnan(value)) continue;
    ASSERT_EQ(static_cast<float>(float16(value)), nearest_half(value)) << value;
  }
  EXPECT_EQ(float16(65519.996F).bits, 0x7bff);
  EXPECT_EQ(float16(65520.0F).bits, 0x7c00);
  EXPECT_EQ(float16(std::ldexp(1.0F, -25)).bits, 0);  // tie, to even
  EXPECT_EQ(float16(std::ldexp(1.0001F, -25)).bits, 1);
  EXPECT_EQ(float16(-0.0F).bits, 0x8000);
}

TEST(Float16, from_f64_rounds_once) {
  const double above_tie = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);  // f32 would drop the last bit: a tie
  EXPECT_EQ(static_cast<float>(float16(above_tie)), 1.0F + std::ldexp(1.0F, -10));
  std::mt19937_64 random(9);
  std::uniform_real_distribution<double> uniform(-3, 3);
  for (int i = 0; i < 200'000; ++i) {
    const double value = std::ldexp(uniform(random), static_cast<int>(i % 40) - 26);
    ASSERT_EQ(static_cast<float>(float16(value)), nearest_half(value)) << value;
  }
}

TEST(BFloat16, rounds_to_nearest_even) {
  EXPECT_EQ(bfloat16(std::bit_cast<float>(0x3f808000u)).bits, 0x3f80);  // tie, to even
  EXPECT_EQ(bfloat16(std::bit_cast<float>(0x3f808001u)).bits, 0x3f81);
  EXPECT_EQ(bfloat16(std::bit_cast<float>(0x3f818000u)).bits, 0x3f82);
  EXPECT_EQ(bfloat16(std::bit_cast<float>(0x7f7fffffu)).bits, 0x7f80);  // past the largest: infinity
  EXPECT_EQ(bfloat16(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -50)).bits, 0x3f81);
}

TEST(DType, names_go_both_ways) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8})
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  EXPECT_FALSE(parse_dtype("float").has_value());
}

}  // namespace
}  // namespace tmaops
