// What resample_violations() counts: the definition, one time after the other.
#include <algorithm>
#include <cmath>

#include "ops/resample/shared/reference_bracket.hpp"
#include "ops/resample/violations/problem.hpp"

namespace tmaops::ops::resample_violations::reference_violations {
namespace {

template <class Time>
bool is_finite(Time time) {
  if constexpr (std::is_floating_point_v<Time>) return std::isfinite(time);
  return true;
}

template <class Time>
void count(const Timeline& line, std::int64_t* counts) {
  const auto found = [&](ResampleViolation violation) { ++counts[static_cast<int>(violation)]; };
  for (std::int64_t b = 0; b < line.batch; ++b) {
    const std::int64_t targets = line.target_count(b);
    if (targets == 0) continue;
    const resample::Times<Time> x = resample::source_times<Time>(line, b);
    if (x.count == 0 && line.outside != Outside::nan) found(ResampleViolation::empty_trajectory);
    for (std::int64_t i = 0; i < x.count; ++i) {
      if (!is_finite(x[i])) found(ResampleViolation::source_not_finite);
      if (i > 0 && x[i] < x[i - 1]) found(ResampleViolation::source_not_sorted);
      if (i > 0 && x[i] == x[i - 1] && line.duplicates == Duplicates::error) found(ResampleViolation::source_duplicate);
    }
    for (std::int64_t t = 0; t < targets; ++t) {
      const Time q = resample::target_time<Time>(line, b, t);
      if (!is_finite(q)) found(ResampleViolation::target_not_finite);
      if (line.outside == Outside::error && x.count > 0 && (q < x[0] || q > x[x.count - 1]))
        found(ResampleViolation::target_outside);
    }
  }
}

void run_times(const Problem& problem, const Arguments& arguments) {
  std::fill_n(arguments.counts, arguments.counters, 0);
  resample::visit_time_type(problem.times,
                            [&]<class Time>(Time*) { count<Time>(arguments.timeline, arguments.counts); });
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run_times, problem, arguments);
}

}  // namespace tmaops::ops::resample_violations::reference_violations
