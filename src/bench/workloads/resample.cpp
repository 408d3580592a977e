// Resampling of trajectories: random normal values at irregular times.
#include "tmaops/resample.hpp"

#include <memory>

#include "bench/workloads/common.hpp"
#include "bench/workloads/element.hpp"
#include "bench/workloads/resample_case.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/problem.hpp"

namespace tmaops::bench {
namespace {

std::vector<TensorSpec> tensors(const ResampleCase& c) {
  return {{"values", c.dtype, Layout::contiguous({c.batch, c.samples, c.channels})},
          {"source_times", c.time_dtype, Layout::contiguous({c.batch, c.samples})},
          {"target_times", c.time_dtype, Layout::contiguous({c.batch, c.targets})},
          {"output", c.dtype, Layout::contiguous({c.batch, c.targets, c.channels}), true}};
}

class ResampleWorkload : public Workload {
 public:
  ResampleWorkload(const Settings& problem, const ResampleCase& c, Device device)
      : Workload(describe_resample(problem, c, device), bench::tensors(c)), case_(c) {
    if (c.interpolation != Interpolation::slerp) return;
    for (std::int64_t first = 0; first < c.channels; first += 4) groups_.push_back({first, 4, Interpolation::slerp});
  }

  std::vector<VariantChoice> variants() const override {
    return choices(ops::resample::variants(), problem(), device_info(info_.device));
  }
  std::string selected() const override {
    return std::string(ops::resample::select(problem(), device_info(info_.device)).variant->name);
  }
  nlohmann::json peer_parameters() const override {
    return {{"interpolation", ops::resample::name_of(case_.interpolation)},
            {"outside", ops::resample::name_of(case_.outside)},
            {"max_gap", case_.max_gap}};
  }
  Call bind(const std::string& variant, int set, Launch launch) const override {
    ResampleOptions wanted = options(variant);
    wanted.dependent_launch = launch == Launch::dependent;
    return call_of(plan_resample(tensor("values", set), tensor("source_times", set), tensor("target_times", set),
                                 tensor("output", set), wanted));
  }

 protected:
  void fill(std::uint64_t seed) override {
    fill_normal(tensor("values", 0), part_seed(seed, 1));
    fill_times(case_, tensor("source_times", 0), tensor("target_times", 0), seed);
    info_.floor_bytes = byte_count(this->tensors()[1]) + byte_count(this->tensors()[2]) +
                        byte_count(this->tensors()[3]) +
                        rows_touched(case_, tensor("source_times", 0), tensor("target_times", 0)) *
                            static_cast<double>(case_.channels) * static_cast<double>(size_of(case_.dtype));
  }
  std::vector<Expected> reference(std::uint64_t seed) const override;
  double tolerance() const override {
    // f32 weights have an error of 2^-24, and the values around a target may differ by several times the result.
    return case_.dtype == DType::f64 ? 1e-11 : rounding_tolerance(case_.dtype);
  }

 private:
  ResampleOptions options(const std::string& variant) const {
    ResampleOptions made = resample_options(case_, variant);
    made.channel_groups = groups_;
    if (!groups_.empty()) made.interpolation = Interpolation::linear;
    return made;
  }
  ops::resample::Problem problem() const {
    return ops::resample::make_problem(tensor("values", 0), tensor("source_times", 0), {tensor("target_times", 0), {}},
                                       tensor("output", 0), options(""));
  }

  ResampleCase case_;
  std::vector<ChannelGroup> groups_;  // of slerp: one for each quaternion
};

std::vector<Expected> ResampleWorkload::reference(std::uint64_t seed) const {
  const TensorView values = tensor("values", 0);
  const std::int64_t rows = case_.samples * case_.channels;
  const std::int64_t made = case_.targets * case_.channels;
  Expected expected{.tensor = "output", .elements = {}, .values = {}};
  const Buffer exact(DType::f64, Layout::contiguous({1, case_.samples, case_.channels}));
  const Buffer want(DType::f64, Layout::contiguous({1, case_.targets, case_.channels}));
  for (const std::int64_t b : checked_trajectories(case_, seed)) {
    for (std::int64_t i = 0; i < rows; ++i)
      store(DType::f64, exact.view().data, i, load(values.dtype, values.data, b * rows + i));
    resample(exact.view(), times_of(tensor("source_times", 0), b), times_of(tensor("target_times", 0), b), want.view(),
             options("reference"));
    for (std::int64_t i = 0; i < made; ++i) {
      expected.elements.push_back(b * made + i);
      expected.values.push_back(load(DType::f64, want.view().data, i));
    }
  }
  return {expected};
}

}  // namespace

std::unique_ptr<Workload> make_resample_workload(const Settings& problem, Device device) {
  const ResampleCase c = read_resample_case(problem);
  if (c.backward) return make_resample_backward_workload(problem, c, device);
  return std::make_unique<ResampleWorkload>(problem, c, device);
}

}  // namespace tmaops::bench
