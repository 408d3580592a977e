// The published kernels of attention against a model of their f16 arithmetic, and against each other at the published
// size.
#include <algorithm>
#include <random>

#include "gpu/mirror.hpp"
#include "gpu/support.hpp"
#include "study/ms_deform_attn/half_model.hpp"

namespace tmaops::test {
namespace {

namespace op = ops::ms_deform_attn;

constexpr std::string_view kPublished[] = {"original", "distributed", "staged_padded", "staged_unpadded",
                                           "staged_async"};

TEST(GpuPublishedMsDeformAttn, kernels_equal_the_f16_arithmetic_in_every_element) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 20;
  for (const std::int64_t queries : {1, 7, 8, 1021})
    for (const auto& levels :
         {std::vector<LevelShape>{{46, 80}, {23, 40}, {12, 20}, {6, 10}},
          std::vector<LevelShape>{{16, 16}, {1, 1}, {1, 8}, {2, 2}}, std::vector<LevelShape>{{9, 300}}}) {
      Case c(published_shape(3, queries, levels), ++seed);
      const Buffer want = half_model(c);
      for (const int shift : {0, 1})  // 1: weights and locations by single loads
        for (const std::string_view variant : kPublished) {
          const Mirror value(c.value()), locations(c.locations(), 2 * shift), weights(c.weights(), shift);
          const Mirror output(c.output());
          ms_deform_attn(value.view(), levels, locations.view(), weights.view(), output.view(), c.options(variant));
          check_cuda(cudaDeviceSynchronize(), variant);
          expect_close(output.download(), want, 0, 0, std::string(variant).c_str());
          if (testing::Test::HasFatalFailure()) FAIL() << c.text() << ", shift " << shift;
        }
    }
}

/// Levels whose coordinates f16 counts exactly, so that kernel and reference sample the same pixels.
TEST(GpuPublishedMsDeformAttn, values_that_are_not_finite_go_only_to_outputs_that_sample_them) {
  TMAOPS_NEEDS_GPU();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Shape shape = published_shape(2, 500, {{16, 16}, {8, 8}, {16, 8}, {4, 4}});
  shape.odd_locations = true;
  Case c(shape, 5);
  for (std::int64_t at = 3; at < c.value().layout().size(); at += 1009)
    c.value().set(at, at % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : at % 3 == 1 ? kInfinity : -kInfinity);
  const Buffer want = c.reference();
  std::int64_t finite = 0;
  for (const double x : want.values()) finite += std::isfinite(x);
  ASSERT_GT(finite, want.layout().size() / 4);
  ASSERT_LT(finite, want.layout().size());
  const Mirror value(c.value()), locations(c.locations()), weights(c.weights());
  for (const std::string_view variant : kPublished) {
    const Mirror output(c.output());
    ms_deform_attn(value.view(), shape.levels, locations.view(), weights.view(), output.view(), c.options(variant));
    check_cuda(cudaDeviceSynchronize(), variant);
    Buffer made = c.output();
    expect_half_forward(output.download(), want, op::half_arithmetic_error(c.problem(made)), std::string(variant));
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// Random f16 numbers, sixteen bits of a generator for each.
template <class Number>
std::vector<float16> random_halves(std::size_t count, std::uint64_t seed, const Number& number) {
  std::vector<float16> table(1 << 16);
  for (float16& one : table) one = float16(static_cast<float>(number()));
  std::mt19937_64 random(seed);
  std::vector<float16> all(count);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bits = i % 4 == 0 ? random() : bits >> 16;
    all[i] = table[bits & 0xffff];
  }
  return all;
}

/// Batch 48, S = 20,522 with its borders, 15,422 queries, 32 channels, 4 levels of 8 points: 23,688,192 outputs.
TEST(GpuPublishedMsDeformAttn, kernels_agree_in_all_elements_of_the_published_shape) {
  TMAOPS_NEEDS_CHIP();
  constexpr std::int64_t kBatch = 48, kLength = 20522, kQueries = 15422, kChannels = 32, kLevels = 4, kPoints = 8;
  constexpr std::int64_t kElements = kBatch * kQueries * kChannels;
  static_assert(kElements == 23688192);
  const std::vector<LevelShape> levels{{92, 160}, {46, 80}, {23, 40}, {12, 20}};
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(-0.05, 1.05);
  std::exponential_distribution<double> exponential(kLevels * kPoints);  // they add up to 1 or so
  // The border holds numbers like the rest: none of them may reach an output.
  const DeviceArray<float16> value(
      random_halves(static_cast<std::size_t>(kBatch * kLength * kChannels), 1, [&] { return normal(random); }));
  const DeviceArray<float16> locations(random_halves(
      static_cast<std::size_t>(kBatch * kQueries * kLevels * kPoints * 2), 2, [&] { return uniform(random); }));
  const DeviceArray<float16> weights(random_halves(static_cast<std::size_t>(kBatch * kQueries * kLevels * kPoints), 3,
                                                   [&] { return exponential(random); }));
  const Device gpu{DeviceType::cuda, 0};
  const ConstTensorView value_view(view(value.get(), {kBatch, kLength, 1, kChannels}, gpu));
  const ConstTensorView location_view(view(locations.get(), {kBatch, kQueries, 1, kLevels, kPoints, 2}, gpu));
  const ConstTensorView weight_view(view(weights.get(), {kBatch, kQueries, 1, kLevels, kPoints}, gpu));
  double allowed = 0;
  const auto run = [&](std::string_view variant) {
    const DeviceArray<float16> output(static_cast<std::size_t>(kElements));  // full of NaN
    const TensorView output_view = view(output.get(), {kBatch, kQueries, kChannels}, gpu);
    const MsDeformAttnOptions options{.bordered_value = true, .variant = std::string(variant)};
    allowed = op::half_arithmetic_error(
        op::make_problem(value_view, levels, location_view, weight_view, output_view, options));
    ms_deform_attn(value_view, levels, location_view, weight_view, output_view, options);
    check_cuda(cudaDeviceSynchronize(), variant);
    return output.values();
  };
  const std::vector<float16> original = run("original");
  for (const std::string_view variant : kPublished) {
    if (variant == "original") continue;
    const std::vector<float16> other = run(variant);
    std::int64_t equal = 0;
    double largest = 0;
    for (std::size_t i = 0; i < other.size(); ++i) {
      const auto a = static_cast<float>(original[i]);
      const auto b = static_cast<float>(other[i]);
      equal += a == b;
      largest = std::max(largest, static_cast<double>(std::abs(a - b)));
    }
    EXPECT_EQ(equal, kElements) << variant << ": largest difference from original " << largest;
  }
  // Against variants that compute in f32, and these against each other: one rounding to f16 apart.
  const std::vector<float16> vectors = run("vector16");
  for (const std::string_view variant : {"level_per_thread", "shuffled_samples", "tma_resident"}) {
    if (!runs_here(op::variants(), variant)) continue;
    const std::vector<float16> other = run(variant);
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < other.size(); ++i) {
      const double a = static_cast<float>(other[i]);
      const double b = static_cast<float>(vectors[i]);
      difference += (a - b) * (a - b);
      norm += b * b;
    }
    EXPECT_LT(std::sqrt(difference / norm), 4e-4) << variant;
  }
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < original.size(); ++i) {
    const double a = static_cast<float>(original[i]);
    const double b = static_cast<float>(vectors[i]);
    difference += (a - b) * (a - b);
    norm += b * b;
  }
  EXPECT_LT(std::sqrt(difference / norm), allowed);
  RecordProperty("relative_error_of_f16_arithmetic", std::to_string(std::sqrt(difference / norm)));
}

}  // namespace
}  // namespace tmaops::test
