// The default variant on a GPU, chosen without one: decoders and encoders get different kernels.
#include <gtest/gtest.h>

#include <string>

#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/forward/gpu/tma_resident/near_levels.hpp"
#include "ops/ms_deform_attn/problem.hpp"
#include "support/expect_error.hpp"
#include "support/gpus.hpp"

namespace tmaops::test {
namespace {

namespace forward = ops::ms_deform_attn;

constexpr Device kGpu{DeviceType::cuda, 0};

DeviceInfo h200() { return made_up_gpu(90); }

forward::Problem problem_of(std::int64_t batch, std::int64_t queries, std::int64_t channels) {
  forward::Problem problem;
  problem.batch = batch;
  problem.heads = 8;
  problem.channels = channels;
  problem.queries = queries;
  problem.length = 100 * 167;
  problem.points = 4;
  problem.levels = {{.height = 100, .width = 167, .points = 4}};
  problem.value_dtype = problem.output_dtype = problem.location_dtype = problem.weight_dtype = DType::f16;
  problem.map_bytes = problem.length * problem.heads * channels * 2;
  problem.device = kGpu;
  return problem;
}

bool built() {
  for (const auto& variant : forward::variants())
    if (variant.name == "shuffled_samples") return variant.built();
  return false;
}

TEST(MsDeformAttnSelect, few_queries_are_passed_round_by_shuffles) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  for (const std::int64_t batch : {1, 8})
    EXPECT_EQ(forward::select(problem_of(batch, 300, 32), h200(), "").variant->name, "shuffled_samples") << batch;
}

TEST(MsDeformAttnSelect, so_are_many_of_one_level_and_wide_channels_but_no_odd_ones) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  EXPECT_EQ(forward::select(problem_of(48, 15422, 32), h200(), "").name(), "shuffled_samples/1 group");
  EXPECT_EQ(forward::select(problem_of(1, 30, 64), h200(), "").name(), "shuffled_samples/1 group");
  EXPECT_EQ(forward::select(problem_of(1, 30, 128), h200(), "").name(), "shuffled_samples/1 group");
  EXPECT_EQ(forward::select(problem_of(1, 30, 256), h200(), "").name(), "shuffled_samples/1 group");
  EXPECT_EQ(forward::select(problem_of(1, 300, 31), h200(), "").variant->name, "channel_per_thread");
}

forward::Problem four_levels(std::int64_t batch, std::int64_t queries, DType dtype, std::int64_t points,
                             std::int64_t third_width = 42) {
  forward::Problem problem = problem_of(batch, queries, 32);
  problem.value_dtype = problem.output_dtype = problem.location_dtype = problem.weight_dtype = dtype;
  problem.points = 4 * points;
  problem.levels = {{.height = 100, .width = 167, .pitch = 167, .points = points},
                    {.height = 50, .width = 84, .pitch = 84, .points = points},
                    {.height = 25, .width = third_width, .pitch = third_width, .points = points},
                    {.height = 13, .width = 21, .pitch = 21, .points = points}};
  return problem;
}

TEST(MsDeformAttnSelect, as_many_groups_share_an_item_as_run_all_at_once) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  const auto chosen = [](const forward::Problem& problem) { return forward::select(problem, h200(), "").name(); };
  EXPECT_EQ(chosen(four_levels(1, 300, DType::f16, 4)), "level_per_thread/4 groups");
  EXPECT_EQ(chosen(four_levels(2, 300, DType::f16, 4)), "level_per_thread/4 groups");
  EXPECT_EQ(chosen(four_levels(4, 300, DType::f16, 4)), "level_per_thread/2 groups");
  EXPECT_EQ(chosen(four_levels(8, 300, DType::f16, 4)), "level_per_thread/1 group");
  EXPECT_EQ(chosen(four_levels(1, 300, DType::f32, 4)), "level_per_thread/2 groups");
  EXPECT_EQ(chosen(four_levels(4, 300, DType::f32, 4)), "level_per_thread/1 group");
  EXPECT_EQ(chosen(four_levels(1, 300, DType::f16, 3)), "shuffled_samples/4 groups");
  EXPECT_EQ(chosen(problem_of(1, 300, 32)), "shuffled_samples/1 group") << "a group has levels of its own";
  EXPECT_EQ(chosen(problem_of(8, 300, 32)), "shuffled_samples/1 group");
}

TEST(MsDeformAttnSelect, a_configuration_can_be_asked_for) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  const forward::Problem problem = four_levels(8, 300, DType::f16, 4);
  EXPECT_EQ(forward::select(problem, h200(), "level_per_thread/4 groups").config.groups, 4);
  EXPECT_EQ(forward::select(problem, h200(), "level_per_thread").config.groups, 1);
  expect_error(
      ErrorCode::variant_refuses, [&] { forward::select(problem, h200(), "level_per_thread/3 groups"); },
      "level_per_thread/3 groups");
}

TEST(MsDeformAttnSelect, calls_with_fused_steps_get_the_kernel_of_plain_ones_where_it_takes_them) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  forward::Problem problem = four_levels(2, 22223, DType::f16, 4);
  problem.softmax = true;
  problem.reference_components = 2;
  const auto chosen = [](const forward::Problem& of) {
    return std::string(forward::select(of, h200(), "").variant->name);
  };
  EXPECT_EQ(chosen(problem), "tma_resident");
  const auto changed = [&](const auto& change) {
    forward::Problem other = problem;
    change(other);
    return chosen(other);
  };
  EXPECT_EQ(changed([](auto& p) { p.location_dtype = p.weight_dtype = DType::f32; }), "tma_resident");
  EXPECT_EQ(changed([](auto& p) { p.location_dtype = p.weight_dtype = DType::bf16; }), "shuffled_samples");
  EXPECT_EQ(changed([](auto& p) { p.reference_components = 4; }), "level_per_thread");
  EXPECT_EQ(changed([](auto& p) { p.softmax = false; }), "level_per_thread");
  EXPECT_EQ(changed([](auto& p) { p.masked = true; }), "shuffled_samples");
  EXPECT_EQ(changed([](auto& p) { p.dense_references = false; }), "level_per_thread");
  EXPECT_EQ(changed([](auto& p) { p.queries = 300; }), "level_per_thread");
  EXPECT_EQ(changed([](auto& p) { p.output_dtype = DType::f32; }), "shuffled_samples");
  problem = four_levels(48, 15422, DType::f16, 8);
  problem.softmax = true;
  problem.reference_components = 2;
  EXPECT_EQ(chosen(problem), "tma_resident");
  EXPECT_EQ(changed([](auto& p) { p.location_dtype = p.weight_dtype = DType::f32; }), "shuffled_samples")
      << "f32 logits of eight points";
}

TEST(MsDeformAttnSelect, levels_stay_in_shared_memory_for_many_queries_of_an_image) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  const auto chosen = [](std::int64_t batch, std::int64_t queries, DType dtype, std::int64_t third_width,
                         std::int64_t points = 4) {
    return std::string(
        forward::select(four_levels(batch, queries, dtype, points, third_width), h200(), "").variant->name);
  };
  EXPECT_EQ(chosen(2, 22223, DType::f16, 42), "tma_resident");
  EXPECT_EQ(chosen(2, 22223, DType::bf16, 42), "tma_resident");
  EXPECT_EQ(chosen(2, 22223, DType::f32, 42), "shuffled_samples");
  EXPECT_EQ(chosen(2, 16700, DType::f32, 42), "shuffled_samples") << "as many queries as pixels";
  EXPECT_EQ(chosen(2, 8000, DType::f32, 42), "level_per_thread") << "less than half as many";
  EXPECT_EQ(chosen(2, 22223, DType::f16, 142), "level_per_thread");
  EXPECT_EQ(chosen(64, 300, DType::f16, 42), "level_per_thread");
  EXPECT_EQ(chosen(8, 300, DType::f16, 42), "level_per_thread");
}

TEST(MsDeformAttnSelect, the_third_level_of_three_stays_in_shared_memory) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  const auto chosen = [](std::int64_t queries, DType dtype, std::int64_t points, std::int64_t third_width) {
    forward::Problem problem = four_levels(4, queries, dtype, points, third_width);
    problem.levels.pop_back();
    problem.points = 3 * points;
    return std::string(forward::select(problem, h200(), "").variant->name);
  };
  EXPECT_EQ(chosen(21950, DType::bf16, 4, 42), "tma_resident");
  EXPECT_EQ(chosen(21950, DType::bf16, 8, 42), "level_per_thread") << "eight points";
  EXPECT_EQ(chosen(21950, DType::bf16, 4, 100), "level_per_thread") << "2,500 pixels";
  EXPECT_EQ(chosen(300, DType::bf16, 4, 42), "level_per_thread") << "few queries";
  EXPECT_EQ(chosen(21950, DType::f32, 4, 42), "shuffled_samples");
}

TEST(MsDeformAttnSelect, the_last_two_levels_of_five_stay_in_shared_memory) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  const auto chosen = [](DType dtype, std::int64_t points) {
    forward::Problem problem = four_levels(1, 71221, dtype, points);
    problem.levels.insert(problem.levels.begin(), {.height = 200, .width = 267, .pitch = 267, .points = points});
    problem.points = 5 * points;
    return std::string(forward::select(problem, h200(), "").variant->name);
  };
  EXPECT_EQ(chosen(DType::bf16, 4), "tma_resident");
  EXPECT_EQ(chosen(DType::f16, 8), "shuffled_samples") << "eight points";
  EXPECT_EQ(chosen(DType::f32, 4), "shuffled_samples");
}

/// Of all sizes that the third and fourth level may have together.
TEST(MsDeformAttnSelect, levels_stay_in_shared_memory_only_where_it_holds_them) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  for (const int compute_capability : {90, 120}) {
    const DeviceInfo device = made_up_gpu(compute_capability);
    const PretendedDevice pretended(device);
    std::int64_t most = 0;
    int passed_by = 0;
    for (std::int64_t width = 2; width <= 100; ++width) {
      forward::Problem problem = problem_of(2, 22223, 32);
      problem.points = 16;
      problem.levels = {{.height = 100, .width = 167, .pitch = 167, .points = 4},
                        {.height = 50, .width = 84, .pitch = 84, .points = 4},
                        {.height = 40, .width = width, .pitch = width, .points = 4},
                        {.height = 8, .width = 14, .pitch = 14, .points = 4}};
      const auto& variant = *forward::select(problem, device, "").variant;
      if (variant.name != "tma_resident") {
        ++passed_by;
        continue;
      }
      const std::int64_t bytes = forward::tma_resident::shared_bytes(problem);
      EXPECT_LE(bytes, device.shared_memory_per_block) << width;
      EXPECT_LE(bytes, variant.attributes.shared_memory) << width;
      most = std::max(most, bytes);
    }
    EXPECT_GT(passed_by, 0);
    EXPECT_GT(most, compute_capability == 90 ? 150000 : 90000);
  }
}

TEST(MsDeformAttnBackwardSelect, sorts_samples_where_many_meet_or_threads_are_few_and_lists_deterministic_ones) {
  if (!built()) GTEST_SKIP() << "no GPU kernels in this build";
  ops::ms_deform_attn_backward::Problem problem;
  problem.grad_value = true;
  const auto chosen = [&](std::int64_t batch, std::int64_t queries, DType dtype, bool deterministic) {
    problem.forward = problem_of(batch, queries, 32);
    problem.forward.points = 16;
    problem.forward.value_dtype = problem.forward.output_dtype = dtype;
    problem.deterministic = deterministic;
    return std::string(ops::ms_deform_attn_backward::select(problem, h200(), "").variant->name);
  };
  const std::int64_t enough = problem_of(2, 1, 32).length / 4;  // four samples per pixel
  for (const DType dtype : {DType::f16, DType::f32}) {
    EXPECT_EQ(chosen(2, enough + 1, dtype, false), "merged_atomics_backward");
    EXPECT_EQ(chosen(2, enough - 1, dtype, false), "vector_atomics_backward");
    EXPECT_EQ(chosen(8, 300, dtype, false), "vector_atomics_backward");
    EXPECT_EQ(chosen(1, 300, dtype, false), "merged_atomics_backward");
    EXPECT_EQ(chosen(8, 300, dtype, true), "pixel_lists_backward");
  }
}

}  // namespace
}  // namespace tmaops::test
