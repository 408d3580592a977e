// The public functions: check, choose, plan.
#include "core/entry.hpp"
#include "core/plan.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops {
namespace {

/// Calls fn(choice, problem, arguments) for a call of gemm.
template <class Fn>
decltype(auto) with_call(const ConstTensorView& a, const ConstTensorView& b, const TensorView& d,
                         const GemmOptions& options, const Fn& fn) {
  return public_entry("gemm", [&] {
    const ops::gemm::Problem problem = ops::gemm::make_problem(a, b, d, options);
    const ops::gemm::Choice choice = ops::gemm::select(problem, device_info(d.device), options);
    return fn(choice, problem,
              ops::gemm::Arguments{.a = a.data,
                                   .b = b.data,
                                   .d = d.data,
                                   .c = problem.c ? options.c.data : nullptr,
                                   .bias = problem.bias_dtype ? options.bias.data : nullptr,
                                   .dependent_launch = options.dependent_launch});
  });
}

}  // namespace

void gemm(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options) {
  with_call(a, b, d, options, [&](const auto& choice, const auto& problem, const auto& arguments) {
    run_once(choice, problem, arguments, options.stream);
  });
}

Plan plan_gemm(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options) {
  return with_call(a, b, d, options, [](const auto& choice, const auto& problem, const auto& arguments) {
    return make_plan(choice, problem, arguments);
  });
}

}  // namespace tmaops
