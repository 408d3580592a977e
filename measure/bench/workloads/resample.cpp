// Resampling of trajectories: random normal values at irregular times. Backward, random normal gradients of the output.
#include "tmaops/resample.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/workloads/common.hpp"
#include "bench/workloads/element.hpp"
#include "bench/workloads/resample_case.hpp"
#include "core/parallel.hpp"
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/problem.hpp"

namespace tmaops::bench {
namespace {

/// Rows of a trajectory that a call reads: samples, or the gradients of targets.
std::int64_t rows_read(const ResampleCase& c) { return c.backward ? c.targets : c.samples; }
std::int64_t rows_written(const ResampleCase& c) { return c.backward ? c.samples : c.targets; }

std::vector<TensorSpec> tensors(const ResampleCase& c) {
  return {{c.backward ? "grad_output" : "values", c.dtype, Layout::contiguous({c.batch, rows_read(c), c.channels})},
          {"source_times", c.time_dtype, Layout::contiguous({c.batch, c.samples})},
          {"target_times", c.time_dtype, Layout::contiguous({c.batch, c.targets})},
          {c.backward ? "grad_values" : "output", c.dtype, Layout::contiguous({c.batch, rows_written(c), c.channels}),
           true}};
}

/// Between rotations half a turn apart both arcs are shortest, and rounding decides which one a variant takes. Such a
/// sample becomes the one before it.
void avoid_half_turns(const ResampleCase& c, const TensorView& values) {
  constexpr double kLeastCosine = 1e-3;
  parallel_for(c.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin * c.samples; row < end * c.samples; ++row) {
      if (row % c.samples == 0) continue;
      for (std::int64_t first = 0; first < c.channels; first += 4) {
        double dot = 0, square = 0, square_before = 0;
        for (std::int64_t at = row * c.channels + first, k = 0; k < 4; ++k) {
          const double value = load(values.dtype, values.data, at + k);
          const double before = load(values.dtype, values.data, at + k - c.channels);
          dot += value * before;
          square += value * value;
          square_before += before * before;
        }
        if (std::abs(dot) > kLeastCosine * std::sqrt(square * square_before)) continue;
        for (std::int64_t at = row * c.channels + first, k = 0; k < 4; ++k)
          store(values.dtype, values.data, at + k, load(values.dtype, values.data, at + k - c.channels));
      }
    }
  });
}

class ResampleWorkload : public Workload {
 public:
  ResampleWorkload(const Settings& problem, const ResampleCase& c, Device device)
      : Workload(describe_resample(problem, c, device), bench::tensors(c)), case_(c) {
    if (c.interpolation != Interpolation::slerp) return;
    for (std::int64_t first = 0; first < c.channels; first += 4) groups_.push_back({first, 4, Interpolation::slerp});
  }

  std::vector<VariantChoice> variants() const override {
    const DeviceInfo& device = device_info(info_.device);
    if (case_.backward) return choices(ops::resample_backward::variants(), backward_problem(), device);
    return choices(ops::resample::variants(), forward_problem(), device);
  }
  std::string selected() const override {
    const DeviceInfo& device = device_info(info_.device);
    return std::string(case_.backward ? ops::resample_backward::select(backward_problem(), device).variant->name
                                      : ops::resample::select(forward_problem(), device).variant->name);
  }
  nlohmann::json peer_parameters() const override {
    return {{"interpolation", ops::resample::name_of(case_.interpolation)},
            {"outside", ops::resample::name_of(case_.outside)},
            {"max_gap", case_.max_gap}};
  }
  Call bind(const std::string& variant, int set, Launch launch) const override {
    ResampleOptions wanted = options(variant, launch);
    const TensorView source = tensor("source_times", set);
    const TensorView target = tensor("target_times", set);
    return call_of(case_.backward ? plan_resample_backward(source, target, input(set), output(set), wanted)
                                  : plan_resample(input(set), source, target, output(set), wanted));
  }
  Call fresh(const std::string& variant, int set, Launch launch) const override {
    ResampleOptions wanted = options(variant, launch);
    return [source = tensor("source_times", set), target = tensor("target_times", set), from = input(set),
            to = output(set), wanted, backward = case_.backward](Stream stream) mutable {
      wanted.stream = stream;
      if (backward)
        resample_backward(source, target, from, to, wanted);
      else
        resample(from, source, target, to, wanted);
    };
  }

 protected:
  void fill(std::uint64_t seed) override {
    fill_normal(input(0), part_seed(seed, 1));
    if (case_.interpolation == Interpolation::slerp) avoid_half_turns(case_, input(0));
    fill_times(case_, tensor("source_times", 0), tensor("target_times", 0), seed);
    if (case_.backward) return;
    const auto& specs = this->tensors();
    info_.floor_bytes = byte_count(specs[1]) + byte_count(specs[2]) + byte_count(specs[3]) +
                        rows_touched(case_, tensor("source_times", 0), tensor("target_times", 0)) *
                            static_cast<double>(case_.channels) * static_cast<double>(size_of(case_.dtype));
  }
  std::vector<Expected> reference(std::uint64_t seed, double work) const override;
  double tolerance() const override {
    // f32 weights have an error of 2^-24, and the values around a target may differ by several times the result.
    return case_.dtype == DType::f64 ? 1e-11 : rounding_tolerance(case_.dtype);
  }

 private:
  TensorView input(int set) const { return tensor(this->tensors().front().name, set); }
  TensorView output(int set) const { return tensor(this->tensors().back().name, set); }
  ResampleOptions options(const std::string& variant, Launch launch = Launch::plain) const {
    ResampleOptions made;
    made.dependent_launch = launch == Launch::dependent;
    made.interpolation = groups_.empty() ? case_.interpolation : Interpolation::linear;
    made.channel_groups = groups_;
    made.outside = case_.outside;
    made.max_gap = case_.max_gap;
    if (case_.time_dtype == DType::i64) made.max_gap = static_cast<std::int64_t>(case_.max_gap * kNanoseconds);
    made.variant = variant;
    return made;
  }
  ops::resample::Problem forward_problem() const {
    return ops::resample::make_problem(input(0), tensor("source_times", 0), {tensor("target_times", 0), {}}, output(0),
                                       options(""));
  }
  ops::resample_backward::Problem backward_problem() const {
    return ops::resample_backward::make_problem(tensor("source_times", 0), {tensor("target_times", 0), {}}, input(0),
                                                output(0), options(""));
  }

  ResampleCase case_;
  std::vector<ChannelGroup> groups_;  // of slerp: one for each quaternion
};

std::vector<Expected> ResampleWorkload::reference(std::uint64_t seed, double work) const {
  const TensorView from = input(0);
  const std::int64_t given = rows_read(case_) * case_.channels;
  const std::int64_t made = rows_written(case_) * case_.channels;
  const auto wanted = static_cast<std::int64_t>(work / static_cast<double>(std::max<std::int64_t>({given, made, 1})));
  Random random(seed, 77);
  const auto chosen = sample_indices(case_.batch, std::max<std::int64_t>(1, wanted), random);
  Expected expected{.tensor = this->tensors().back().name, .elements = {}, .values = {}};
  expected.elements.resize(chosen.size() * static_cast<std::size_t>(made));
  expected.values.resize(expected.elements.size());
  parallel_for(static_cast<std::int64_t>(chosen.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    const Buffer exact(DType::f64, Layout::contiguous({1, rows_read(case_), case_.channels}));
    const Buffer want(DType::f64, Layout::contiguous({1, rows_written(case_), case_.channels}));
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t b = chosen[static_cast<std::size_t>(at)];
      for (std::int64_t i = 0; i < given; ++i)
        store(DType::f64, exact.view().data, i, load(from.dtype, from.data, b * given + i));
      const ConstTensorView source = times_of(tensor("source_times", 0), b);
      const ConstTensorView target = times_of(tensor("target_times", 0), b);
      if (case_.backward)
        resample_backward(source, target, exact.view(), want.view(), options("reference_backward"));
      else
        resample(exact.view(), source, target, want.view(), options("reference"));
      for (std::int64_t i = 0; i < made; ++i) {
        const auto to = static_cast<std::size_t>(at * made + i);
        expected.elements[to] = b * made + i;
        expected.values[to] = load(DType::f64, want.view().data, i);
      }
    }
  });
  return {expected};
}

}  // namespace

std::unique_ptr<Workload> make_resample_workload(const Settings& problem, Device device) {
  return std::make_unique<ResampleWorkload>(problem, read_resample_case(problem), device);
}

}  // namespace tmaops::bench
