// 16-bit values on the CPU whose small levels are widened and whose other levels may be coded pairs of f16.
#include "ops/ms_deform_attn/paired_maps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "ops/ms_deform_attn/case.hpp"

namespace tmaops::test {
namespace {

namespace forward = ops::ms_deform_attn;

// Powers of two: a location at a pixel's centre is exact.
template <class Stored>
void expect_every_finite_value_back(std::uint16_t infinite_bits, bool coded) {
  const std::array<LevelShape, 2> levels{LevelShape{32, 64}, LevelShape{8, 8}};
  constexpr std::int64_t kChannels = 64;
  constexpr std::int64_t kPixels = 32 * 64 + 8 * 8;
  std::vector<std::uint16_t> finite;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    if ((bits & infinite_bits) != infinite_bits) finite.push_back(static_cast<std::uint16_t>(bits));
  std::mt19937_64 random(1);
  for (int round = 0; round < 4; ++round) {
    std::vector<Stored> value(static_cast<std::size_t>(kPixels * kChannels));
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i % finite.size() == 0) std::shuffle(finite.begin(), finite.end(), random);
      value[i].bits = finite[i % finite.size()];
    }
    // A query per pixel, which looks at that pixel and, with weight 0, at the middle of the other level.
    std::vector<float> locations(static_cast<std::size_t>(kPixels * 4), 0.5F);
    std::vector<float> weights(static_cast<std::size_t>(kPixels * 2), 0.0F);
    std::size_t q = 0;
    for (std::size_t l = 0; l < levels.size(); ++l)
      for (std::int64_t y = 0; y < levels[l].height; ++y)
        for (std::int64_t x = 0; x < levels[l].width; ++x, ++q) {
          locations[4 * q + 2 * l] = (static_cast<float>(x) + 0.5F) / static_cast<float>(levels[l].width);
          locations[4 * q + 2 * l + 1] = (static_cast<float>(y) + 0.5F) / static_cast<float>(levels[l].height);
          weights[2 * q + l] = 1.0F;
        }
    std::vector<Stored> output(value.size(), Stored(-1.0F));
    const forward::Arguments arguments{.value = view(value.data(), {1, kPixels, 1, kChannels}),
                                       .sampling_locations = view(locations.data(), {1, kPixels, 1, 2, 1, 2}),
                                       .attention_weights = view(weights.data(), {1, kPixels, 1, 2, 1}),
                                       .output = view(output.data(), {1, kPixels, kChannels})};
    const forward::Problem problem = forward::make_problem(arguments.value, levels, arguments.sampling_locations,
                                                           arguments.attention_weights, arguments.output, {});
    ASSERT_EQ(forward_in_pairs(problem, arguments, coded), 1U);
    for (std::size_t i = 0; i < value.size(); ++i)
      ASSERT_EQ(static_cast<float>(output[i]), static_cast<float>(value[i]))
          << "bits " << value[i].bits << ", pixel " << i / kChannels << ", channel " << i % kChannels;
  }
}

TEST(PairedMaps, every_finite_value_comes_back_exactly) {
  if (packed_variant() == nullptr) GTEST_SKIP() << "built without Highway";
  expect_every_finite_value_back<float16>(0x7c00, true);
  expect_every_finite_value_back<float16>(0x7c00, false);
  expect_every_finite_value_back<bfloat16>(0x7f80, false);
}

// 2^112 times such a weight is beyond f32.
TEST(PairedMaps, large_weights_are_right) {
  if (packed_variant() == nullptr) GTEST_SKIP() << "built without Highway";
  Case c({.channels = 32, .queries = 30, .levels = {{16, 16}, {4, 4}}, .value_dtype = DType::f16}, 3);
  std::mt19937_64 random(5);
  c.weights().fill([&] { return random() % 2 == 0 ? 1e5 : 1e-7; });
  c.value().fill([&] { return static_cast<double>(random() % 100) / 1000; });
  Buffer got = c.output();
  for (const bool coded : {true, false}) {
    ASSERT_EQ(forward_in_pairs(c.problem(got), c.arguments(got), coded), 1U);
    expect_forward(got, c.reference(), "simd_packed");
  }
}

}  // namespace
}  // namespace tmaops::test
