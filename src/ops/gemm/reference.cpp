// The definition of gemm. For every batch p, row i and column j:
//
//   D[p, i, j] = act(alpha * sum_k A[p, i, k] * B[p, k, j] + beta * C[p, i, j] + bias[j or i])
//
// in f64, rounded once to D's dtype. The term beta * C is left out when beta = 0, so C is not read then.
//   relu(x) = 0 for x < 0, else x (NaN stays NaN)     gelu(x) = x/2 (1 + erf(x / sqrt 2)) = x/2 erfc(-x / sqrt 2)
//   silu(x) = x / (1 + exp(-x))
#include <cmath>
#include <numbers>

#include "core/parallel.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm::reference {
namespace {

double load(const void* data, DType dtype, std::int64_t offset) {
  if (dtype == DType::f16) return static_cast<double>(static_cast<const float16*>(data)[offset]);
  if (dtype == DType::bf16) return static_cast<double>(static_cast<const bfloat16*>(data)[offset]);
  return static_cast<double>(static_cast<const float*>(data)[offset]);
}

void store(void* data, DType dtype, std::int64_t offset, double value) {
  if (dtype == DType::f16)
    static_cast<float16*>(data)[offset] = float16(value);
  else if (dtype == DType::bf16)
    static_cast<bfloat16*>(data)[offset] = bfloat16(value);
  else
    static_cast<float*>(data)[offset] = static_cast<float>(value);
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::gelu:
      return x / 2 * std::erfc(-x / std::numbers::sqrt2);
    case Activation::silu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

void run(const Problem& problem, const Arguments& arguments) {
  parallel_for(problem.batch * problem.m, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t p = row / problem.m;
      const std::int64_t i = row % problem.m;
      for (std::int64_t j = 0; j < problem.n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < problem.k; ++k)
          sum += load(arguments.a, problem.a.dtype, problem.a.offset(p, i, k)) *
                 load(arguments.b, problem.b.dtype, problem.b.offset(p, k, j));
        double value = static_cast<double>(problem.alpha) * sum;
        if (problem.c)
          value += static_cast<double>(problem.beta) * load(arguments.c, problem.c->dtype, problem.c->offset(p, i, j));
        if (problem.bias_dtype)
          value += load(arguments.bias, *problem.bias_dtype,
                        (problem.bias_axis == BiasAxis::column ? j : i) * problem.bias_stride);
        store(arguments.d, problem.d.dtype, problem.d.offset(p, i, j), activate(problem.activation, value));
      }
    }
  });
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::gemm::reference
