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

/// Calls fn(choice, problem, arguments, memory) for a call of gemm.
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
    const MemoryOptions memory{.device = d.device, .allocator = options.allocator, .stream = options.stream};
    return fn(choice_of(problem, options), problem, arguments, memory);
  });
}

}  // namespace

void gemm(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options) {
  with_call(a, b, d, options, [](const auto& choice, const auto& problem, auto& arguments, const auto& memory) {
    run_once(choice, problem, arguments, memory);
  });
}

std::size_t gemm_workspace(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options) {
  return with_call(a, b, d, options, [](const auto& choice, const auto& problem, auto& arguments, const auto& memory) {
    return workspace_bytes(choice, problem, arguments, memory);
  });
}

Plan plan_gemm(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options) {
  return with_call(
      a, b, d, options, [&](const auto& choice, const auto& problem, const auto& arguments, const auto& memory) {
        return make_plan(
            choice, problem, arguments, memory,
            {{"a", a, [](Arguments& to, void* data) { to.a = data; }},
             {"b", b, [](Arguments& to, void* data) { to.b = data; }},
             {"d", d, [](Arguments& to, void* data) { to.d = data; }, true},
             {"c", problem.c ? options.c : ConstTensorView(), [](Arguments& to, void* data) { to.c = data; }},
             {"bias", options.bias, [](Arguments& to, void* data) { to.bias = data; }}});
      });
}

}  // namespace tmaops
