// Modes over the interval of a target: what they keep, what they remove, and their edges.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "ops/resample/resample_cases.hpp"
#include "support/expect_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::test {
namespace {

using Numbers = std::vector<double>;
constexpr double kNoData = std::numeric_limits<double>::quiet_NaN();

class ResampleIntervals : public ::testing::TestWithParam<std::string> {
 protected:
  /// One channel of one trajectory.
  template <class Time = double>
  Numbers run(Interpolation mode, const std::vector<Time>& x, const Numbers& y, const std::vector<Time>& q,
              ResampleOptions options = {}) {
    Numbers out(q.size(), -999);
    valid_.assign(q.size(), 9);
    options.interpolation = mode;
    options.variant = GetParam();
    const auto n = static_cast<std::int64_t>(x.size());
    const auto t = static_cast<std::int64_t>(q.size());
    options.valid = view(valid_.data(), {1, t});
    resample(view(y.data(), {1, n, 1}), view(x.data(), {n}), view(q.data(), {t}), view(out.data(), {1, t, 1}), options);
    return out;
  }
  std::vector<std::uint8_t> valid_{};
};

double total(const Numbers& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

Numbers every(double step, std::int64_t count, double from = 0) {
  Numbers all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(from + static_cast<double>(i) * step);
  return all;
}

/// Steps of half to one and a half of the mean step.
Numbers jittered(double step, std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  Numbers all{0};
  while (static_cast<std::int64_t>(all.size()) < count) all.push_back(all.back() + step * uniform(random));
  return all;
}

Numbers sine(double hertz, const Numbers& times, double phase = 0) {
  Numbers all;
  for (const double t : times) all.push_back(std::sin(2 * std::numbers::pi * hertz * t + phase));
  return all;
}

double rms(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

void expect_near(const Numbers& got, const Numbers& want, double tolerance = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "target " << i << ": " << got[i];
    } else {
      EXPECT_NEAR(got[i], want[i], tolerance) << "target " << i;
    }
}

TEST_P(ResampleIntervals, a_sample_counts_in_the_sum_by_the_part_of_its_time_that_lies_in_the_interval) {
  const Numbers x{0, 1, 2, 3, 4};
  const Numbers y{1, 10, 100, 1000, 10000};
  // (.., 0]: the first sample, which has no time before it. (0, 1.5]: all of (0, 1], half of (1, 2]. (1.5, 4] the rest.
  expect_near(run(Interpolation::sum, x, y, {0, 1.5, 4}), {1, 60, 11050});
  // The last target has what is left, the first what is before it.
  expect_near(run(Interpolation::sum, x, y, {1.25, 2}), {36, 11075});
  expect_near(run(Interpolation::sum, x, y, {-5, 0.5, 9}), {0, 6, 11105});
  // More targets than samples: each has its part.
  expect_near(run(Interpolation::sum, {0, 1}, {1, 8}, {0, 0.25, 0.5, 1}), {1, 2, 2, 4});
  expect_near(run(Interpolation::sum, x, y, {2}), {11111});
}

TEST_P(ResampleIntervals, sums_keep_their_total_up_and_down_in_rate) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const double rate : {0.1, 0.7, 1.0, 3.3})
    for (const bool gaps : {false, true}) {
      const Numbers x = jittered(0.01, 500, 3);
      Numbers y(x.size());
      for (double& value : y) value = normal(random);
      const Numbers q = jittered(0.01 / rate, static_cast<std::int64_t>(500 * rate), 4);
      const Numbers out = run(Interpolation::sum, x, y, q, {.max_gap = gaps ? 0.012 : 0.0});
      double sum = 0;
      for (const double value : out) sum += std::isnan(value) ? 0 : value;
      EXPECT_NEAR(sum, total(y), 1e-11) << "rate " << rate << ", gaps " << gaps;
    }
}

TEST_P(ResampleIntervals, sums_of_nanoseconds_keep_their_total_in_ragged_rows) {
  CaseShape shape;
  shape.batch = 6;
  shape.source = 80;
  shape.target = 45;
  shape.channels = 3;
  shape.values = DType::f64;
  shape.times = DType::i64;
  shape.groups = {Interpolation::sum};
  shape.ragged_source = shape.ragged_target = true;
  shape.sorted = false;
  const ResampleCase c(shape);
  Buffer out = c.output();
  c.run(GetParam(), out, nullptr);
  const auto source = c.options().source_offsets;
  const auto target = c.options().target_offsets;
  for (std::size_t b = 0; b < 6; ++b)
    for (std::int64_t channel = 0; channel < 3 && target[b] < target[b + 1]; ++channel) {
      double in = 0;
      double made = 0;
      for (std::int64_t row = source[b]; row < source[b + 1]; ++row) in += c.values().get(3 * row + channel);
      for (std::int64_t row = target[b]; row < target[b + 1]; ++row) made += out.get(3 * row + channel);
      EXPECT_NEAR(made, in, 1e-12) << "trajectory " << b << ", channel " << channel;
    }
}

TEST_P(ResampleIntervals, each_sample_lies_in_one_interval_and_none_is_lost) {
  for (const double rate : {0.13, 1.0, 4.0}) {
    const Numbers x = jittered(1, 200, 11);
    const Numbers y(x.size(), 2);
    const Numbers q = jittered(1 / rate, static_cast<std::int64_t>(150 * rate), 12);  // ends before the samples do
    EXPECT_EQ(total(run(Interpolation::count, x, y, q)), 200) << "rate " << rate;
    for (std::size_t at = 0; at < x.size() && rate < 1; at += 7) {
      Numbers flags(x.size(), 0);
      flags[at] = -3;
      const Numbers found = run(Interpolation::any, x, flags, q);
      EXPECT_EQ(total(found), 1) << "rate " << rate << ", sample " << at;
      const auto target = static_cast<std::size_t>(std::ranges::find(found, 1.0) - found.begin());
      if (x[at] <= q.back()) {
        EXPECT_GE(q[target], x[at]);  // never before it happened
      }
      if (target > 0) {
        EXPECT_LT(q[target - 1], x[at]);
      }
    }
  }
}

TEST_P(ResampleIntervals, the_end_of_an_episode_reaches_the_last_target) {
  const Numbers done{0, 0, 0, 0, 0, 0, 1};
  const Numbers x = every(1, 7);
  EXPECT_EQ(run(Interpolation::any, x, done, {0, 2, 4}), (Numbers{0, 0, 1}));
  EXPECT_EQ(run(Interpolation::any, x, done, {0, 2, 4, 6}), (Numbers{0, 0, 0, 1}));
  EXPECT_EQ(run(Interpolation::any, x, done, {5.5, 5.75, 6, 6.5}), (Numbers{0, 0, 1, 1}));
  // A flag that lasts does not flicker between more targets than samples.
  EXPECT_EQ(run(Interpolation::any, x, {0, 0, 0, 1, 1, 1, 0}, every(0.5, 13)),
            (Numbers{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0}));
}

TEST_P(ResampleIntervals, min_and_max_look_at_the_samples_after_the_target_before) {
  const Numbers x = every(1, 7);
  const Numbers y{3, 9, -1, 4, 5, 2, 7};
  EXPECT_EQ(run(Interpolation::max, x, y, {1, 3, 5}), (Numbers{9, 4, 7}));
  EXPECT_EQ(run(Interpolation::min, x, y, {1, 3, 5}), (Numbers{3, -1, 2}));
  // Without a sample: the one before, as previous.
  EXPECT_EQ(run(Interpolation::max, x, y, {0.25, 0.5, 0.75, 6}), (Numbers{3, 3, 3, 9}));
  EXPECT_EQ(run(Interpolation::min, x, y, {0.25, 0.5, 0.75, 6}), (Numbers{3, 3, 3, -1}));
}

TEST_P(ResampleIntervals, constants_stay_exact) {
  const Numbers x = jittered(0.01, 900, 21);
  for (const Interpolation mode : {Interpolation::mean, Interpolation::min, Interpolation::max, Interpolation::lowpass})
    for (const double constant : {0.1, -1.0 / 3, 1e17})
      for (const double step : {0.003, 0.033, 1.7}) {
        const Numbers q = jittered(step, static_cast<std::int64_t>(9 / step), 22);
        EXPECT_EQ(run(mode, x, Numbers(x.size(), constant), q), Numbers(q.size(), constant))
            << static_cast<int>(mode) << " " << constant << " " << step;
      }
}

TEST_P(ResampleIntervals, a_ramp_keeps_its_time) {
  const Numbers x = jittered(0.001, 4000, 31);
  Numbers y;
  for (const double t : x) y.push_back(5 * t - 2);
  const Numbers q = every(0.033, 100, 0.2);
  Numbers want;
  for (const double t : q) want.push_back(5 * t - 2);
  expect_near(run(Interpolation::mean, x, y, q), want);
  // The filter sums over jittered samples, so that a straight line is right to the size of a step.
  expect_near(run(Interpolation::lowpass, x, y, q), want, 1e-3);
  const Numbers even = every(0.001, 4000);
  Numbers line;
  for (const double t : even) line.push_back(5 * t - 2);
  Numbers ends = every(0.033, 122);
  Numbers at_ends;
  for (const double t : ends) at_ends.push_back(5 * t - 2);
  expect_near(run(Interpolation::lowpass, even, line, ends), at_ends, 1e-9);  // up to both ends
}

TEST_P(ResampleIntervals, the_mean_is_weighted_by_time) {
  // From 0.5 to 1.5: a line from 2 to 4, then one from 4 to 3.5.
  expect_near(run(Interpolation::mean, {0, 1, 3}, {0, 4, 2}, {0, 1, 2, 3}), {1, 3.375, 3, 2.25});
  // A hundred samples within a tenth of a second weigh as much as that tenth.
  Numbers x{0};
  Numbers y{0};
  for (int i = 0; i <= 100; ++i) {
    x.push_back(1 + 0.001 * i);
    y.push_back(i == 0 ? 0 : 1);
  }
  x.push_back(1.101);
  y.push_back(0);
  x.push_back(2);
  y.push_back(0);
  expect_near(run(Interpolation::mean, x, y, {1}), {0.05});
  // A single target: everything.
  expect_near(run(Interpolation::mean, {0, 1, 3}, {0, 4, 2}, {0.5}), {(2 + 6) / 3.0});
}

/// As the document says it: samples or lines against intervals, one pair at a time.
Numbers by_pairs(Interpolation mode, const Numbers& x, const Numbers& y, const Numbers& q) {
  const double far = 1e9;
  Numbers out(q.size(), 0);
  for (std::size_t k = 0; k < q.size(); ++k) {
    const bool last = k + 1 == q.size();
    if (mode == Interpolation::sum) {
      const double from = k == 0 ? -far : q[k - 1];
      const double to = last ? far : q[k];
      if (x[0] > from && x[0] <= to) out[k] += y[0];
      for (std::size_t i = 1; i < x.size(); ++i)
        out[k] += y[i] * std::max(0.0, std::min(x[i], to) - std::max(x[i - 1], from)) / (x[i] - x[i - 1]);
      continue;
    }
    const double before = k == 0 ? q[1] - q[0] : q[k] - q[k - 1];
    const double after = last ? before : q[k + 1] - q[k];
    const double from = std::max(q[k] - before / 2, x.front());
    const double to = std::min(q[k] + after / 2, x.back());
    const auto line = [&](std::size_t i, double t) {
      return y[i] + (y[i + 1] - y[i]) * (t - x[i]) / (x[i + 1] - x[i]);
    };
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      const double a = std::max(from, x[i]);
      const double b = std::min(to, x[i + 1]);
      if (b > a) out[k] += (b - a) * (line(i, a) + line(i, b)) / 2 / (to - from);
    }
  }
  return out;
}

TEST_P(ResampleIntervals, sum_and_mean_are_what_pairs_of_samples_and_targets_say) {
  std::mt19937_64 random(41);
  std::normal_distribution<double> normal;
  for (const double step : {0.2, 1.0, 7.5}) {
    const Numbers x = jittered(1, 120, 42);
    Numbers y(x.size());
    for (double& value : y) value = normal(random);
    const Numbers q = jittered(step, static_cast<std::int64_t>(110 / step), 43);
    for (const Interpolation mode : {Interpolation::sum, Interpolation::mean})
      expect_near(run(mode, x, y, q), by_pairs(mode, x, y, q));
  }
}

TEST_P(ResampleIntervals, lowpass_removes_what_the_targets_cannot_hold_and_keeps_the_rest) {
  const Numbers x = every(0.001, 10000);
  const Numbers q = every(1.0 / 30, 300);
  for (const double phase : {0.0, 0.7, 1.5}) {
    // To a hundredth of the amplitude, the ends too. Linear gives a sine of 10 Hz of the full amplitude.
    EXPECT_LT(rms(run(Interpolation::lowpass, x, sine(40, x, phase), q), Numbers(q.size(), 0)), 0.01);
    EXPECT_GT(rms(run(Interpolation::linear, x, sine(40, x, phase), q), Numbers(q.size(), 0)), 0.6);
    EXPECT_LT(rms(run(Interpolation::lowpass, x, sine(1, x, phase), q), sine(1, q, phase)), 0.007);
  }
  // The amplitude that is left of a frequency, in parts of half the rate of the targets, far from the ends.
  const Numbers inner = every(1.0 / 30, 240, 1.01);
  const auto left = [&](double part) {
    const Numbers made = run(Interpolation::lowpass, x, sine(15 * part, x, 0.3), inner);
    return rms(made, Numbers(inner.size(), 0)) / rms(sine(15 * part, inner, 0.3), Numbers(inner.size(), 0));
  };
  for (const double part : {0.1, 0.3, 0.5, 0.6}) EXPECT_NEAR(left(part), 1, 0.01) << part;
  EXPECT_NEAR(left(1), 0.5, 0.01);
  for (const double part : {1.4, 1.5, 1.7, 2.5, 7.0, 30.0}) EXPECT_LT(left(part), 0.01) << part;
}

TEST_P(ResampleIntervals, lowpass_takes_irregular_samples_with_holes) {
  Numbers x = jittered(0.001, 4000, 51);
  for (std::size_t i = 2000; i < x.size(); ++i) x[i] += 1.5;  // as long as 45 targets
  Numbers y = sine(1, x);
  const Numbers vibration = sine(41, x, 0.4);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += vibration[i];
  const Numbers q = every(1.0 / 30, 160);
  const Numbers out = run(Interpolation::lowpass, x, y, q);
  for (std::size_t k = 0; k < q.size(); ++k) {
    EXPECT_LT(std::abs(out[k]), 2.2) << k;
    if (q[k] > 0.2 && q[k] < x[1999] - 0.2) {
      EXPECT_NEAR(out[k], std::sin(2 * std::numbers::pi * q[k]), 0.03) << k;
    }
  }
  // With the hole as a gap: both sides on their own, nothing inside.
  const Numbers apart = run(Interpolation::lowpass, x, y, q, {.max_gap = 1.0});
  for (std::size_t k = 0; k < q.size(); ++k) {
    const bool inside = q[k] > x[1999] && q[k] < x[2000];
    EXPECT_EQ(std::isnan(apart[k]), inside) << k;
    EXPECT_EQ(valid_[k], !inside) << k;
  }
}

TEST_P(ResampleIntervals, an_interval_that_holds_data_is_valid_and_one_that_holds_none_follows_its_target) {
  // A gap from 1 to 5, and targets on both sides of the samples.
  const Numbers x{0, 1, 5, 6};
  const Numbers y{1, 2, 4, 8};
  const Numbers q{-2, -1, 0.5, 1.5, 3, 3.5, 5.5, 7, 9};
  const ResampleOptions options{.outside = Outside::nan, .max_gap = 2.0};
  expect_near(run(Interpolation::sum, x, y, q, options), {kNoData, kNoData, 2, 1, kNoData, kNoData, 8, 4, kNoData});
  EXPECT_EQ(valid_, (std::vector<std::uint8_t>{0, 0, 1, 1, 0, 0, 1, 1, 0}));
  expect_near(run(Interpolation::count, x, y, q, options), {kNoData, kNoData, 1, 1, kNoData, kNoData, 1, 1, kNoData});
  expect_near(run(Interpolation::max, x, y, q, options), {kNoData, kNoData, 1, 2, kNoData, kNoData, 4, 8, kNoData});
  // Around 0.5 from -0.25 to 1, around 1.5 nothing but the point 1, around 3.5 and 5.5 the line from 5 to 6.
  expect_near(run(Interpolation::mean, x, y, q, options),
              {kNoData, kNoData, 1.5, kNoData, kNoData, kNoData, 6, kNoData, kNoData});
  // Held outside: nothing is added there, and the samples at the ends go on.
  expect_near(run(Interpolation::sum, x, y, q, {.max_gap = 2.0}), {0, 0, 2, 1, kNoData, kNoData, 8, 4, 0});
  expect_near(run(Interpolation::max, x, y, q, {.max_gap = 2.0}), {1, 1, 1, 2, kNoData, kNoData, 4, 8, 8});
  expect_near(run(Interpolation::lowpass, x, y, {-3, 9}, {.max_gap = 2.0}), {1, 8}, 1e-9);
  expect_error(
      ErrorCode::target_outside, [&] { run(Interpolation::sum, x, y, q, {.outside = Outside::error}); },
      "target_times[0, 0]");
}

TEST_P(ResampleIntervals, nan_reaches_the_targets_whose_interval_holds_it) {
  const Numbers x = every(1, 7);
  Numbers y{1, 1, 1, kNoData, 1, 1, 1};
  const Numbers q{0, 2, 4, 6};
  expect_near(run(Interpolation::sum, x, y, q), {1, 2, kNoData, 2});
  expect_near(run(Interpolation::mean, x, y, q), {1, kNoData, kNoData, 1});
  expect_near(run(Interpolation::min, x, y, q), {1, 1, kNoData, 1});
  expect_near(run(Interpolation::count, x, y, q), {1, 2, 1, 2});
  expect_near(run(Interpolation::any, x, y, q), {1, 1, 1, 1});  // 1 or NaN is true whatever NaN stands for
  y[4] = 0;
  expect_near(run(Interpolation::any, x, y, q), {1, 1, kNoData, 1});
  EXPECT_EQ(valid_, std::vector<std::uint8_t>(4, 1));  // NaN by data
}

TEST_P(ResampleIntervals, targets_in_any_order_get_what_they_get_in_order) {
  const Numbers x = jittered(1, 60, 61);
  const Numbers y = sine(0.05, x);
  const Numbers sorted = jittered(2.5, 22, 62);
  Numbers shuffled = sorted;
  std::ranges::shuffle(shuffled, std::mt19937_64(63));
  for (const Interpolation mode : {Interpolation::mean, Interpolation::sum, Interpolation::max, Interpolation::any,
                                   Interpolation::count, Interpolation::lowpass}) {
    const Numbers want = run(mode, x, y, sorted);
    const Numbers got = run(mode, x, y, shuffled);
    for (std::size_t k = 0; k < sorted.size(); ++k)
      EXPECT_EQ(got[k], want[static_cast<std::size_t>(std::ranges::find(sorted, shuffled[k]) - sorted.begin())]);
  }
  // Of equal targets the first has the samples.
  EXPECT_EQ(run(Interpolation::count, {0, 1, 2, 3}, {1, 1, 1, 1}, {2, 1, 2}), (Numbers{1, 2, 1}));
}

TEST_P(ResampleIntervals, channels_have_modes_of_their_own_and_one_mask) {
  const Numbers x{0, 1, 2, 3, 10, 11};
  Numbers y;
  for (std::size_t i = 0; i < x.size(); ++i) y.insert(y.end(), {x[i], 1, static_cast<double>(i == 2)});
  const Numbers q{1, 4, 11};
  Numbers out(9, -1);
  std::vector<std::uint8_t> valid(3, 9);
  const std::vector<ChannelGroup> groups{
      {0, 1, Interpolation::linear}, {1, 1, Interpolation::sum}, {2, 1, Interpolation::any}};
  resample(view(y.data(), {1, 6, 3}), view(x.data(), {6}), view(q.data(), {3}), view(out.data(), {1, 3, 3}),
           {.channel_groups = groups, .max_gap = 2.0, .valid = view(valid.data(), {1, 3}), .variant = GetParam()});
  expect_near(out, {1, 2, 0, kNoData, 2, 1, 11, 2, 0});
  EXPECT_EQ(valid, (std::vector<std::uint8_t>{1, 0, 1}));
}

TEST_P(ResampleIntervals, times_far_from_zero_and_at_the_ends_of_their_type_are_exact) {
  constexpr std::int64_t kFar = 1'700'000'000'000'000'000;
  const std::vector<std::int64_t> x{kFar, kFar + 10, kFar + 20};
  expect_near(run<std::int64_t>(Interpolation::sum, x, {1, 2, 4}, {kFar + 5, kFar + 20}), {2, 5});
  expect_near(run<std::int64_t>(Interpolation::mean, x, {0, 10, 20}, {kFar + 5, kFar + 15}), {5, 15});
  constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kHighest = std::numeric_limits<std::int64_t>::max();
  for (const Interpolation mode : {Interpolation::mean, Interpolation::sum, Interpolation::lowpass})
    for (const double value : run<std::int64_t>(mode, x, {1, 1, 1}, {kLowest, kFar + 10, kHighest}))
      EXPECT_TRUE(std::isfinite(value)) << static_cast<int>(mode);
}

INSTANTIATE_TEST_SUITE_P(Variants, ResampleIntervals, ::testing::ValuesIn(cpu_variants("resample")),
                         [](const auto& variant) { return variant.param; });

}  // namespace
}  // namespace tmaops::test
