#include "bench/measure/counters.hpp"

#include <algorithm>

#include "bench/run/statistics.hpp"
#include "core/fail.hpp"

namespace tmaops::bench {

const char* const kCounterPermission =
    "Run as root (in a container with --cap-add=SYS_ADMIN), or let all users: write 'options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0' to /etc/modprobe.d/nvidia-profiling.conf and load the driver anew.";

CounterValues fold_kernels(std::span<const CounterValues> kernels) {
  CounterValues values{};
  double total = 0;
  for (const CounterValues& kernel : kernels) total += kernel[0];
  for (const CounterValues& kernel : kernels)
    for (std::size_t i = 0; i < kCounters.size(); ++i)
      values[i] += kCounters[i].fold == Fold::sum ? kernel[i] : (total > 0 ? kernel[i] * kernel[0] / total : 0);
  return values;
}

Counters fold_runs(std::span<const CounterValues> kernels, int all_runs, int runs) {
  const std::size_t each = kernels.size() / static_cast<std::size_t>(all_runs);
  if (each * static_cast<std::size_t>(all_runs) != kernels.size())
    fail(ErrorCode::variant_refuses, "counters",
         std::to_string(kernels.size()) + " kernels in " + std::to_string(all_runs) + " runs of a call",
         "as many in each");
  Counters counters{.kernels = static_cast<int>(each), .runs = runs};
  std::vector<CounterValues> folded;
  for (int run = all_runs - runs; run < all_runs; ++run)
    folded.push_back(fold_kernels(kernels.subspan(static_cast<std::size_t>(run) * each, each)));
  for (std::size_t i = 0; i < kCounters.size(); ++i) {
    std::vector<double> samples;
    for (const CounterValues& run : folded) samples.push_back(run[i]);
    const Summary summary = summarize(samples);
    counters.values[i] = summary.median;
    counters.p10[i] = summary.p10;
    counters.p90[i] = summary.p90;
  }
  return counters;
}

BackToBack back_to_back(std::span<const double> range, std::int64_t calls) {
  BackToBack result{.calls = calls, .values = {}};
  for (std::size_t i = 0; i < kBackToBackCounters; ++i)
    result.values[i] = kCounters[i].fold == Fold::sum ? range[i] / static_cast<double>(calls) : range[i];
  return result;
}

LongestWait longest_wait(const CounterValues& values) {
  LongestWait longest;
  for (std::size_t i = 0; i < kCounters.size(); ++i) {
    std::string_view name = kCounters[i].name;
    if (!name.starts_with(kWaitPrefix) || values[i] <= longest.warps) continue;
    name.remove_prefix(kWaitPrefix.size());
    name.remove_suffix(kWaitSuffix.size());
    longest = {.reason = std::string(name), .warps = values[i]};
  }
  std::ranges::replace(longest.reason, '_', ' ');
  return longest;
}

}  // namespace tmaops::bench
