// Every kernel that can be chosen, on small problems of its family: no finding under any schedule, and the results of
// the reference.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/cuda_status.hpp"
#include "executor/findings.hpp"
#include "tmaops/error.hpp"
#include "tmaops/gemm.hpp"
#include "tmaops/ms_deform_attn.hpp"
#include "tmaops/registry.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::executor {
namespace {

using Shape = std::initializer_list<std::int64_t>;

/// A tensor in the executor's memory, which the host may read and write.
class Tensor {
 public:
  Tensor(DType dtype, const Layout& layout) : dtype_(dtype), layout_(layout) {
    check_cuda(cudaMalloc(&memory_, bytes()), "test");
    std::memset(memory_, 0xFF, bytes());
  }
  Tensor(DType dtype, const Layout& layout, const std::function<double()>& next) : Tensor(dtype, layout) {
    for (std::int64_t i = 0; i < layout.size(); ++i) set(i, next());
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { cudaFree(memory_); }

  TensorView on(Device device) const { return {memory_, dtype_, layout_, device}; }
  double operator[](std::int64_t i) const {
    switch (dtype_) {
      case DType::f32:
        return static_cast<float*>(memory_)[i];
      case DType::f16:
        return static_cast<double>(static_cast<float16*>(memory_)[i]);
      case DType::bf16:
        return static_cast<double>(static_cast<bfloat16*>(memory_)[i]);
      default:
        return static_cast<double>(static_cast<std::int64_t*>(memory_)[i]);
    }
  }
  std::int64_t size() const { return layout_.size(); }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(layout_.size()) * size_of(dtype_); }
  void set(std::int64_t i, double value) {
    switch (dtype_) {
      case DType::f32:
        static_cast<float*>(memory_)[i] = static_cast<float>(value);
        return;
      case DType::f16:
        static_cast<float16*>(memory_)[i] = float16(value);
        return;
      case DType::bf16:
        static_cast<bfloat16*>(memory_)[i] = bfloat16(value);
        return;
      default:
        static_cast<std::int64_t*>(memory_)[i] = static_cast<std::int64_t>(value);
    }
  }
  DType dtype_;
  Layout layout_;
  void* memory_ = nullptr;
};

/// Numbers from `low` to `high`, the same in every run.
std::function<double()> numbers(double low, double high, unsigned seed) {
  return [random = std::mt19937(seed), range = std::uniform_real_distribution<double>(low, high)]() mutable {
    return range(random);
  };
}

constexpr Device kExecutor{DeviceType::cuda, 0};

/// A call that writes `output` by a variant of the device.
struct Problem {
  std::string name;
  std::function<void(Device, const std::string& variant)> call;
  std::vector<const Tensor*> outputs;
  double tolerance;  // of the largest value
};

std::vector<double> values_of(const Problem& problem) {
  std::vector<double> values;
  for (const Tensor* output : problem.outputs)
    for (std::int64_t i = 0; i < output->size(); ++i) values.push_back((*output)[i]);
  return values;
}

/// Runs ways to compute problems under every schedule. Each must take one of them.
void expect_kernels_keep_the_rules(std::string_view op, const std::vector<Problem>& problems,
                                   const std::vector<std::string>& ways) {
  const std::string reference(variants(op).back().name);
  std::vector<std::vector<double>> wanted;
  for (const Problem& problem : problems) {
    problem.call({}, reference);
    wanted.push_back(values_of(problem));
  }
  for (const std::string& name : ways) {
    int ran = 0;
    std::string refusals;
    for (std::size_t p = 0; p < problems.size(); ++p) {
      const Problem& problem = problems[p];
      for (const Schedule schedule : {Schedule::random, Schedule::lazy, Schedule::starving}) {
        set_options({.seed = 1, .schedule = schedule});
        try {
          problem.call(kExecutor, name);
        } catch (const Error& error) {
          if (error.code() == ErrorCode::variant_refuses) {
            refusals += problem.name + ": " + error.what() + "\n";
            break;
          }
          for (const Finding& finding : take_findings()) ADD_FAILURE() << problem.name << ": " << to_text(finding);
          if (error.code() != ErrorCode::kernel_breaks_rule) ADD_FAILURE() << name << ": " << error.what();
          ++ran;
          continue;
        }
        ++ran;
        const std::vector<double> got = values_of(problem);
        double largest = 0;
        for (const double value : wanted[p]) largest = std::max(largest, std::fabs(value));
        for (std::size_t i = 0; i < got.size(); ++i)
          if (!(std::fabs(got[i] - wanted[p][i]) <= problem.tolerance * largest)) {
            ADD_FAILURE() << name << ", " << problem.name << ", " << to_string(schedule) << ": element " << i << " is "
                          << got[i] << ", not " << wanted[p][i];
            break;
          }
      }
    }
    EXPECT_GT(ran, 0) << name << " takes none of the problems:\n" << refusals;
  }
  set_options({});
}

/// Every variant of an operator that can be chosen.
std::vector<std::string> kernels_of(std::string_view op) {
  std::vector<std::string> names;
  for (const VariantInfo& variant : variants(op))
    if (variant.device == DeviceType::cuda && !variant.study) names.emplace_back(variant.name);
  return names;
}

TEST(executor_kernels, of_gemm_keep_the_rules) {
  struct Case {
    std::int64_t m, n, k;
    bool a_row_major, b_row_major;
    DType in, out;
    Activation activation = Activation::none;
  };
  std::vector<std::unique_ptr<Tensor>> kept;
  std::vector<Problem> problems;
  for (const Case& one : {Case{256, 256, 256, true, false, DType::f16, DType::f16},
                          Case{256, 256, 256, false, true, DType::bf16, DType::f32},
                          Case{256, 128, 1024, true, false, DType::f16, DType::f16},
                          Case{128, 384, 200, true, false, DType::f16, DType::f16, Activation::gelu},
                          Case{512, 144, 200, true, false, DType::f16, DType::f16},
                          Case{768, 384, 64, true, false, DType::f16, DType::f16},
                          Case{70, 45, 33, true, true, DType::f16, DType::f16, Activation::relu},
                          Case{72, 200, 1096, true, false, DType::f16, DType::f16},
                          Case{9, 136, 2056, true, true, DType::f16, DType::f16}}) {
    const auto layout = [](std::int64_t rows, std::int64_t columns, bool row_major) {
      return Layout::strided({rows, columns}, {row_major ? columns : 1, row_major ? 1 : rows});
    };
    const auto add = [&](auto... arguments) { return kept.emplace_back(std::make_unique<Tensor>(arguments...)).get(); };
    const Tensor* a = add(one.in, layout(one.m, one.k, one.a_row_major), numbers(-1, 1, 1));
    const Tensor* b = add(one.in, layout(one.k, one.n, one.b_row_major), numbers(-1, 1, 2));
    const Tensor* d = add(one.out, layout(one.m, one.n, true));
    problems.push_back({std::to_string(one.m) + "x" + std::to_string(one.n) + "x" + std::to_string(one.k),
                        [=, activation = one.activation](Device device, const std::string& variant) {
                          gemm(a->on(device), b->on(device), d->on(device),
                               {.activation = activation, .variant = variant, .tuning = "off"});
                        },
                        {d},
                        one.out == DType::f32 ? 1e-5 : 2e-3});
  }
  std::vector<std::string> ways = kernels_of("gemm");
  for (const char* tile : {"128x256t", "128x192c2", "128x192c2t", "128x160c2t"})
    ways.push_back(std::string("wgmma_persistent/") + tile);
  for (const char* tile : {"64x16t", "64x16k8t", "64x64k4", "64x128k4t", "128x96k2t", "128x128k4"})
    ways.push_back(std::string("wgmma_split_k/") + tile);
  expect_kernels_keep_the_rules("gemm", problems, ways);
}

const std::vector<LevelShape> kLevels{{12, 16}, {6, 8}, {3, 4}, {2, 2}};
constexpr std::int64_t kPixels = 12 * 16 + 6 * 8 + 3 * 4 + 2 * 2;

/// The tensors of an attention: one image, four levels.
struct Attention {
  Attention(std::int64_t queries, std::int64_t heads, std::int64_t channels, DType dtype)
      : value(dtype, Layout::contiguous({1, kPixels, heads, channels}), numbers(-1, 1, 3)),
        locations(DType::f32, Layout::contiguous({1, queries, heads, 4, 4, 2}), numbers(-0.1, 1.1, 4)),
        weights(DType::f32, Layout::contiguous({1, queries, heads, 4, 4}), numbers(0, 1, 5)),
        references(DType::f32, Layout::contiguous({1, queries, 4, 2}), numbers(0, 1, 6)),
        output(dtype, Layout::contiguous({1, queries, heads * channels})),
        gradient(DType::f32, Layout::contiguous({1, queries, heads * channels}), numbers(-1, 1, 7)),
        of_value(DType::f32, Layout::contiguous({1, kPixels, heads, channels})),
        of_locations(DType::f32, Layout::contiguous({1, queries, heads, 4, 4, 2})),
        of_weights(DType::f32, Layout::contiguous({1, queries, heads, 4, 4})) {}
  Tensor value, locations, weights, references, output, gradient, of_value, of_locations, of_weights;
};

TEST(executor_kernels, of_ms_deform_attn_keep_the_rules) {
  const Attention half(40, 8, 32, DType::f16);
  const Attention single(20, 2, 20, DType::f32);
  const auto plain = [](const Attention& on) {
    return [&on](Device device, const std::string& variant) {
      ms_deform_attn(on.value.on(device), kLevels, on.locations.on(device), on.weights.on(device), on.output.on(device),
                     {.variant = variant});
    };
  };
  const auto fused = [&half](Device device, const std::string& variant) {
    ms_deform_attn(half.value.on(device), kLevels, half.locations.on(device), half.weights.on(device),
                   half.output.on(device),
                   {.softmax = true, .reference_points = half.references.on(device), .variant = variant});
  };
  expect_kernels_keep_the_rules("ms_deform_attn",
                                {{"f16, 8 heads of 32", plain(half), {&half.output}, 4e-3},
                                 {"f32, 2 heads of 20", plain(single), {&single.output}, 1e-4},
                                 {"softmax and references", fused, {&half.output}, 4e-3}},
                                kernels_of("ms_deform_attn"));
}

TEST(executor_kernels, of_ms_deform_attn_backward_keep_the_rules) {
  const Attention on(20, 2, 32, DType::f32);
  const auto call = [&on](bool deterministic) {
    return [&on, deterministic](Device device, const std::string& variant) {
      ms_deform_attn_backward(on.value.on(device), kLevels, on.locations.on(device), on.weights.on(device),
                              on.gradient.on(device),
                              {.value = on.of_value.on(device),
                               .sampling_locations = on.of_locations.on(device),
                               .attention_weights = on.of_weights.on(device)},
                              {.variant = variant, .deterministic = deterministic});
    };
  };
  const std::vector<const Tensor*> gradients{&on.of_value, &on.of_locations, &on.of_weights};
  expect_kernels_keep_the_rules(
      "ms_deform_attn_backward",
      {{"any order", call(false), gradients, 1e-4}, {"deterministic", call(true), gradients, 1e-4}},
      kernels_of("ms_deform_attn_backward"));
}

/// Times that rise by `step` on average.
std::function<double()> rising(double step, std::int64_t count, unsigned seed) {
  return [next = numbers(0.2, 1.8, seed), step, count, i = std::int64_t{0}, at = 0.0]() mutable {
    if (i++ % count == 0) at = 0;
    return at += step * next();
  };
}

struct Trajectories {
  Trajectories(std::int64_t batch, std::int64_t samples, std::int64_t targets, std::int64_t channels, DType dtype)
      : values(dtype, Layout::contiguous({batch, samples, channels}), numbers(-1, 1, 8)),
        times(DType::f32, Layout::contiguous({batch, samples}), rising(1, samples, 9)),
        wanted(DType::f32, Layout::contiguous({batch, targets}),
               rising(static_cast<double>(samples) / static_cast<double>(targets), targets, 10)),
        output(dtype, Layout::contiguous({batch, targets, channels})),
        gradient(dtype, Layout::contiguous({batch, targets, channels}), numbers(-1, 1, 11)),
        of_values(DType::f32, Layout::contiguous({batch, samples, channels})) {}
  Tensor values, times, wanted, output, gradient, of_values;
};

TEST(executor_kernels, of_resample_keep_the_rules) {
  const Trajectories wide(2, 100, 64, 64, DType::bf16);
  const Trajectories dense(1, 60, 500, 16, DType::bf16);
  const Trajectories long_rows(1, 60, 300, 256, DType::bf16);
  const Trajectories odd(4, 40, 50, 7, DType::bf16);
  const Trajectories rotations(1, 60, 200, 4, DType::f32);
  const auto call = [](const Trajectories& on, Interpolation interpolation) {
    return [&on, interpolation](Device device, const std::string& variant) {
      resample(on.values.on(device), on.times.on(device), on.wanted.on(device), on.output.on(device),
               {.interpolation = interpolation, .variant = variant});
    };
  };
  std::vector<Problem> problems;
  for (const Interpolation interpolation : {Interpolation::linear, Interpolation::previous, Interpolation::cubic}) {
    problems.push_back({"100 rows of 128 bytes", call(wide, interpolation), {&wide.output}, 1e-2});
    problems.push_back({"500 targets of 60 rows", call(dense, interpolation), {&dense.output}, 1e-2});
    problems.push_back({"rows of 14 bytes", call(odd, interpolation), {&odd.output}, 1e-2});
  }
  for (const Interpolation interpolation : {Interpolation::linear, Interpolation::cubic})
    problems.push_back({"rows of 512 bytes", call(long_rows, interpolation), {&long_rows.output}, 1e-2});
  problems.push_back({"slerp", call(rotations, Interpolation::slerp), {&rotations.output}, 2e-2});
  std::vector<ChannelGroup> quaternions;
  for (std::int64_t first = 0; first < 256; first += 4) quaternions.push_back({first, 4, Interpolation::slerp});
  const auto rotate = [&](Device device, const std::string& variant) {
    resample(long_rows.values.on(device), long_rows.times.on(device), long_rows.wanted.on(device),
             long_rows.output.on(device), {.channel_groups = quaternions, .variant = variant});
  };
  problems.push_back({"64 quaternions", rotate, {&long_rows.output}, 2e-2});
  expect_kernels_keep_the_rules("resample", problems, kernels_of("resample"));
}

TEST(executor_kernels, of_resample_backward_keep_the_rules) {
  const Trajectories on(2, 60, 80, 32, DType::f32);
  const auto call = [&on](Device device, const std::string& variant) {
    resample_backward(on.times.on(device), on.wanted.on(device), on.gradient.on(device), on.of_values.on(device),
                      {.variant = variant});
  };
  expect_kernels_keep_the_rules("resample_backward", {{"60 rows of 128 bytes", call, {&on.of_values}, 1e-4}},
                                kernels_of("resample_backward"));
}

}  // namespace
}  // namespace tmaops::executor
