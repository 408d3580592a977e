#include "bench/workloads/resample_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/workloads/common.hpp"
#include "bench/workloads/element.hpp"
#include "core/fail.hpp"
#include "core/parallel.hpp"
#include "ops/resample/options.hpp"

namespace tmaops::bench {
namespace {

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

}  // namespace

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

ConstTensorView times_of(const TensorView& times, std::int64_t trajectory) {
  const std::int64_t count = times.shape[1];
  const auto* bytes = static_cast<const std::byte*>(times.data);
  return {bytes + trajectory * count * static_cast<std::int64_t>(size_of(times.dtype)), times.dtype,
          Layout::contiguous({1, count})};
}

}  // namespace tmaops::bench
