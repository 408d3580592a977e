#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/peers/peers.hpp"
#include "bench/run/statistics.hpp"

namespace tmaops::bench {
namespace {

/// Samples of each way, in turn with the others, and how long one lasts at least.
constexpr int kSamples = 5;
constexpr double kSampleSeconds = 5e-4;
constexpr std::int64_t kMostCallsOfTrial = 256;

struct Algorithm {
  std::vector<Call> calls;
  std::int64_t count = 1;  // calls of one sample
  std::vector<double> seconds{};
};

}  // namespace

std::vector<Call> fastest(std::vector<std::vector<Call>> ways, Timer& timer, const std::string& where,
                          const std::string& needed) {
  std::vector<Algorithm> candidates;
  for (std::vector<Call>& way : ways) {
    Algorithm one{.calls = std::move(way)};
    try {
      timer.run(one.calls.front());
      const double estimate = timer.seconds(one.calls, 0, 1);
      one.count = std::clamp<std::int64_t>(std::llround(std::ceil(kSampleSeconds / std::max(estimate, 1e-8))), 1,
                                           kMostCallsOfTrial);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::variant_refuses) throw;
      continue;  // proposed, but not taken
    }
    candidates.push_back(std::move(one));
  }
  if (candidates.empty()) peer_refuses(where, needed);
  for (int sample = 0; sample < kSamples; ++sample)
    for (Algorithm& one : candidates)
      one.seconds.push_back(timer.seconds(one.calls, 0, one.count) / static_cast<double>(one.count));
  const auto best =
      std::ranges::min_element(candidates, {}, [](const Algorithm& one) { return percentile(one.seconds, 0.5); });
  return std::move(best->calls);
}

}  // namespace tmaops::bench
