#include "ops/resample/shared/intervals.hpp"

#include <numbers>
#include <numeric>

namespace tmaops::ops::resample {
namespace {

/// Half the length of the filter, in periods of the target.
constexpr double kReach = 4;
/// Samples in two periods from which on the value at an end is fitted: fewer are no faster than the targets resolve.
constexpr std::int64_t kFitted = 8;
/// Squared distance of those samples from the end by their variance, at most.
constexpr double kFarthest = 16;

/// A sinc under a Hann window: half at half the rate of the targets.
struct Impulse {
  double period;
  double reach;
  double operator()(double time) const {
    if (time == 0) return 1;
    if (std::abs(time) >= reach) return 0;
    const double angle = std::numbers::pi * time / period;
    const double cosine = std::cos(std::numbers::pi * time / (2 * reach));
    return std::sin(angle) / angle * cosine * cosine;
  }
};

/// later - earlier, or the largest number where that does not fit.
template <class Time>
double length(Time later, Time earlier) {
  Time result{};
  return static_cast<double>(difference(later, earlier, result) ? result : std::numeric_limits<Time>::max());
}

}  // namespace

std::vector<std::int64_t> order_of_targets(const Timeline& line, std::int64_t b) {
  return visit_time_type(line.dtype, [&]<class Time>(Time*) -> std::vector<std::int64_t> {
    const std::int64_t count = line.target_count(b);
    const auto time = [&](std::int64_t t) { return target_time<Time>(line, b, t); };
    bool sorted = true;
    if (!line.uniform_grid)
      for (std::int64_t t = 1; t < count; ++t) sorted &= !(time(t) < time(t - 1));
    if (sorted) return {};
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::ranges::stable_sort(order, {}, time);
    return order;
  });
}

/// Number of samples at or before a time, by steps that double from the last answer, then by halving.
template <class Time>
std::int64_t Intervals<Time>::at_or_before(Time time) {
  std::int64_t low = 0;
  std::int64_t high = x_.count;  // the answer is in [low, high]
  if (last_answer_ > 0 && x_[last_answer_ - 1] > time) {
    high = last_answer_ - 1;
  } else {
    low = last_answer_;
    for (std::int64_t step = 1; low + step <= x_.count; step *= 2) {
      if (x_[low + step - 1] > time) {
        high = low + step - 1;
        break;
      }
      low += step;
    }
  }
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (x_[middle] <= time)
      low = middle + 1;
    else
      high = middle;
  }
  return last_answer_ = low;
}

template <class Time>
SampleRun Intervals<Time>::samples(std::int64_t k) {
  const std::int64_t begin = k == 0 ? 0 : at_or_before(time(k - 1));
  return {begin, k + 1 == targets_ ? x_.count : at_or_before(time(k))};
}

template <class Time>
bool Intervals<Time>::samples_or_previous(std::int64_t k, SampleRun& run) {
  run = samples(k);
  if (run.begin < run.end) return true;
  const Place found = place_of(k);
  if (found.kind == Place::Kind::missing) return false;
  const std::int64_t row = found.kind == Place::Kind::between && found.weight >= 1 ? found.row + 1 : found.row;
  run = {row, row + 1};
  return true;
}

template <class Time>
typename Intervals<Time>::Span Intervals<Time>::around(std::int64_t k) const {
  const Time q = time(k);
  constexpr Time kLowest = std::numeric_limits<Time>::lowest();
  constexpr Time kHighest = std::numeric_limits<Time>::max();
  if (targets_ == 1) return {kLowest, kHighest};
  Span span{q, q};
  if (k > 0) span.from = std::midpoint(time(k - 1), q);
  if (k + 1 < targets_) span.to = std::midpoint(q, time(k + 1));
  // Mirrored about q; what lies beyond the type lies beyond the samples.
  Time half{};
  if (k == 0) {
    const bool fits = difference(span.to, q, half) && difference(q, half, span.from);
    if (!fits) span.from = kLowest;
  }
  if (k + 1 == targets_) {
    const bool fits = difference(span.from, q, half) && difference(q, half, span.to);
    if (!fits) span.to = kHighest;
  }
  return span;
}

template <class Time>
bool Intervals<Time>::weigh(Interpolation mode, std::int64_t k, Weights& weights) {
  weights.each.clear();
  if (mode == Interpolation::sum) return sum(k, weights);
  return mode == Interpolation::mean ? mean(k, weights) : lowpass(k, weights);
}

/// A sample stands for the time since the sample before it, or for its own moment alone where none is before it in its
/// piece. It counts by the part of that time which lies in the interval of the target.
template <class Time>
bool Intervals<Time>::sum(std::int64_t k, Weights& weights) {
  const bool first = k == 0;
  const bool last = k + 1 == targets_;
  const SampleRun run = samples(k);
  const std::int64_t end = std::min(run.end + 1, x_.count);  // the sample after the target counts in part
  weights.first = run.begin;
  bool any = false;
  for (std::int64_t i = run.begin; i < end; ++i) {
    double weight = i < run.end ? 1 : 0;
    if (i > 0 && joined(line_, x_, i - 1)) {
      const Time from = first ? x_[i - 1] : std::max(x_[i - 1], time(k - 1));
      const Time to = last ? x_[i] : std::min(x_[i], time(k));
      weight = to > from ? static_cast<double>(static_cast<Time>(to - from)) /
                               static_cast<double>(static_cast<Time>(x_[i] - x_[i - 1]))
                         : 0;
    }
    any = any || weight > 0;
    weights.each.push_back(weight);
  }
  return any || place_of(k).kind != Place::Kind::missing;
}

/// The integral of the straight lines between the samples over the interval, by the length of the lines in it.
template <class Time>
bool Intervals<Time>::mean(std::int64_t k, Weights& weights) {
  const Span span = around(k);
  double total = 0;
  const std::int64_t begin = std::max<std::int64_t>(at_or_before(span.from) - 1, 0);
  weights.first = begin;
  for (std::int64_t i = begin; i + 1 < x_.count && x_[i] < span.to; ++i) {
    if (weights.each.empty()) weights.each.push_back(0);
    weights.each.push_back(0);
    const Time from = std::max(x_[i], span.from);
    const Time to = std::min(x_[i + 1], span.to);
    if (!(from < to) || !joined(line_, x_, i)) continue;
    const auto since = [&](Time time) { return static_cast<double>(static_cast<Time>(time - x_[i])); };
    const double covered = static_cast<double>(static_cast<Time>(to - from));
    const double later = covered * ((since(from) + since(to)) / 2 / since(x_[i + 1]));
    weights.each[weights.each.size() - 2] += covered - later;
    weights.each.back() += later;
    total += covered;
  }
  if (total > 0) {
    for (double& weight : weights.each) weight /= total;
    return true;
  }
  // No line lies in the interval: the value at the target, as linear has it; outside the samples that at their end.
  const Place found = place_of(k);
  weights.first = found.row;
  if (found.kind == Place::Kind::between) {
    const double weight = std::clamp(found.weight, 0.0, 1.0);
    weights.each = {1 - weight, weight};
  } else {
    weights.each = {1};
  }
  return found.kind != Place::Kind::missing;
}

template <class Time>
bool Intervals<Time>::lowpass(std::int64_t k, Weights& weights) {
  const Place found = place_of(k);
  if (found.kind == Place::Kind::missing) return false;
  const Time q = std::clamp(time(k), x_[0], x_[x_.count - 1]);
  const std::int64_t row = q == x_[x_.count - 1] ? x_.count - 1 : found.row;
  if (row < piece_.begin || row >= piece_.end) {
    piece_ = {row, row + 1};
    while (piece_.begin > 0 && joined(line_, x_, piece_.begin - 1)) --piece_.begin;
    while (piece_.end < x_.count && joined(line_, x_, piece_.end - 1)) ++piece_.end;
  }
  const auto [first, end] = piece_;
  weights.first = row;
  weights.each = {1};
  if (end - first < 2) return true;

  // Times since the first sample of the piece.
  const auto at = [&](std::int64_t i) { return static_cast<double>(static_cast<Time>(x_[i] - x_[first])); };
  const double target = static_cast<double>(static_cast<Time>(q - x_[first]));
  const double whole = at(end - 1);
  const Span span = around(k);
  const double of_targets = targets_ == 1 ? 0 : length(span.to, span.from);
  const double period = std::min(std::max(of_targets, whole / static_cast<double>(end - first - 1)), whole);
  // As far as the signal goes on at both sides of every target, so that a straight line stays one.
  const double reach = std::min(kReach * period, whole);
  const Impulse impulse{period, reach};
  const bool from_start = target < reach;
  const bool to_end = target + reach > whole;
  const auto first_after = [&](double time) {
    std::int64_t low = first;
    std::int64_t high = end;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (at(middle) > time)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  };
  std::int64_t low = std::max(first_after(target - reach) - 1, first);
  std::int64_t high = std::min(first_after(target + reach) + 1, end);
  const std::int64_t start_fit = first_after(2 * period);
  const std::int64_t end_fit = first_after(whole - 2 * period);
  if (from_start) {
    low = first;
    high = std::max(high, start_fit);
  }
  if (to_end) {
    low = std::min(low, end_fit);
    high = end;
  }
  weights.first = low;
  weights.each.assign(static_cast<std::size_t>(high - low), 0);
  const auto weight_of = [&](std::int64_t i) -> double& { return weights.each[static_cast<std::size_t>(i - low)]; };

  // The integral as a sum over points: samples, and points between those that are further apart than a period. Beyond
  // an end of the piece the signal goes on as twice its value there less its mirror image.
  double total = 0;
  double of_start = 0;
  double of_end = 0;
  const auto add = [&](std::int64_t i, double share, double time, double step) {
    double weight = step * impulse(time - target);
    total += weight;
    if (from_start) {
      const double mirrored = step * impulse(time + target);
      weight -= mirrored;
      of_start += 2 * mirrored;
      total += mirrored;
    }
    if (to_end) {
      const double mirrored = step * impulse(2 * whole - time - target);
      weight -= mirrored;
      of_end += 2 * mirrored;
      total += mirrored;
    }
    weight_of(i) += (1 - share) * weight;
    if (share > 0) weight_of(i + 1) += share * weight;
  };
  double before = 0;  // half the step in front of the sample
  for (std::int64_t i = low; i < high; ++i) {
    const double begin = at(i);
    double after = 0;
    if (i + 1 < high) {
      const double step = at(i + 1) - begin;
      const double parts = step <= period ? 1 : std::ceil(2 * step / period);
      const double part = step / parts;
      after = part / 2;
      const double last = std::min(parts - 1, std::ceil((target + reach - begin) / part));
      for (double p = std::max(1.0, std::floor((target - reach - begin) / part)); p <= last; ++p)
        add(i, p / parts, begin + p * part, part);
    }
    add(i, 0, begin, before + after);
    before = after;
  }

  // The value at an end: the straight line through the samples within two periods, under a Hann window, which a
  // vibration does not move. Few samples are no vibration: there it is the sample itself.
  const auto add_end = [&](std::int64_t begin, std::int64_t stop, double end_time, std::int64_t itself, double amount) {
    if (amount == 0) return;
    if (stop - begin < kFitted) {
      weight_of(itself) += amount;
      return;
    }
    double mass = 0;
    double moment = 0;
    edge_.clear();
    for (std::int64_t i = begin; i < stop; ++i) {
      const double away = std::abs(at(i) - end_time);
      const double step = (at(std::min(i + 1, end - 1)) - at(std::max(i - 1, first))) / 2;
      const double sine = std::sin(std::numbers::pi * away / (2 * period));
      edge_.push_back(step * sine * sine);
      mass += edge_.back();
      moment += edge_.back() * away;
    }
    const double middle = moment / mass;
    double variance = 0;
    for (std::int64_t i = begin; i < stop; ++i) {
      const double away = std::abs(at(i) - end_time) - middle;
      variance += edge_[static_cast<std::size_t>(i - begin)] / mass * away * away;
    }
    // A cluster far from the end says little about it. Evenly spread samples have 7.6 here.
    if (!(middle * middle <= kFarthest * variance)) {
      weight_of(itself) += amount;
      return;
    }
    for (std::int64_t i = begin; i < stop; ++i) {
      const double away = std::abs(at(i) - end_time) - middle;
      weight_of(i) += amount * edge_[static_cast<std::size_t>(i - begin)] / mass * (1 - middle * away / variance);
    }
  };
  add_end(first, start_fit, 0, first, of_start);
  add_end(end_fit, end, whole, end - 1, of_end);
  for (double& weight : weights.each) weight /= total;
  return true;
}

template class Intervals<float>;
template class Intervals<double>;
template class Intervals<std::int64_t>;

}  // namespace tmaops::ops::resample
