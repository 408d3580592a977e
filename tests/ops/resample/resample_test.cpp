// What resampling means at every edge, for every variant.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "ops/resample/resample_call.hpp"
#include "ops/resample/resample_cases.hpp"
#include "support/expect_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::test {
namespace {

const double kNan = std::nan("");

Buffer buffer(DType dtype, std::initializer_list<std::int64_t> shape, const std::vector<double>& values) {
  Buffer made(dtype, shape);
  for (std::size_t i = 0; i < values.size(); ++i) made.set(static_cast<std::int64_t>(i), values[i]);
  return made;
}

class ResampleVariant : public ::testing::TestWithParam<std::string> {
 protected:
  /// One trajectory with one channel. The same in each of several channels, which go another way through vectors, must
  /// come out the same but for rounding.
  std::vector<double> run(const std::vector<double>& times, const std::vector<double>& values,
                          const std::vector<double>& targets, const ResampleOptions& options, DType dtype = DType::f64,
                          DType time_dtype = DType::f64) {
    const std::vector<double> one = run_channels(1, times, values, targets, options, dtype, time_dtype);
    constexpr std::int64_t kChannels = 19;
    const std::vector<double> all = run_channels(kChannels, times, values, targets, options, dtype, time_dtype);
    double span = 0;  // a constant stays exact
    for (const double value : values)
      if (std::isfinite(value) && std::isfinite(values[0])) span = std::max(span, std::abs(value - values[0]));
    const double tolerance = 16 * span * epsilon(dtype);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double want = one[i / kChannels];
      if (std::isfinite(want))
        EXPECT_NEAR(all[i], want, tolerance) << "target " << i / kChannels << ", channel " << i % kChannels;
      else
        EXPECT_FALSE(std::isfinite(all[i])) << "target " << i / kChannels << ", channel " << i % kChannels;
    }
    return one;
  }
  void expect(const std::vector<double>& got, const std::vector<double>& want, double tolerance = 0) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE((std::isnan(got[i]) && std::isnan(want[i])) || got[i] == want[i] ||
                  std::abs(got[i] - want[i]) <= tolerance)
          << "target " << i << ": got " << got[i] << ", want " << want[i];
  }

 private:
  static double epsilon(DType dtype) {
    return dtype == DType::f64 ? 0x1p-52 : dtype == DType::f32 ? 0x1p-23 : dtype == DType::f16 ? 0x1p-10 : 0x1p-7;
  }
  std::vector<double> run_channels(std::int64_t channels, const std::vector<double>& times,
                                   const std::vector<double>& values, const std::vector<double>& targets,
                                   ResampleOptions options, DType dtype, DType time_dtype) {
    const auto s = static_cast<std::int64_t>(times.size());
    const auto t = static_cast<std::int64_t>(targets.size());
    std::vector<double> rows;
    for (const double value : values) rows.insert(rows.end(), static_cast<std::size_t>(channels), value);
    Buffer output(dtype, {1, t, channels});
    options.variant = GetParam();
    resample(buffer(dtype, {1, s, channels}, rows), buffer(time_dtype, {1, s}, times),
             buffer(time_dtype, {1, t}, targets), output, options);
    EXPECT_TRUE(output.canaries_intact());
    return output.values();
  }
};

// Made with numpy 2.4.6 and scipy 1.17.1: numpy.interp(q, x, y), scipy.interpolate.interp1d(x, y, kind)(q),
// scipy.interpolate.PchipInterpolator(x, y, extrapolate=True)(q).
const std::vector<double> kX{0.0, 0.7, 1.5, 1.75, 3.0, 4.1, 5.0};
const std::vector<double> kY{1.0, 2.0, -0.5, -0.25, -0.25, 3.0, 2.5};
const std::vector<double> kQ{0.0, 0.35, 0.7, 1.2, 1.6, 2.0, 2.9, 3.5, 4.0, 4.7, 5.0};

TEST_P(ResampleVariant, agrees_with_numpy_and_scipy) {
  expect(run(kX, kY, kQ, {.interpolation = Interpolation::linear}),
         {1.0, 1.5, 2.0, 0.4375, -0.3999999999999999, -0.25, -0.25, 1.2272727272727277, 2.7045454545454555,
          2.6666666666666665, 2.5},
         1e-14);
  expect(run(kX, kY, kQ, {.interpolation = Interpolation::previous}),
         {1.0, 1.0, 2.0, 2.0, -0.5, -0.25, -0.25, -0.25, -0.25, 3.0, 2.5});
  expect(run(kX, kY, kQ, {.interpolation = Interpolation::next}),
         {1.0, 2.0, 2.0, -0.5, -0.25, -0.25, -0.25, 3.0, 3.0, 2.5, 2.5});
  expect(run(kX, kY, kQ, {.interpolation = Interpolation::nearest}),
         {1.0, 1.0, 2.0, -0.5, -0.5, -0.25, -0.25, -0.25, 3.0, 2.5, 2.5});
  expect(run(kX, kY, kQ, {.interpolation = Interpolation::cubic}),
         {1.0, 1.8109374999999999, 2.0, 0.291015625, -0.41199999999999987, -0.25, -0.25, 1.1540195341848238,
          2.9243050338091656, 2.8518518518518516, 2.5},
         1e-13);
  expect(run(kX, kY, {-0.5, 5.5}, {.interpolation = Interpolation::cubic, .outside = Outside::extrapolate}),
         {-1.962099125364432, 1.117969821673526}, 1e-13);
  // Two samples: a straight line. Three: both end rules.
  expect(run({0.0, 0.7}, {1.0, 2.0}, {0.1, 0.6}, {.interpolation = Interpolation::cubic}),
         {1.1428571428571428, 1.8571428571428572}, 1e-14);
  expect(run({0.0, 0.7, 1.5}, {1.0, 2.0, -0.5}, {0.1, 0.6, 1.0, 1.4}, {.interpolation = Interpolation::cubic}),
         {1.3164723032069972, 1.9881195335276967, 1.5994698660714284, 0.03261718750000003}, 1e-13);
  expect(run({0, 1, 4}, {0, 1, 1.5}, {0.25, 0.5, 2, 3.5}, {.interpolation = Interpolation::cubic}),
         {0.3109691722972973, 0.6105011261261261, 1.2737737737737738, 1.4854854854854855}, 1e-13);
}

// scipy.spatial.transform.Slerp over Rotation.from_quat of the same three quaternions (scipy 1.17.1), up to the sign,
// which scipy does not keep.
TEST_P(ResampleVariant, slerp_agrees_with_scipy) {
  const std::vector<double> times{0.0, 1.0, 2.5};
  const std::vector<double> targets{0.0, 0.25, 0.9, 1.4, 2.5};
  const double want[5][4] = {{0.10259783520851541, 0.20519567041703082, 0.3077935056255462, 0.9233805168766387},
                             {0.22579191651149952, 0.07265313955111391, 0.2984450560626134, 0.924483683070293},
                             {0.5020478290290953, -0.27208451231245023, 0.22996331671664505, 0.7880576555630613},
                             {0.5229515800515959, -0.3493572960729244, 0.22212112221771727, 0.7450727022693131},
                             {0.4841820261350421, -0.4236592728681617, 0.24209101306752095, 0.7262730392025629}};
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Buffer values = buffer(dtype, {1, 3, 4}, {0.1, 0.2, 0.3, 0.9, 0.5, -0.3, 0.2, 0.7, -0.4, 0.35, -0.2, -0.6});
    Buffer output(dtype, {1, 5, 4});
    resample(values, buffer(DType::f64, {1, 3}, times), buffer(DType::f64, {1, 5}, targets), output,
             {.interpolation = Interpolation::slerp, .variant = GetParam()});
    for (std::int64_t t = 0; t < 5; ++t) {
      const double sign = output.get(4 * t) * want[t][0] < 0 ? -1 : 1;
      for (std::int64_t c = 0; c < 4; ++c)
        EXPECT_NEAR(sign * output.get(4 * t + c), want[t][c], dtype == DType::f64 ? 1e-14 : 2e-7) << t << " " << c;
    }
  }
}

TEST_P(ResampleVariant, slerp_keeps_the_digits_of_near_quaternions) {
  // Half a rotation of 1e-7 rad about x: a slerp through acos(dot) would see an angle of 0.
  const double half = 0.5e-7;
  const Buffer values = buffer(DType::f64, {1, 2, 4}, {0, 0, 0, 1, std::sin(half), 0, 0, std::cos(half)});
  Buffer output(DType::f64, {1, 1, 4});
  resample(values, buffer(DType::f64, {1, 2}, {0, 1}), buffer(DType::f64, {1, 1}, {0.25}), output,
           {.interpolation = Interpolation::slerp, .variant = GetParam()});
  EXPECT_NEAR(output.get(0), std::sin(half / 4), 1e-22);
  // A sample itself is normalised, and so is a repeated one.
  const Buffer same = buffer(DType::f64, {1, 2, 4}, {0, 0, 3, 4, 0, 0, 6, 8});
  resample(same, buffer(DType::f64, {1, 2}, {0, 1}), buffer(DType::f64, {1, 1}, {0.25}), output,
           {.interpolation = Interpolation::slerp, .variant = GetParam()});
  expect(output.values(), {0, 0, 0.6, 0.8}, 1e-15);
}

TEST_P(ResampleVariant, outside_follows_the_policy) {
  const std::vector<double> x{1, 2, 4};
  const std::vector<double> y{10, 20, 10};
  const std::vector<double> q{0, 1, 4, 5};
  for (const Interpolation mode : {Interpolation::linear, Interpolation::previous, Interpolation::next,
                                   Interpolation::nearest, Interpolation::cubic}) {
    expect(run(x, y, q, {.interpolation = mode, .outside = Outside::hold}), {10, 10, 10, 10});
    expect(run(x, y, q, {.interpolation = mode, .outside = Outside::nan}), {kNan, 10, 10, kNan});
  }
  expect(run(x, y, q, {.outside = Outside::extrapolate}), {0, 10, 10, 5}, 1e-14);
  for (const Interpolation mode : {Interpolation::previous, Interpolation::next, Interpolation::nearest})
    expect(run(x, {10, 20, 30}, q, {.interpolation = mode, .outside = Outside::extrapolate}), {10, 10, 30, 30});
  expect_error(
      ErrorCode::target_outside, [&] { run(x, y, {1, 4, 5}, {.outside = Outside::error}); }, "target_times[0, 2]",
      "5 s", "from 1 s to 4 s");
  expect(run(x, y, {1, 4, 2}, {.outside = Outside::error}), {10, 10, 20});
}

TEST_P(ResampleVariant, slerp_extrapolates_at_the_same_rate) {
  const double angle = 0.3;
  const Buffer values = buffer(DType::f64, {1, 2, 4}, {0, 0, 0, 1, 0, 0, std::sin(angle), std::cos(angle)});
  Buffer output(DType::f64, {1, 2, 4});
  resample(values, buffer(DType::f64, {1, 2}, {0, 1}), buffer(DType::f64, {1, 2}, {-1, 3}), output,
           {.interpolation = Interpolation::slerp, .outside = Outside::extrapolate, .variant = GetParam()});
  expect(output.values(), {0, 0, -std::sin(angle), std::cos(angle), 0, 0, std::sin(3 * angle), std::cos(3 * angle)},
         1e-14);
}

TEST_P(ResampleVariant, one_sample_holds_and_no_targets_do_nothing) {
  for (const Outside outside : {Outside::hold, Outside::extrapolate})
    for (const Interpolation mode : {Interpolation::linear, Interpolation::previous, Interpolation::next,
                                     Interpolation::nearest, Interpolation::cubic})
      expect(run({2}, {7}, {1, 2, 3}, {.interpolation = mode, .outside = outside}), {7, 7, 7});
  expect(run({2}, {7}, {1, 2, 3}, {.outside = Outside::nan}), {kNan, 7, kNan});
  expect(run({2, 3}, {7, 8}, {}, {}), {});
  expect(run({}, {}, {}, {}), {});
  expect(run({}, {}, {1, 2}, {.outside = Outside::nan}), {kNan, kNan});
  expect_error(ErrorCode::empty_trajectory, [&] { run({}, {}, {1}, {}); }, "trajectory 0", "1 targets");
}

TEST_P(ResampleVariant, empty_batches_and_channels_are_fine) {
  Buffer none(DType::f32, {0, 4, 3});
  resample(Buffer(DType::f32, {0, 5, 3}), Buffer(DType::f64, {0, 5}), Buffer(DType::f64, {0, 4}), none,
           {.variant = GetParam()});
  Buffer narrow(DType::f32, {1, 2, 0});
  resample(Buffer(DType::f32, {1, 2, 0}), buffer(DType::f64, {1, 2}, {0, 1}), buffer(DType::f64, {1, 2}, {0, 1}),
           narrow, {.variant = GetParam()});
  EXPECT_TRUE(narrow.canaries_intact());
}

TEST_P(ResampleVariant, large_gaps_are_not_bridged) {
  const std::vector<double> x{0, 1, 11, 12, 13};
  const std::vector<double> y{0, 1, 5, 9, 9};
  const std::vector<double> q{0.5, 1, 1.5, 10.9, 11, 11.5};
  for (const Interpolation mode : {Interpolation::linear, Interpolation::previous, Interpolation::next,
                                   Interpolation::nearest, Interpolation::cubic}) {
    const std::vector<double> got = run(x, y, q, {.interpolation = mode, .max_gap = 2.0});
    EXPECT_EQ(got[1], 1);
    EXPECT_TRUE(std::isnan(got[2]) && std::isnan(got[3]));
    EXPECT_EQ(got[4], 5);
    EXPECT_FALSE(std::isnan(got[0]) || std::isnan(got[5]));
  }
  // A gap as long as max_gap is bridged; and slopes do not look across one: 0, 1 alone is a straight line.
  EXPECT_EQ(run(x, y, {6}, {.max_gap = 10.0})[0], 3);
  EXPECT_EQ(run(x, y, {0.25}, {.interpolation = Interpolation::cubic, .max_gap = 2.0})[0], 0.25);
  // Extrapolation does not go on with the line through a gap.
  expect(run({0, 10, 11, 21}, {1, 2, 3, 4}, {-1, 22}, {.outside = Outside::extrapolate, .max_gap = 2.0}), {1, 4});
}

TEST_P(ResampleVariant, duplicate_times_are_a_step_when_allowed) {
  const std::vector<double> x{0, 1, 1, 2};
  const std::vector<double> y{0, 10, 20, 30};
  expect_error(ErrorCode::duplicate_times, [&] { run(x, y, {0.5}, {}); }, "source_times[0, 2]", "twice 1 s");
  for (const Interpolation mode : {Interpolation::linear, Interpolation::cubic})
    expect(run(x, y, {0.5, 1, 1.5}, {.interpolation = mode, .duplicates = Duplicates::last}), {5, 20, 25}, 1e-14);
  expect(run(x, y, {0.5, 1, 1.5}, {.interpolation = Interpolation::next, .duplicates = Duplicates::last}),
         {10, 20, 30});
  // At both ends, and extrapolated from a piece of one sample.
  expect(run({1, 1, 2, 2}, {1, 2, 3, 4}, {0, 1, 2, 3}, {.duplicates = Duplicates::last}), {1, 2, 4, 4});
  expect(run({1, 1, 2, 2}, {1, 2, 3, 4}, {0, 3}, {.outside = Outside::extrapolate, .duplicates = Duplicates::last}),
         {1, 4});
}

TEST_P(ResampleVariant, non_finite_values_reach_only_their_neighbours) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      for (const Interpolation mode : {Interpolation::linear, Interpolation::cubic}) {
        // Samples at 0..5, the bad one at 2: targets on samples, and in each interval.
        const std::vector<double> got =
            run({0, 1, 2, 3, 4, 5}, {0, 1, bad, 3, 4, 5}, {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5},
                {.interpolation = mode}, dtype);
        for (const std::size_t good : {0u, 1u, 2u, 6u, 7u, 8u, 9u, 10u})
          EXPECT_TRUE(std::isfinite(got[good]))
              << to_string(dtype) << " target " << good << " of mode " << static_cast<int>(mode) << " beside " << bad;
        EXPECT_FALSE(std::isfinite(got[3]));
        EXPECT_FALSE(std::isfinite(got[4]));
        EXPECT_FALSE(std::isfinite(got[5]));
      }
      // Held at both ends, next to a bad neighbour.
      expect(run({0, 1, 2}, {1, bad, 3}, {-1, 0, 2, 3}, {}, dtype), {1, 1, 3, 3});
    }
  // Infinity at the end, held; -0.0 stays -0.0.
  expect(run({0, 1}, {1, kInfinity}, {1, 2}, {}), {kInfinity, kInfinity});
  EXPECT_TRUE(std::signbit(run({0, 1}, {-0.0, 1}, {0}, {})[0]));
}

TEST_P(ResampleVariant, constants_stay_exactly) {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> q;
  for (int i = 0; i < 300; ++i) {
    x.push_back(i + 0.3 * std::sin(i));
    y.push_back(static_cast<double>(0.04F));
    q.push_back(1 + 0.97 * i);
  }
  for (const Interpolation mode : {Interpolation::linear, Interpolation::cubic})
    for (const double value : run(x, y, q, {.interpolation = mode}, DType::f32)) EXPECT_EQ(value, y[0]);
}

TEST_P(ResampleVariant, constants_stay_exactly_far_outside) {
  const double value = static_cast<double>(0.04F);
  for (const DType dtype : {DType::f64, DType::f32})
    expect(run({0, 1, 2}, {value, value, value}, {-1e5, -0.3, 2.7, 1e5}, {.outside = Outside::extrapolate}, dtype),
           {value, value, value, value});
  for (const DType dtype : {DType::f16, DType::bf16})  // 0.25 is a number of both
    expect(run({0, 1, 2}, {0.25, 0.25, 0.25}, {-1e5, -0.3, 2.7, 1e5}, {.outside = Outside::extrapolate}, dtype),
           {0.25, 0.25, 0.25, 0.25});
}

TEST_P(ResampleVariant, extrapolates_by_the_documented_formula) {
  // y0 + w (y1 - y0) with one rounding of the difference and two of the rest: within 4 units of the result, where
  // (1 - w) y0 + w y1 is off by as many units of w y1.
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const double unit = dtype == DType::f64   ? 0x1p-53
                        : dtype == DType::f32 ? 0x1p-24
                        : dtype == DType::f16 ? 0x1p-11
                                              : 0x1p-8;
    for (const auto& [first, second] : {std::pair{1.0, 1.03125}, {100.0, 100.5}, {-7.0, -7.0625}, {3.0, 2.0}})
      for (const double w : {-1000.25, -3.5, -0.125, 1.0625, 2.75, 50.5, 777.125}) {
        const double want = first + w * (second - first);  // every number here is exact in f64
        const double got = run({0, 1}, {first, second}, {w}, {.outside = Outside::extrapolate}, dtype)[0];
        const double arithmetic = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
        EXPECT_NEAR(
            got, want,
            unit * std::abs(want) + 2 * arithmetic * std::abs(w * (second - first)) + 2 * arithmetic * std::abs(want))
            << to_string(dtype) << " from " << first << " and " << second << " at " << w;
      }
  }
}

TEST_P(ResampleVariant, nanoseconds_are_exact_at_the_limits) {
  // Steps of 1 us at the largest and smallest timestamps, where f64 resolves 512 ns and f32 half an hour.
  for (const std::int64_t base : {std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::max() - 10'000,
                                  std::numeric_limits<std::int64_t>::min(), std::int64_t{-5000}}) {
    const std::vector<std::int64_t> x{base, base + 1000, base + 2000, base + 2001};
    const std::vector<std::int64_t> q{base + 1, base + 500, base + 501, base + 1999, base + 2000, base + 2001};
    const std::vector<float> y{0, 1000, 2000, 3000};
    std::vector<float> out(q.size());
    const auto go = [&](Interpolation mode, std::variant<double, std::int64_t> gap) {
      resample(view(y.data(), {1, 4, 1}), view(x.data(), {1, 4}), view(q.data(), {1, 6}), view(out.data(), {1, 6, 1}),
               {.interpolation = mode, .max_gap = gap, .variant = GetParam()});
      return out;
    };
    const std::vector<float> want{1, 500, 501, 1999, 2000, 3000};
    const std::vector<float> linear = go(Interpolation::linear, 0.0);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(linear[i], want[i], 2e-4);
    EXPECT_EQ(go(Interpolation::nearest, 0.0), (std::vector<float>{0, 0, 1000, 2000, 2000, 3000}));
    EXPECT_EQ(go(Interpolation::previous, 0.0), (std::vector<float>{0, 0, 0, 1000, 2000, 3000}));
    const std::vector<float> gap = go(Interpolation::previous, std::int64_t{999});
    EXPECT_TRUE(std::isnan(gap[0]) && std::isnan(gap[3]));
    EXPECT_EQ(gap[4], 2000);
    // And onto a grid: exact 64-bit points.
    resample(view(y.data(), {1, 4, 1}), view(x.data(), {1, 4}), UniformGrid{base, std::int64_t{500}, 5},
             view(out.data(), {1, 5, 1}), {.interpolation = Interpolation::previous, .variant = GetParam()});
    EXPECT_EQ((std::vector<float>(out.begin(), out.begin() + 5)), (std::vector<float>{0, 0, 1000, 1000, 2000}));
  }
}

TEST_P(ResampleVariant, unix_seconds_in_f64_keep_their_resolution) {
  // f64 resolves 0.24 us at UNIX time: weights of timestamps that many units apart are exact.
  const double base = 1.7e9;
  const double unit = std::ldexp(1, -22);
  expect(run({base, base + 4 * unit, base + 8 * unit}, {0, 1, 2},
             {base + unit, base + 2 * unit, base + 3 * unit, base + 4 * unit, base + 7 * unit}, {}),
         {0.25, 0.5, 0.75, 1, 1.75});
  // The weight lies strictly between the samples even where its rounding to f32 would give 1.
  expect(run({0, 1, 2}, {1, 2, 3}, {std::nextafter(1.0, 0.0), 1e-300}, {.interpolation = Interpolation::previous},
             DType::f32),
         {1, 1});
  expect(run({0, 1, 2}, {1, 2, 3}, {1e-300}, {.interpolation = Interpolation::next}, DType::f32), {2});
  // The nearest is decided by the differences themselves, not by a rounded weight.
  const double middle = 1 + std::ldexp(1, -40);
  expect(run({0, 2}, {1, 2}, {1, middle}, {.interpolation = Interpolation::nearest}, DType::f32), {1, 2});
}

TEST_P(ResampleVariant, grid_points_are_products_not_sums) {
  // 0.1 * 3 rounded, not 0.1 + 0.1 + 0.1: as numpy's start + i * period, so that samples at these times are hit.
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < 1000; ++i) {
    const double product = i * 0.1;
    x.push_back(0.7 + product);
    y.push_back(i);
  }
  Buffer output(DType::f64, {1, 1000, 1});
  resample(buffer(DType::f64, {1, 1000, 1}, y), buffer(DType::f64, {1, 1000}, x), UniformGrid{0.7, 0.1, 1000}, output,
           {.interpolation = Interpolation::previous, .variant = GetParam()});
  expect(output.values(), y);
  resample(buffer(DType::f64, {1, 1000, 1}, y), buffer(DType::f64, {1, 1000}, x), UniformGrid{0.7, 0.1, 1000}, output,
           {.interpolation = Interpolation::next, .variant = GetParam()});
  expect(output.values(), y);
}

TEST_P(ResampleVariant, the_mask_says_what_is_data) {
  Buffer output(DType::f32, {1, 5, 1});
  Buffer valid(DType::u8, {1, 5});
  const Buffer targets = buffer(DType::f64, {1, 5}, {-1, 0, 0.5, 5, 11});
  ResampleOptions options{.outside = Outside::nan, .max_gap = 2.0, .valid = valid, .variant = GetParam()};
  const Buffer values = buffer(DType::f32, {1, 3, 1}, {1, kNan, 3});
  const Buffer times = buffer(DType::f64, {1, 3}, {0, 1, 10});
  resample(values, times, targets, output, options);
  EXPECT_EQ(valid.values(), (std::vector<double>{0, 1, 1, 0, 0}));
  EXPECT_TRUE(valid.canaries_intact());
  options.outside = Outside::hold;
  resample(values, times, targets, output, options);
  EXPECT_EQ(valid.values(), (std::vector<double>{1, 1, 1, 0, 1}));
}

TEST_P(ResampleVariant, reads_broadcast_and_reversed_tensors) {
  // Values with stride 0 over trajectories and channels from the last to the first; an output of every second row.
  const std::vector<float> data{0, 1, 2, 3, 4, 5};  // (3, 2)
  const std::vector<double> x{0, 1, 2};
  const std::vector<double> q{0, 0.5, 2};
  std::vector<float> out(2 * 6 * 2, -1);
  const ConstTensorView values(data.data() + 1, Layout::strided({2, 3, 2}, {0, 2, -1}));
  resample(values, ConstTensorView(x.data(), Layout::strided({2, 3}, {0, 1})), view(q.data(), {3}),
           TensorView(out.data(), Layout::strided({2, 3, 2}, {12, 4, 1})),
           {.variant = GetParam() == "simd" ? "portable" : GetParam()});
  EXPECT_EQ(out,
            (std::vector<float>{1, 0, -1, -1, 2, 1, -1, -1, 5, 4, -1, -1, 1, 0, -1, -1, 2, 1, -1, -1, 5, 4, -1, -1}));
}

TEST_P(ResampleVariant, an_error_leaves_the_next_call_right) {
  expect_error(ErrorCode::times_not_sorted, [&] { run({0, 2, 1}, {1, 2, 3}, {0.5}, {}); }, "source_times[0, 2]");
  expect(run({0, 1, 2}, {1, 2, 3}, {0.5}, {}), {1.5});
}

INSTANTIATE_TEST_SUITE_P(Variants, ResampleVariant, ::testing::ValuesIn(cpu_variants("resample")),
                         [](const auto& variant) { return variant.param; });

}  // namespace
}  // namespace tmaops::test
