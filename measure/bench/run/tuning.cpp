#include "bench/run/tuning.hpp"

#include <algorithm>
#include <cmath>

namespace tmaops::bench {
namespace {

struct Candidate {
  ops::gemm::TunedChoice choice;
  double logarithms = 0;  // of its times
  int times = 0;
};

}  // namespace

std::vector<ops::gemm::TunedChoice> fastest(const std::vector<Row>& rows, const std::string& gpu) {
  std::vector<Candidate> candidates;
  for (const Row& row : rows) {
    if (row.tuning_key.empty() || row.kind != Kind::variant || !row.verified || !row.us) continue;
    auto known = std::ranges::find_if(candidates, [&](const Candidate& one) {
      return one.choice.product == row.tuning_key && one.choice.types == row.info.dtype &&
             one.choice.choice == row.implementation;
    });
    if (known == candidates.end())
      known = candidates.insert(candidates.end(), {{gpu, row.tuning_key, row.info.dtype, row.implementation, 0}});
    known->logarithms += std::log(row.us->median);
    ++known->times;
    known->choice.microseconds = std::exp(known->logarithms / known->times);
  }
  // A candidate that lacks the time of one temperature loses to those that have both.
  std::vector<Candidate> best;
  for (const Candidate& one : candidates) {
    const auto same = std::ranges::find_if(best, [&](const Candidate& other) {
      return other.choice.product == one.choice.product && other.choice.types == one.choice.types;
    });
    if (same == best.end())
      best.push_back(one);
    else if (one.times > same->times ||
             (one.times == same->times && one.choice.microseconds < same->choice.microseconds))
      *same = one;
  }
  std::vector<ops::gemm::TunedChoice> choices;
  for (const Candidate& one : best) choices.push_back(one.choice);
  return choices;
}

}  // namespace tmaops::bench
