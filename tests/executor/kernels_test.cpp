// Tiles of gemm that its choice takes on larger problems: no finding under any schedule, and the results of the
// reference. Every kernel with the tile of its choice runs by `tmaops verify` (every_kernel.py).
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
#include "tmaops/registry.hpp"

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

TEST(executor_kernels, of_gemm_keep_the_rules_with_other_tiles) {
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
                          Case{264, 136, 200, false, true, DType::f16, DType::f16},
                          Case{768, 384, 64, true, false, DType::f16, DType::f16},
                          Case{70, 45, 33, true, true, DType::f16, DType::f16, Activation::relu},
                          Case{200, 256, 1000, false, true, DType::bf16, DType::f32},
                          Case{72, 200, 1096, true, false, DType::f16, DType::f16},
                          Case{9, 136, 2056, true, true, DType::f16, DType::f16},
                          Case{64, 64, 2048, true, false, DType::f16, DType::f16}}) {
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
  std::vector<std::string> ways;
  for (const char* tile : {"128x256t", "128x192", "128x192t", "128x144t", "128x160", "256x168t", "128x128p3"})
    ways.push_back(std::string("wgmma_persistent/") + tile);
  for (const char* tile : {"64x16t", "64x16k8t", "64x64k4t", "64x48", "64x112t", "64x128k4t", "64x208", "128x96k2t",
                           "64x192", "192x80", "192x96", "192x88t", "192x136", "256x80t"})
    ways.push_back(std::string("wgmma_split_k/") + tile);
  expect_kernels_keep_the_rules("gemm", problems, ways);
}

}  // namespace
}  // namespace tmaops::executor
