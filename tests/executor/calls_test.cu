// Calls of operators that `tmaops verify` has no words for.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/cuda_status.hpp"
#include "executor/findings.hpp"
#include "tmaops/error.hpp"
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

/// A dependent launch may begin while the kernel before it, here the same one, still runs.
TEST(executor_calls, of_a_plan_that_runs_twice_with_dependent_launch_keep_the_rules) {
  const Trajectory on;
  const Plan plan = plan_resample(on.values.on(kExecutor), on.times.on(kExecutor), on.targets.on(kExecutor),
                                  on.output.on(kExecutor), {.dependent_launch = true});
  expect_no_finding([&] {
    for (int run = 0; run < 2; ++run) plan.run(nullptr);
  });
}

}  // namespace
}  // namespace tmaops::executor
