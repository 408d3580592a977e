#include "bench/run/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/fail.hpp"

namespace tmaops::bench {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> ordered(samples.begin(), samples.end());
  if (ordered.empty() || !std::ranges::all_of(ordered, [](double x) { return std::isfinite(x); }))
    fail(ErrorCode::bad_parameter, "statistics: samples", ordered.empty() ? "none" : "one that is not finite",
         "at least one, all finite");
  std::ranges::sort(ordered);
  return ordered;
}

double at(const std::vector<double>& ordered, double p) {
  const double position = p * static_cast<double>(ordered.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, ordered.size() - 1);
  return ordered[below] + (position - static_cast<double>(below)) * (ordered[above] - ordered[below]);
}

}  // namespace

double percentile(std::span<const double> samples, double p) { return at(sorted(samples), p); }

Summary summarize(std::span<const double> samples) {
  const std::vector<double> ordered = sorted(samples);
  const auto n = static_cast<double>(ordered.size());
  double sum = 0;
  for (const double sample : ordered) sum += sample;
  const double mean = sum / n;
  double squares = 0;
  for (const double sample : ordered) squares += (sample - mean) * (sample - mean);
  return {.median = at(ordered, 0.5),
          .p10 = at(ordered, 0.1),
          .p90 = at(ordered, 0.9),
          .n = static_cast<std::int64_t>(ordered.size()),
          .mean = mean,
          .min = ordered.front(),
          .max = ordered.back(),
          .deviation = ordered.size() > 1 ? std::sqrt(squares / (n - 1)) : 0};
}

}  // namespace tmaops::bench
