// What a target over an interval of time is made of: the definition, shared by the references and the CPU variants.
// docs/resample.md, "Over an interval", has the rules in words.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/resample/shared/reference_bracket.hpp"

namespace tmaops::ops::resample {

/// Indices of the targets of a trajectory in order of time, equal ones in the order given; empty where they are so.
std::vector<std::int64_t> order_of_targets(const Timeline& line, std::int64_t b);

/// Neighbouring samples of a trajectory, and how much each of them counts in a target.
struct Weights {
  std::int64_t first = 0;
  std::vector<double> each;
};

/// Samples [begin, end).
struct SampleRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The targets of a trajectory that has samples, by their place k in order of time. Each search begins where the last
/// one ended, so that targets in order cost a walk along the samples.
template <class Time>
class Intervals {
 public:
  Intervals(const Timeline& line, std::int64_t b, const std::vector<std::int64_t>& order)
      : line_(line), b_(b), order_(order), x_(source_times<Time>(line, b)), targets_(line.target_count(b)) {}

  std::int64_t targets() const { return targets_; }
  /// Index of target k in the tensors of the call.
  std::int64_t index(std::int64_t k) const { return order_.empty() ? k : order_[static_cast<std::size_t>(k)]; }
  Time time(std::int64_t k) const { return target_time<Time>(line_, b_, index(k)); }
  Place place_of(std::int64_t k) const { return place(line_, x_, time(k)); }

  /// Samples after target k - 1 and not after target k. The first target has all before it too, the last all after it.
  SampleRun samples(std::int64_t k);
  /// Weights of sum, mean or lowpass in target k. False for NaN by policy. No weights at all: 0.
  bool weigh(Interpolation mode, std::int64_t k, Weights& weights);
  /// The samples that min, max and any look at: those of samples(k), or the one that `previous` takes where there are
  /// none. False for NaN by policy.
  bool samples_or_previous(std::int64_t k, SampleRun& run);

 private:
  /// From halfway to the target before to halfway to the one after; the outermost targets reach as far out as in.
  struct Span {
    Time from;
    Time to;
  };
  Span around(std::int64_t k) const;

  std::int64_t at_or_before(Time time);
  bool sum(std::int64_t k, Weights& weights);
  bool mean(std::int64_t k, Weights& weights);
  bool lowpass(std::int64_t k, Weights& weights);

  const Timeline& line_;
  std::int64_t b_;
  const std::vector<std::int64_t>& order_;
  Times<Time> x_;
  std::int64_t targets_;
  std::int64_t last_answer_ = 0;
  SampleRun piece_{};           // the last one that lowpass was in
  std::vector<double> edge_{};  // of lowpass: what samples count in the value at an end of the piece
};

/// The sample of a run that min or max takes: the first extreme one, or the first that is NaN.
template <class Y>
std::int64_t extreme_row(SampleRun run, Interpolation mode, const Y& y) {
  std::int64_t best = run.begin;
  for (std::int64_t row = run.begin + 1; row < run.end && !std::isnan(y(best)); ++row)
    if (std::isnan(y(row)) || (mode == Interpolation::min ? y(row) < y(best) : y(row) > y(best))) best = row;
  return best;
}

extern template class Intervals<float>;
extern template class Intervals<double>;
extern template class Intervals<std::int64_t>;

}  // namespace tmaops::ops::resample
