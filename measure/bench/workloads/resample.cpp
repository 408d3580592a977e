// Resampling of trajectories: random normal values at irregular times. Backward, random normal gradients of the output.
#include "tmaops/resample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "bench/workloads/common.hpp"
#include "bench/workloads/element.hpp"
#include "core/fail.hpp"
#include "core/parallel.hpp"
#include "core/spelling.hpp"
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/problem.hpp"

namespace tmaops::bench {
namespace {

constexpr double kNanoseconds = 1e9;  // of a second

struct ResampleCase {
  std::int64_t batch = 0;     // B
  std::int64_t samples = 0;   // S
  std::int64_t targets = 0;   // T
  std::int64_t channels = 0;  // D
  bool random_times = false;
  DType dtype = DType::f32;
  DType time_dtype = DType::f32;
  Interpolation interpolation = Interpolation::linear;
  Outside outside = Outside::hold;
  double max_gap = 0;  // seconds
  bool backward = false;
};

constexpr double kSourceStep = 0.01;  // seconds between samples, on average

/// "B,S->T,D", with "/random" for random times.
void read_shape(const Settings& problem, const Setting& setting, ResampleCase& made) {
  std::string_view text = setting.value;
  const auto bad = [&] {
    problem.fail(ErrorCode::unknown_case, setting,
                 "'B,S->T,D' as in '32,500->256,256', or '32,500->256,256/random': whole numbers up to 2^32, S at "
                 "least 1");
  };
  if (text.ends_with("/random")) {
    made.random_times = true;
    text.remove_suffix(7);
  }
  const std::array<std::pair<std::int64_t*, std::string_view>, 4> parts{
      {{&made.batch, ","}, {&made.samples, "->"}, {&made.targets, ","}, {&made.channels, ""}}};
  for (const auto& [extent, separator] : parts) {
    const std::size_t end = separator.empty() ? text.size() : text.find(separator);
    if (end == std::string_view::npos) bad();
    const auto value = parse_integer(text.substr(0, end));
    if (!value || *value < 0 || *value > (std::int64_t{1} << 32)) bad();
    *extent = *value;
    text.remove_prefix(std::min(text.size(), end + separator.size()));
  }
  if (made.samples < 1) bad();
}

/// Reads the case and what differs from the defaults. Throws Error for bad settings.
ResampleCase read_resample_case(const Settings& problem) {
  problem.only({"case", "dtype", "times", "interpolation", "outside", "max_gap", "direction", "variant", "version"});
  ResampleCase made;
  const Setting* named = problem.find("case");
  if (named == nullptr)
    fail(ErrorCode::bad_value, problem.place().text() + ": resample", "no case", "case: '32,500->256,256' (B,S->T,D)");
  read_shape(problem, *named, made);
  made.dtype = problem.dtype("dtype", DType::f32, {DType::f16, DType::bf16, DType::f32, DType::f64});
  made.time_dtype = problem.dtype("times", DType::f32, {DType::f32, DType::f64, DType::i64});
  made.interpolation =
      static_cast<Interpolation>(problem.choice("interpolation", "linear", {TMAOPS_WORDS_interpolation(TMAOPS_TEXT)}));
  made.outside = static_cast<Outside>(problem.choice("outside", "hold", {"hold", "nan", "extrapolate"}));
  made.max_gap = problem.number("max_gap", 0, 0, 1e9);
  made.backward = problem.choice("direction", "forward", {"forward", "backward"}) == 1;
  if (made.interpolation == Interpolation::slerp && made.channels % 4 != 0)
    problem.fail(ErrorCode::bad_value, *named, "a number of channels that is a multiple of 4 for slerp");
  const bool extreme = made.interpolation == Interpolation::min || made.interpolation == Interpolation::max;
  if (made.backward && (extreme || !ops::resample::has_gradient(made.interpolation)))
    problem.fail(ErrorCode::bad_value, *problem.find("interpolation"),
                 "linear, previous, next, nearest, mean, sum or lowpass for the backward direction");
  return made;
}

/// Name, problem and operations; the floor is known with the times.
CaseInfo describe_resample(const Settings& problem, const ResampleCase& c, Device device) {
  CaseInfo made{
      .op = c.backward ? "resample_backward" : "resample",
      .name = fmt::format("{},{}->{},{}{}", c.batch, c.samples, c.targets, c.channels, c.random_times ? "/random" : ""),
      .dtype = std::string(to_string(c.dtype)),
      .device = device};
  if (c.interpolation != Interpolation::linear) made.name += " " + std::string(ops::resample::name_of(c.interpolation));
  if (c.time_dtype != DType::f32) made.name += " times=" + std::string(to_string(c.time_dtype));
  if (c.outside != Outside::hold) made.name += " outside=" + std::string(ops::resample::name_of(c.outside));
  if (c.max_gap > 0) made.name += fmt::format(" max_gap={}", c.max_gap);
  made.problem = problem.to_text();
  // Per output element a difference and a multiply-add, backward two multiply-adds; the weights, of one target each,
  // vanish beside them.
  // Over intervals, about a multiply-add per sample.
  const bool intervals = ops::resample::over_interval(c.interpolation);
  made.flops =
      (intervals ? 2.0 * static_cast<double>(c.samples) : (c.backward ? 4.0 : 3.0) * static_cast<double>(c.targets)) *
      static_cast<double>(c.batch) * static_cast<double>(c.channels);
  return made;
}

/// Jittered: both grids are regular, each stamp moved by up to 40 % of its step. Random: source steps of 0.5 to 1.5
/// times the average, targets drawn uniformly over the recorded time and sorted. Dense (B, S) and (B, T) tensors.
void fill_times(const ResampleCase& c, const TensorView& source, const TensorView& target, std::uint64_t seed) {
  const double scale = c.time_dtype == DType::i64 ? kNanoseconds : 1.0;
  const auto put = [&](const TensorView& to, std::int64_t index, double seconds) {
    store(to.dtype, to.data, index, c.time_dtype == DType::i64 ? std::round(seconds * scale) : seconds);
  };
  const double span = kSourceStep * static_cast<double>(std::max<std::int64_t>(1, c.samples - 1));
  const double target_step = span / static_cast<double>(std::max<std::int64_t>(1, c.targets - 1));
  parallel_for(c.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> drawn(static_cast<std::size_t>(c.targets));
    for (std::int64_t b = begin; b < end; ++b) {
      Random random(part_seed(seed, 5), static_cast<std::uint64_t>(b));
      double time = 0;
      for (std::int64_t s = 0; s < c.samples; ++s) {
        if (c.random_times) {
          put(source, b * c.samples + s, time);
          time += kSourceStep * random.uniform(0.5, 1.5);
        } else {
          put(source, b * c.samples + s, kSourceStep * (static_cast<double>(s) + random.uniform(-0.4, 0.4)));
        }
      }
      for (std::int64_t t = 0; t < c.targets; ++t)
        drawn[static_cast<std::size_t>(t)] = c.random_times
                                                 ? random.uniform(0, time)
                                                 : target_step * (static_cast<double>(t) + random.uniform(-0.4, 0.4));
      if (c.random_times) std::ranges::sort(drawn);
      for (std::int64_t t = 0; t < c.targets; ++t) put(target, b * c.targets + t, drawn[static_cast<std::size_t>(t)]);
    }
  });
}

/// Rows of values that some target needs, over all trajectories: the two around it, or all over intervals.
double rows_touched(const ResampleCase& c, const TensorView& source, const TensorView& target) {
  if (ops::resample::over_interval(c.interpolation))
    return static_cast<double>(c.batch) * static_cast<double>(c.samples);
  std::vector<std::int64_t> touched(static_cast<std::size_t>(c.batch));
  parallel_for(c.batch, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<bool> seen;
    for (std::int64_t b = begin; b < end; ++b) {
      seen.assign(static_cast<std::size_t>(c.samples), false);
      std::int64_t row = 0;  // last sample at or before the target; targets are sorted
      for (std::int64_t t = 0; t < c.targets; ++t) {
        const double time = load(target.dtype, target.data, b * c.targets + t);
        while (row + 1 < c.samples && load(source.dtype, source.data, b * c.samples + row + 1) <= time) ++row;
        const bool before = time < load(source.dtype, source.data, b * c.samples);
        seen[static_cast<std::size_t>(row)] = true;
        if (!before && row + 1 < c.samples) seen[static_cast<std::size_t>(row + 1)] = true;
      }
      touched[static_cast<std::size_t>(b)] = std::ranges::count(seen, true);
    }
  });
  double total = 0;
  for (const std::int64_t rows : touched) total += static_cast<double>(rows);
  return total;
}

/// The times of one trajectory, (1, S) or (1, T).
ConstTensorView times_of(const TensorView& times, std::int64_t trajectory) {
  const std::int64_t count = times.shape[1];
  const auto* bytes = static_cast<const std::byte*>(times.data);
  return {bytes + trajectory * count * static_cast<std::int64_t>(size_of(times.dtype)), times.dtype,
          Layout::contiguous({1, count})};
}

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
    return ops::resample::make_problem(input(0), tensor("source_times", 0), tensor("target_times", 0), output(0),
                                       options(""));
  }
  ops::resample_backward::Problem backward_problem() const {
    return ops::resample_backward::make_problem(tensor("source_times", 0), tensor("target_times", 0), input(0),
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
