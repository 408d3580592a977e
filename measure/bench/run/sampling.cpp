#include "bench/run/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "tmaops/error.hpp"

namespace tmaops::bench {
namespace {

/// Seconds. Longer calls need no untimed calls before them, since the caches fill in a small part of their time.
constexpr double kLongCall = 0.05;
/// Untimed calls before a sample. On a CPU, data that is read in no order takes several calls to settle in the caches
/// (docs/findings/measuring.md, M1).
constexpr std::int64_t kWarmCalls = 4;
constexpr std::int64_t kMostCallsOfSample = 100000;

/// One sample: seconds of `calls` calls, after the process has come to rest.
double sample(Timed& one, const RunOptions& options, Timer& timer) {
  wait_until_quiet();
  if (one.estimate < kLongCall && options.hot())
    one.implementation->seconds(one.next, one.estimate == 0 ? 1 : kWarmCalls);
  timer.take_clocks();
  const double seconds = one.implementation->seconds(one.next, one.calls);
  if (const auto reading = timer.take_clocks()) one.clocks.push_back(*reading);
  one.next += one.calls;
  one.spent += seconds;
  return seconds;
}

/// A way that takes so many times as long as another one of its problem gets no further samples.
constexpr double kHopeless = 1.5;

void leave_out_slow(std::vector<TimedProblem>& running) {
  for (TimedProblem& problem : running) {
    double least = std::numeric_limits<double>::infinity();
    for (const Timed& one : problem.timed)
      if (!one.lost) least = std::min(least, one.estimate);
    for (Timed& one : problem.timed)
      one.lost = one.lost || (one.implementation->kind() == Kind::variant && one.estimate > kHopeless * least);
  }
}

}  // namespace

void sample_in_turn(std::vector<TimedProblem>& running, const RunOptions& options, Timer& timer, Recorder& log) {
  const auto try_sample = [&](const Workload& workload, Timed& one, double& seconds) {
    if (one.lost) return false;
    try {
      seconds = sample(one, options, timer);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::variant_refuses) throw;
      one.lost = true;
      log.refuse({workload.info(), one.implementation->name(), reason_of(error), options.peers_by_name, 2});
    }
    return !one.lost;
  };
  std::vector<std::pair<const Workload*, Timed*>> order;
  for (TimedProblem& problem : running)
    for (Timed& one : problem.timed) order.emplace_back(problem.workload.get(), &one);
  for (const auto& [workload, one] : order) {
    if (!try_sample(*workload, *one, one->estimate)) continue;
    one->calls = std::clamp<std::int64_t>(std::llround(std::ceil(options.min_time / std::max(one->estimate, 1e-8))), 1,
                                          kMostCallsOfSample);
  }
  // Another order each round: what ran before decides how warm the chip is, and its clock.
  std::mt19937_64 generator(options.seed);
  for (std::int64_t round = 0; round < options.samples; ++round) {
    if (!order.empty())
      log.progress(*order.front().first, "timing",
                   0.3 + 0.7 * static_cast<double>(round) / static_cast<double>(options.samples));
    std::ranges::shuffle(order, generator);
    for (const auto& [workload, one] : order) {
      if (log.interrupted()) return;
      if (one->lost || (round >= kFewestSamples && one->spent > options.max_time)) continue;
      double seconds = 0;
      if (!try_sample(*workload, *one, seconds)) continue;
      const double each = seconds / static_cast<double>(one->calls);
      one->samples.push_back(each * 1e6);
      if (options.tune) {  // what the host spends decides nothing
        one->estimate = each;
        continue;
      }
      if (const auto cost = one->implementation->host_cost(each)) one->host.push_back(*cost);
    }
    if (options.tune && round == 0) leave_out_slow(running);  // by more than one call
  }
}

BlockCycles count_block_cycles(Workload& workload, Timer& timer, const std::string& variant, int set) {
  const auto loading = workload.loading();
  if (!loading || workload.info().device.type == DeviceType::cpu) return {};
  const std::int64_t blocks = loading->most_blocks;
  set %= workload.sets();
  const Buffer cycles(DType::i64, Layout::contiguous({blocks}), workload.info().device);
  const Call call = workload.bind_counting(variant, set, cycles.view());
  if (workload.sets() == 1) timer.run(call);
  cycles.poison();  // -1: below every count
  workload.poison(set);
  timer.run(call);
  BlockCycles result{.checked = workload.check(set, 0)};
  if (result.checked.ok && !cycles.canaries_intact())
    result.checked = {.ok = false, .problem = "wrote outside the cycles of its blocks"};
  if (!result.checked.ok) return result;
  std::vector<std::int64_t> counted(static_cast<std::size_t>(blocks));
  cycles.download(counted.data());
  std::vector<double> samples;
  for (const std::int64_t count : counted)
    if (count >= 0) samples.push_back(static_cast<double>(count));
  if (!samples.empty()) result.cycles = summarize(samples);
  return result;
}

}  // namespace tmaops::bench
