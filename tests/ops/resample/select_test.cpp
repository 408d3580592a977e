// Which variant and configuration a resampling gets when the caller names none, on a GPU that is not there.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "ops/resample/backward/problem.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/problem.hpp"
#include "ops/resample/resample_cases.hpp"
#include "support/as_if_built.hpp"
#include "support/expect_error.hpp"
#include "support/gpus.hpp"

namespace tmaops::test {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};

struct Case {
  std::array<std::int64_t, 4> shape;  // B, S, T, D
  DType values;
  DType times;
  Interpolation interpolation;
  std::string_view chosen;
};

/// The cases of configs/*.yaml, then shapes around the limits between variants.
const std::vector<Case> kCases{
    {{32, 100, 256, 32}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_lane/2 chunks"},
    {{32, 500, 256, 256}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows_lane/2 chunks"},
    {{256, 500, 250, 32}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows_lane/2 chunks"},
    {{256, 500, 250, 128}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows_lane/2 chunks"},
    {{64, 4096, 1024, 32}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows_lane/1 chunk"},
    {{64, 1000, 500, 512}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows_lane/2 chunks"},
    {{256, 100, 2048, 256}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{64, 1024, 4096, 64}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{1024, 512, 512, 128}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows_lane/4 chunks"},
    {{1024, 512, 512, 128}, DType::bf16, DType::f32, Interpolation::previous, "touched_rows_lane/4 chunks"},
    {{1024, 512, 512, 128}, DType::bf16, DType::f32, Interpolation::nearest, "touched_rows_lane/4 chunks"},
    {{1024, 512, 512, 128}, DType::bf16, DType::f32, Interpolation::cubic, "curve_window"},
    {{1024, 512, 512, 128}, DType::bf16, DType::f32, Interpolation::slerp, "curve_window"},
    {{1024, 512, 512, 128}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{1024, 512, 512, 128}, DType::bf16, DType::i64, Interpolation::linear, "bulk_window_block"},
    {{1024, 512, 512, 128}, DType::f32, DType::f32, Interpolation::linear, "touched_rows_lane/2 chunks"},
    {{1024, 512, 512, 128}, DType::f32, DType::f32, Interpolation::previous, "touched_rows_lane/2 chunks"},
    {{1024, 512, 512, 128}, DType::f32, DType::f32, Interpolation::nearest, "touched_rows_lane/2 chunks"},
    {{1024, 512, 512, 128}, DType::f32, DType::f32, Interpolation::cubic, "curve_window"},
    {{1024, 512, 512, 128}, DType::f32, DType::f32, Interpolation::slerp, "curve_window"},
    {{8, 100000, 50000, 14}, DType::bf16, DType::f32, Interpolation::linear, "narrow_rows_plain"},
    {{4096, 100, 50, 7}, DType::bf16, DType::f32, Interpolation::linear, "narrow_rows_plain/4 trajectories"},
    {{256, 500, 250, 14}, DType::bf16, DType::f32, Interpolation::linear, "narrow_rows_plain"},
    {{256, 500, 250, 14}, DType::f32, DType::f32, Interpolation::linear, "narrow_rows_plain"},
    {{64, 1000, 500, 72}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{64, 1000, 500, 72}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{64, 1000, 500, 72}, DType::f32, DType::f32, Interpolation::linear, "touched_rows"},
    {{64, 1000, 500, 72}, DType::f32, DType::f64, Interpolation::linear, "touched_rows"},
    {{64, 1000, 1000, 72}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{64, 1000, 1000, 72}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{64, 1000, 1000, 72}, DType::f32, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{64, 1000, 1000, 72}, DType::f32, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{64, 1000, 2000, 72}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{64, 1000, 2000, 72}, DType::f32, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{64, 1000, 2000, 72}, DType::f32, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{2048, 1000, 1000, 24}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{2048, 1000, 1000, 24}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{2048, 1000, 500, 24}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows"},
    {{2048, 1000, 500, 24}, DType::bf16, DType::f64, Interpolation::linear, "touched_rows"},
    {{32, 100, 256, 768}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{32, 100, 256, 768}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{32, 100, 256, 768}, DType::f32, DType::f32, Interpolation::linear, "bulk_window"},
    {{32, 100, 256, 768}, DType::f32, DType::f64, Interpolation::linear, "bulk_window"},
    {{512, 1000, 4000, 768}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{512, 1000, 4000, 768}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{512, 1000, 4000, 768}, DType::f32, DType::f32, Interpolation::linear, "bulk_window"},
    {{512, 1000, 4000, 768}, DType::f32, DType::f64, Interpolation::linear, "bulk_window"},
    {{512, 1000, 500, 8}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows_lane/1 chunk"},
    {{512, 1000, 500, 8}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{512, 1000, 500, 8}, DType::f32, DType::f32, Interpolation::linear, "touched_rows_lane/2 chunks"},
    {{512, 1000, 500, 8}, DType::f32, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{8, 20, 30, 16}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_lane/2 chunks"},
    {{8, 20, 30, 16}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{8, 20, 30, 16}, DType::f32, DType::f32, Interpolation::linear, "bulk_window_lane/2 chunks"},
    {{8, 20, 30, 16}, DType::f32, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{1024, 512, 512, 64}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows_lane/2 chunks"},
    {{1024, 512, 512, 64}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{1024, 512, 512, 64}, DType::f32, DType::f32, Interpolation::linear, "touched_rows_lane/4 chunks"},
    {{1024, 512, 512, 64}, DType::f32, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{1024, 512, 1024, 64}, DType::bf16, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{1024, 512, 1024, 64}, DType::bf16, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{1024, 512, 1024, 64}, DType::f32, DType::f32, Interpolation::linear, "bulk_window_block"},
    {{1024, 512, 1024, 64}, DType::f32, DType::f64, Interpolation::linear, "bulk_window_block"},
    {{64, 1001, 500, 72}, DType::bf16, DType::f64, Interpolation::linear, "touched_rows"},
    {{2, 100, 5, 2048}, DType::bf16, DType::f32, Interpolation::linear, "touched_rows"},
    {{2, 100, 5, 2048}, DType::bf16, DType::f64, Interpolation::linear, "touched_rows"},
};

/// A tensor at an address that nobody reads, a multiple of 16 and far from the others.
TensorView tensor(std::uintptr_t number, DType dtype, std::vector<std::int64_t> shape, Device device) {
  void* data = reinterpret_cast<void*>(number << 40);
  const Layout layout =
      shape.size() == 2 ? Layout::contiguous({shape[0], shape[1]}) : Layout::contiguous({shape[0], shape[1], shape[2]});
  return {data, dtype, layout, device};
}

struct Tensors {
  explicit Tensors(const Case& c, Device device = kGpu)
      : values(tensor(1, c.values, {c.shape[0], c.shape[1], c.shape[3]}, device)),
        source_times(tensor(2, c.times, {c.shape[0], c.shape[1]}, device)),
        target_times(tensor(3, c.times, {c.shape[0], c.shape[2]}, device)),
        output(tensor(4, c.values, {c.shape[0], c.shape[2], c.shape[3]}, device)) {}
  TensorView values, source_times, target_times, output;

  ops::resample::Problem problem(const ResampleOptions& options = {}) const {
    return ops::resample::make_problem(values, source_times, target_times, output, options);
  }
};

ops::resample::Problem problem_of(const Case& c) {
  if (c.interpolation != Interpolation::slerp) return Tensors(c).problem({.interpolation = c.interpolation});
  std::vector<ChannelGroup> quaternions;
  for (std::int64_t first = 0; first < c.shape[3]; first += 4) quaternions.push_back({first, 4, Interpolation::slerp});
  return Tensors(c).problem({.channel_groups = quaternions});
}

/// What select() takes on a GPU from a table of which nothing is run: the same in builds with and without kernels.
auto choose(const ops::resample::Problem& problem, const DeviceInfo& device, std::string_view name = "") {
  static const auto table = as_if_built(ops::resample::variants());
  return ops::resample::select(problem, device, name, table);
}

TEST(ResampleSelect, every_measured_case_gets_its_variant_and_configuration) {
  const DeviceInfo device = made_up_gpu(90);
  const PretendedDevice pretended(device);
  for (const Case& c : kCases) {
    const ops::resample::Problem problem = problem_of(c);
    EXPECT_EQ(choose(problem, device).name(), c.chosen) << problem.text();
  }
}

TEST(ResampleSelect, published_kernels_say_what_they_cannot_take) {
  const DeviceInfo device = made_up_gpu(90);
  const PretendedDevice pretended(device);
  const auto reason = [&](const Case& c, std::string_view name) {
    for (const auto& variant : as_if_built(ops::resample::variants()))
      if (variant.name == name) return try_variant(variant, problem_of(c), device).reason;
    return std::string("there is none");
  };
  const auto of = [](std::array<std::int64_t, 4> shape, DType values = DType::bf16, DType times = DType::f32) {
    return Case{shape, values, times, Interpolation::linear, ""};
  };
  for (const std::string_view name : {"baseline", "warp_shuffle", "persistent_warp"}) {
    EXPECT_EQ(reason(of({32, 100, 256, 32}), name), "");
    EXPECT_EQ(reason(of({1, 12288, 256, 7}), name), "");
    EXPECT_EQ(reason(of({1, 12289, 256, 7}), name), "needs trajectories whose timestamps take at most 48 KiB");
  }
  EXPECT_EQ(reason(of({32, 100, 256, 32}), "tensor_window"), "");
  EXPECT_EQ(reason(of({32, 100, 256, 264}), "tensor_window"), "needs rows of at most 256 values, the limit of a box");
  EXPECT_EQ(reason(of({4096, 100, 50, 7}), "tensor_window"),
            "needs rows of a multiple of 16 bytes at multiples of 16 bytes");
}

TEST(ResampleSelect, a_choice_is_named_by_its_own_name) {
  const DeviceInfo device = made_up_gpu(90);
  const PretendedDevice pretended(device);
  for (const Case& c : kCases) {
    const auto choice = choose(problem_of(c), device);
    EXPECT_TRUE(choose(problem_of(c), device, choice.name()) == choice) << choice.name();
  }
  const Case wide{{1024, 512, 512, 128}, DType::bf16, DType::f32, Interpolation::linear, ""};
  EXPECT_EQ(choose(problem_of(wide), device, "touched_rows_lane/1 chunk").config.chunks, 1);
  EXPECT_THROW(choose(problem_of(wide), device, "touched_rows_lane/3 chunks"), Error);
  EXPECT_EQ(choose(problem_of(wide), device, "persistent_warp").name(), "persistent_warp/2");  // as published
  EXPECT_EQ(choose(problem_of(wide), device, "persistent_warp/8").config.blocks, 8);
}

TEST(ResampleSelect, calls_that_are_not_plain_get_the_general_variant_of_their_family) {
  const DeviceInfo device = made_up_gpu(90);
  const PretendedDevice pretended(device);
  const auto chosen = [&](const Case& c, const ResampleOptions& options) {
    return choose(Tensors(c).problem(options), device).name();
  };
  const Case many{{32, 100, 256, 32}, DType::bf16, DType::f32, Interpolation::linear, ""};
  const Case few{{256, 500, 250, 128}, DType::bf16, DType::f32, Interpolation::linear, ""};
  const Case narrow{{4096, 100, 50, 7}, DType::bf16, DType::f32, Interpolation::linear, ""};
  const Case curved{{1024, 512, 512, 128}, DType::bf16, DType::f32, Interpolation::cubic, ""};
  EXPECT_EQ(chosen(many, {.max_gap = 1.0}), "bulk_window");
  EXPECT_EQ(chosen(few, {.outside = Outside::nan}), "touched_rows");
  const Case short_f64{{256, 500, 250, 32}, DType::bf16, DType::f64, Interpolation::linear, ""};
  EXPECT_EQ(chosen(short_f64, {}), "bulk_window_block");
  EXPECT_EQ(chosen(short_f64, {.interpolation = Interpolation::previous}), "touched_rows");
  EXPECT_EQ(chosen(short_f64, {.outside = Outside::nan}), "touched_rows");
  EXPECT_EQ(chosen(narrow, {.outside = Outside::extrapolate}), "narrow_rows");
  EXPECT_EQ(chosen(curved, {.interpolation = Interpolation::cubic, .max_gap = 1.0}), "curve_window");
  const std::vector<ChannelGroup> mixed{{0, 64, Interpolation::linear}, {64, 64, Interpolation::previous}};
  EXPECT_EQ(chosen(curved, {.channel_groups = mixed}), "curve_window");
}

TEST(ResampleSelect, rows_without_a_fast_kernel_get_a_search_per_target_or_element) {
  const DeviceInfo device = made_up_gpu(90);
  const PretendedDevice pretended(device);
  Tensors wide({{4, 100, 50, 101}, DType::bf16, DType::f32, Interpolation::linear, ""});
  EXPECT_EQ(choose(wide.problem(), device).name(), "warp_search");
  Tensors apart({{4, 100, 50, 8}, DType::bf16, DType::f32, Interpolation::linear, ""});
  apart.values = {apart.values.data, DType::bf16, Layout::strided({4, 100, 8}, {1600, 16, 2}), kGpu};
  EXPECT_EQ(choose(apart.problem(), device).name(), "element_search");
}

TEST(ResampleSelect, short_trajectories_of_narrow_rows_share_a_block) {
  const DeviceInfo device = made_up_gpu(90);
  const PretendedDevice pretended(device);
  for (const auto& [shape, dtype, name] : std::vector<std::tuple<std::array<std::int64_t, 4>, DType, std::string>>{
           {{4096, 100, 50, 7}, DType::f16, "narrow_rows_plain/4 trajectories"},
           {{4096, 100, 102, 7}, DType::bf16, "narrow_rows_plain/2 trajectories"},
           {{4096, 100, 50, 6}, DType::bf16, "narrow_rows_plain/4 trajectories"},  // rows of whole words
           {{4096, 100, 50, 7}, DType::f32, "narrow_rows_plain/4 trajectories"},
           {{4096, 1000, 500, 7}, DType::bf16, "narrow_rows_plain"}}) {  // long trajectories
    const Tensors tensors({shape, dtype, DType::f32, Interpolation::linear, ""});
    EXPECT_EQ(choose(tensors.problem(), device).name(), name) << tensors.problem().text();
  }
}

TEST(ResampleSelect, modes_over_an_interval_are_refused_on_a_gpu_by_every_variant) {
  const DeviceInfo device = made_up_gpu(90);
  const PretendedDevice pretended(device);
  for (const Interpolation mode : {Interpolation::mean, Interpolation::sum, Interpolation::min, Interpolation::max,
                                   Interpolation::any, Interpolation::count, Interpolation::lowpass}) {
    const Tensors tensors({{256, 500, 250, 32}, DType::bf16, DType::f32, mode, ""});
    const ops::resample::Problem problem = tensors.problem({.interpolation = mode});
    for (const auto& variant : as_if_built(ops::resample::variants()))
      if (variant.device == DeviceType::cuda) {
        EXPECT_FALSE(try_variant(variant, problem, device)) << variant.name;
      }
    expect_error(
        ErrorCode::variant_refuses, [&] { choose(problem, device); }, "element_search",
        "mean, sum, min, max, any, count and lowpass run on the CPU");
    if (!ops::resample::has_gradient(mode)) continue;
    const auto backward = ops::resample_backward::make_problem(
        tensors.source_times, tensors.target_times, tensors.output, tensors.values,
        {.interpolation = mode, .values = tensor(5, DType::bf16, {256, 500, 32}, kGpu)});
    for (const auto& variant : as_if_built(ops::resample_backward::variants()))
      if (variant.device == DeviceType::cuda) {
        EXPECT_FALSE(try_variant(variant, backward, device)) << variant.name;
      }
  }
}

TEST(ResampleSelect, on_the_cpu_the_first_of_the_table) {
  for (const auto& [shape, dtype] : std::vector<std::pair<std::array<std::int64_t, 4>, DType>>{
           {{32, 500, 256, 256}, DType::f32}, {{256, 500, 250, 14}, DType::f16}, {{64, 4096, 1024, 32}, DType::bf16}}) {
    const Tensors tensors({shape, dtype, DType::f32, Interpolation::linear, ""}, {DeviceType::cpu, 0});
    EXPECT_EQ(ops::resample::select(tensors.problem(), device_info({DeviceType::cpu, 0})).name(),
              cpu_variants("resample").front());
  }
}

TEST(ResampleBackwardSelect, a_window_of_gradients) {
  const DeviceInfo device = made_up_gpu(90);
  const PretendedDevice pretended(device);
  const auto table = as_if_built(ops::resample_backward::variants());
  for (const auto& [shape, name] :
       std::vector<std::pair<std::array<std::int64_t, 4>, std::string>>{{{1024, 512, 512, 128}, "window_gather"},
                                                                        {{256, 500, 250, 128}, "window_gather"},
                                                                        {{8, 100000, 50000, 14}, "window_gather"},
                                                                        {{4096, 100, 50, 7}, "window_gather"},
                                                                        {{256, 100, 2048, 256}, "window_gather"}}) {
    const Tensors tensors({shape, DType::bf16, DType::f32, Interpolation::linear, ""});
    const auto problem = ops::resample_backward::make_problem(tensors.source_times, tensors.target_times,
                                                              tensors.output, tensors.values, {});
    EXPECT_EQ(ops::resample_backward::select(problem, device, "", table).name(), name) << problem.text();
  }
}

}  // namespace
}  // namespace tmaops::test
