// The gradient of a resampling to its values: random normal gradients of the output.
#include <memory>

#include "bench/workloads/common.hpp"
#include "bench/workloads/element.hpp"
#include "bench/workloads/resample_case.hpp"
#include "ops/resample/backward/problem.hpp"

namespace tmaops::bench {
namespace {

std::vector<TensorSpec> gradient_tensors(const ResampleCase& c) {
  return {{"grad_output", c.dtype, Layout::contiguous({c.batch, c.targets, c.channels})},
          {"source_times", c.time_dtype, Layout::contiguous({c.batch, c.samples})},
          {"target_times", c.time_dtype, Layout::contiguous({c.batch, c.targets})},
          {"grad_values", c.dtype, Layout::contiguous({c.batch, c.samples, c.channels}), true}};
}

class ResampleBackwardWorkload : public Workload {
 public:
  ResampleBackwardWorkload(const Settings& problem, const ResampleCase& c, Device device)
      : Workload(describe_resample(problem, c, device), bench::gradient_tensors(c)), case_(c) {
    for (const TensorSpec& spec : this->tensors()) info_.floor_bytes += byte_count(spec);
  }

  std::vector<VariantChoice> variants() const override {
    return choices(ops::resample_backward::variants(), problem(), device_info(info_.device));
  }
  std::string selected() const override {
    return std::string(ops::resample_backward::select(problem(), device_info(info_.device)).variant->name);
  }
  nlohmann::json peer_parameters() const override { return nlohmann::json::object(); }
  Call bind(const std::string& variant, int set, Launch launch) const override {
    ResampleOptions wanted = resample_options(case_, variant);
    wanted.dependent_launch = launch == Launch::dependent;
    return call_of(plan_resample_backward(tensor("source_times", set), tensor("target_times", set),
                                          tensor("grad_output", set), tensor("grad_values", set), wanted));
  }

 protected:
  void fill(std::uint64_t seed) override {
    fill_normal(tensor("grad_output", 0), part_seed(seed, 1));
    fill_times(case_, tensor("source_times", 0), tensor("target_times", 0), seed);
  }
  std::vector<Expected> reference(std::uint64_t seed) const override;
  double tolerance() const override { return case_.dtype == DType::f64 ? 1e-11 : rounding_tolerance(case_.dtype); }

 private:
  ops::resample_backward::Problem problem() const {
    return ops::resample_backward::make_problem(tensor("source_times", 0), {tensor("target_times", 0), {}},
                                                tensor("grad_output", 0), tensor("grad_values", 0),
                                                resample_options(case_, ""));
  }

  ResampleCase case_;
};

std::vector<Expected> ResampleBackwardWorkload::reference(std::uint64_t seed) const {
  const TensorView grad_output = tensor("grad_output", 0);
  const std::int64_t given = case_.targets * case_.channels;
  const std::int64_t made = case_.samples * case_.channels;
  Expected expected{.tensor = "grad_values", .elements = {}, .values = {}};
  const Buffer exact(DType::f64, Layout::contiguous({1, case_.targets, case_.channels}));
  const Buffer want(DType::f64, Layout::contiguous({1, case_.samples, case_.channels}));
  for (const std::int64_t b : checked_trajectories(case_, seed)) {
    for (std::int64_t i = 0; i < given; ++i)
      store(DType::f64, exact.view().data, i, load(grad_output.dtype, grad_output.data, b * given + i));
    resample_backward(times_of(tensor("source_times", 0), b), times_of(tensor("target_times", 0), b), exact.view(),
                      want.view(), resample_options(case_, "reference_backward"));
    for (std::int64_t i = 0; i < made; ++i) {
      expected.elements.push_back(b * made + i);
      expected.values.push_back(load(DType::f64, want.view().data, i));
    }
  }
  return {expected};
}

}  // namespace

std::unique_ptr<Workload> make_resample_backward_workload(const Settings& problem, const ResampleCase& c,
                                                          Device device) {
  return std::make_unique<ResampleBackwardWorkload>(problem, c, device);
}

}  // namespace tmaops::bench
