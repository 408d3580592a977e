// The public functions: check, choose, prepare, launch.
#include <memory>

#include "core/entry.hpp"
#include "core/repeated_launches.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops {
namespace {

using ops::gemm::Arguments;
using ops::gemm::Problem;

}  // namespace

struct GemmPlan::State {
  Problem problem;
  Arguments arguments{};
  ops::gemm::Choice choice;
  std::shared_ptr<const RepeatedLaunches> launches;  // on a GPU

  State(const ConstTensorView& a, const ConstTensorView& b, const TensorView& d, const GemmOptions& options)
      : problem(ops::gemm::make_problem(a, b, d, options)),
        choice(ops::gemm::select(problem, device_info(d.device), options.variant, options.tuning)) {
    arguments = {.a = a.data,
                 .b = b.data,
                 .d = d.data,
                 .c = problem.c ? options.c.data : nullptr,
                 .bias = problem.bias_dtype ? options.bias.data : nullptr,
                 .dependent_launch = options.dependent_launch,
                 .tiling = choice.tiling};
    if (choice.variant->prepare && !empty()) arguments.prepared = choice.variant->prepare(problem, arguments);
    launches = RepeatedLaunches::of(problem.device, [&] { launch(nullptr); });
  }

  bool empty() const { return problem.m == 0 || problem.n == 0 || problem.batch == 0; }

  void launch(Stream stream) const {
    if (!empty()) choice.variant->launch(problem, arguments, stream);
  }
  void run(Stream stream) const { launches ? launches->run(stream) : launch(stream); }
};

void gemm(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options) {
  GemmPlan(a, b, d, options).run(options.stream);
}

GemmPlan::GemmPlan(ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options)
    : state_(public_entry("gemm", [&] { return std::make_unique<State>(a, b, d, options); })) {}
GemmPlan::~GemmPlan() = default;
GemmPlan::GemmPlan(GemmPlan&&) noexcept = default;
GemmPlan& GemmPlan::operator=(GemmPlan&&) noexcept = default;

void GemmPlan::run(Stream stream) const {
  public_entry("gemm", [&] { state_->run(stream); });
}
std::string_view GemmPlan::variant() const { return state_->choice.variant->name; }

}  // namespace tmaops
