// Calls of operators that `tmaops verify` has no words for.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/cuda_status.hpp"
#include "executor/findings.hpp"
#include "tmaops/error.hpp"
#include "tmaops/ms_deform_attn.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::executor {
namespace {

constexpr Device kExecutor{DeviceType::cuda, 0};

/// A tensor in the executor's memory, which the host may read and write.
template <class T>
class Tensor {
 public:
  Tensor(DType dtype, const Layout& layout) : dtype_(dtype), layout_(layout) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(layout.size()) * sizeof(T)), "test");
    at_ = static_cast<T*>(memory);
    for (std::int64_t i = 0; i < layout.size(); ++i) at_[i] = T{};
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { cudaFree(at_); }
  TensorView on(Device device) const { return {at_, dtype_, layout_, device}; }
  T& operator[](std::int64_t i) const { return at_[i]; }
  std::vector<T> values() const { return {at_, at_ + layout_.size()}; }

 private:
  DType dtype_;
  Layout layout_;
  T* at_ = nullptr;
};

/// Under every schedule.
template <class Call>
void expect_no_finding(const Call& call) {
  for (const Schedule schedule : kSchedules) {
    set_options({.schedule = schedule});
    try {
      call();
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
    for (const Finding& finding : take_findings()) ADD_FAILURE() << to_text(finding);
  }
  set_options({});
}

struct Trajectory {
  static constexpr std::int64_t kSamples = 60, kTargets = 100, kChannels = 64;
  Tensor<float> values{DType::f32, Layout::contiguous({1, kSamples, kChannels})};
  Tensor<float> times{DType::f32, Layout::contiguous({1, kSamples})};
  Tensor<float> targets{DType::f32, Layout::contiguous({1, kTargets})};
  Tensor<float> output{DType::f32, Layout::contiguous({1, kTargets, kChannels})};
  Trajectory() {
    for (std::int64_t i = 0; i < kSamples * kChannels; ++i) values[i] = std::sin(static_cast<float>(i * i % 97));
    for (std::int64_t i = 0; i < kSamples; ++i) times[i] = static_cast<float>(i);
    for (std::int64_t i = 0; i < kTargets; ++i) targets[i] = static_cast<float>(i) * 0.59f;
  }
};

TEST(executor_calls, of_groups_of_quaternions_keep_the_rules) {
  const Trajectory on;
  std::vector<ChannelGroup> quaternions;
  for (std::int64_t first = 0; first < Trajectory::kChannels; first += 4)
    quaternions.push_back({first, 4, Interpolation::slerp});
  const auto call = [&](Device device) {
    resample(on.values.on(device), on.times.on(device), on.targets.on(device), on.output.on(device),
             {.channel_groups = quaternions});
  };
  call({});
  const std::vector<float> wanted = on.output.values();
  expect_no_finding([&] { call(kExecutor); });
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(on.output.values()[i], wanted[i], 1e-3f) << i;
}

TEST(executor_calls, of_resample_violations_keep_the_rules) {
  const Trajectory on;
  on.times[7] = 3;  // falls
  on.targets[50] = std::nanf("");
  const Tensor<std::int64_t> counts(DType::i64, Layout::contiguous({kResampleViolations}));
  const auto call = [&](Device device) {
    resample_violations(on.times.on(device), on.targets.on(device), counts.on(device));
  };
  call({});
  const std::vector<std::int64_t> wanted = counts.values();
  expect_no_finding([&] { call(kExecutor); });
  EXPECT_EQ(counts.values(), wanted);
}

/// The targets of a tile are not where the mean pace says, so that its first window is the wrong one.
TEST(executor_calls, of_resample_backward_at_a_changing_pace_keep_the_rules) {
  constexpr std::int64_t kSamples = 3000, kTargets = 3000, kChannels = 8;
  const Tensor<float> times(DType::f32, Layout::contiguous({1, kSamples}));
  const Tensor<float> targets(DType::f32, Layout::contiguous({1, kTargets}));
  const Tensor<float> gradient(DType::f32, Layout::contiguous({1, kTargets, kChannels}));
  const Tensor<float> made(DType::f32, Layout::contiguous({1, kSamples, kChannels}));
  for (std::int64_t i = 0; i < kSamples; ++i) times[i] = static_cast<float>(i);
  for (std::int64_t i = 0; i < kTargets; ++i) {
    const double at = static_cast<double>(i) / static_cast<double>(kTargets);
    targets[i] = static_cast<float>(kSamples * at * (0.5 + 0.5 * at));
    gradient[i * kChannels] = 1;
  }
  const auto call = [&](Device device, const char* variant) {
    resample_backward(times.on(device), targets.on(device), gradient.on(device), made.on(device), {.variant = variant});
  };
  call({}, "reference_backward");
  const std::vector<float> wanted = made.values();
  expect_no_finding([&] { call(kExecutor, "window_gather"); });
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(made.values()[i], wanted[i], 1e-4f) << i;
}

/// Runs of a plan by dependent launch: one may begin while the kernel before it still runs.
void run_twice(const Plan& plan) {
  expect_no_finding([&] {
    for (int run = 0; run < 2; ++run) plan.run(nullptr);
  });
}

/// Without the value's gradient no memory is cleared in front of the kernel, which would wait for what came before.
TEST(executor_calls, of_attention_backward_without_the_values_gradient_keep_the_rules) {
  constexpr std::int64_t kQueries = 20, kHeads = 2, kChannels = 32, kPoints = 4;
  const std::vector<LevelShape> levels{{6, 8}, {3, 4}};
  const Layout pairs = Layout::contiguous({1, kQueries, kHeads, 2, kPoints, 2});
  const Layout points = Layout::contiguous({1, kQueries, kHeads, 2, kPoints});
  const Tensor<float> value(DType::f32, Layout::contiguous({1, 60, kHeads, kChannels}));
  const Tensor<float> locations(DType::f32, pairs);
  const Tensor<float> weights(DType::f32, points);
  const Tensor<float> gradient(DType::f32, Layout::contiguous({1, kQueries, kHeads * kChannels}));
  const Tensor<float> of_locations(DType::f32, pairs);
  const Tensor<float> of_weights(DType::f32, points);
  for (std::int64_t i = 0; i < pairs.size(); ++i) locations[i] = 0.5f + 0.4f * std::sin(static_cast<float>(i));
  const auto gradients = [&](Device device) {
    return MsDeformAttnGradients{.sampling_locations = of_locations.on(device),
                                 .attention_weights = of_weights.on(device)};
  };
  for (const char* variant : {"merged_atomics_backward", "vector_atomics_backward", "warp_atomics_backward"})
    run_twice(plan_ms_deform_attn_backward(value.on(kExecutor), levels, locations.on(kExecutor), weights.on(kExecutor),
                                           gradient.on(kExecutor), gradients(kExecutor),
                                           {.variant = variant, .dependent_launch = true}));
}

TEST(executor_calls, of_packed_rows_keep_the_rules) {
  const Trajectory on;
  const Tensor<std::int64_t> samples(DType::i64, Layout::contiguous({3}));
  const Tensor<std::int64_t> targets(DType::i64, Layout::contiguous({3}));
  samples[1] = 20;
  samples[2] = Trajectory::kSamples;
  targets[1] = 70;
  targets[2] = Trajectory::kTargets;
  const auto row = [](const TensorView& view, std::int64_t rows, std::int64_t channels) {
    return TensorView{view.data, view.dtype,
                      channels == 0 ? Layout::contiguous({rows}) : Layout::contiguous({rows, channels}), view.device};
  };
  const ResampleOptions options{.source_offset_tensor = samples.on(kExecutor),
                                .target_offset_tensor = targets.on(kExecutor),
                                .dependent_launch = true};
  const TensorView times = row(on.times.on(kExecutor), Trajectory::kSamples, 0);
  const TensorView wanted = row(on.targets.on(kExecutor), Trajectory::kTargets, 0);
  const TensorView values = row(on.values.on(kExecutor), Trajectory::kSamples, Trajectory::kChannels);
  const TensorView output = row(on.output.on(kExecutor), Trajectory::kTargets, Trajectory::kChannels);
  run_twice(plan_resample(values, times, wanted, output, options));
  run_twice(plan_resample_backward(times, wanted, output, values, options));
  const std::vector<std::int64_t> of_samples = samples.values(), of_targets = targets.values();
  run_twice(plan_resample_backward(times, wanted, output, values,
                                   {.source_offsets = of_samples,
                                    .target_offsets = of_targets,
                                    .variant = "window_gather",
                                    .dependent_launch = true}));
}

TEST(executor_calls, of_a_plan_that_runs_twice_with_dependent_launch_keep_the_rules) {
  const Trajectory on;
  run_twice(plan_resample(on.values.on(kExecutor), on.times.on(kExecutor), on.targets.on(kExecutor),
                          on.output.on(kExecutor), {.dependent_launch = true}));
}

}  // namespace
}  // namespace tmaops::executor
