// The public functions: check, choose, run or plan.
#include "core/choice_cache.hpp"
#include "core/entry.hpp"
#include "core/plan.hpp"
#include "ops/gemm/problem.hpp"
#include "ops/gemm/tuning.hpp"

namespace tmaops {
namespace {

using ops::gemm::Arguments;
using ops::gemm::Choice;
using ops::gemm::Problem;

Choice choice_of(const Problem& problem, const GemmOptions& options) {
  const DeviceInfo& device = device_info(problem.device);
  const auto select = [&] { return ops::gemm::select(problem, device, options.variant, options.tuning); };
  const bool measured = options.variant.empty() && problem.device.type == DeviceType::cuda;
  const auto table = measured ? ops::gemm::tuning_table(options.tuning) : nullptr;
  return remembered<Choice>(problem, device, {.name = options.variant, .table = table.get()}, select);
}

/// Calls fn(choice, problem, arguments) for a call of gemm.
template <class Fn>
decltype(auto) with_call(const ConstTensorView& a, const ConstTensorView& b, const TensorView& d,
                         const GemmOptions& options, const Fn& fn) {
  return public_entry("gemm", [&] {
    const Problem problem = ops::gemm::make_problem(a, b, d, options);
    Arguments arguments{.a = a.data,
                        .b = b.data,
                        .d = d.data,
                        .c = problem.c ? options.c.data : nullptr,
                        .bias = problem.bias_dtype ? options.bias.data : nullptr,
                        .dependent_launch = options.dependent_launch};
    return fn(choice_of(problem, options), problem, arguments);
  });
}

}  // namespace

void gemm(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options) {
  with_call(a, b, d, options, [&](const auto& choice, const auto& problem, auto& arguments) {
    run_once(choice, problem, arguments, {.device = d.device, .stream = options.stream});
  });
}

Plan plan_gemm(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options) {
  return with_call(a, b, d, options, [&](const auto& choice, const auto& problem, const auto& arguments) {
    return make_plan(choice, problem, arguments, {.device = d.device},
                     {{"a", a, [](Arguments& to, void* data) { to.a = data; }},
                      {"b", b, [](Arguments& to, void* data) { to.b = data; }},
                      {"d", d, [](Arguments& to, void* data) { to.d = data; }, true},
                      {"c", problem.c ? options.c : ConstTensorView(), [](Arguments& to, void* data) { to.c = data; }},
                      {"bias", options.bias, [](Arguments& to, void* data) { to.bias = data; }}});
  });
}

}  // namespace tmaops
