// What bad times and values get from every variant: a named error and a correct next call; and data at the limits.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "core/cache_size.hpp"
#include "ops/resample/resample_call.hpp"
#include "ops/resample/resample_cases.hpp"
#include "support/expect_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::test {
namespace {

class ResampleData : public ::testing::TestWithParam<std::string> {
 protected:
  /// Data errors are found while running: nothing useful is in the output, and the next call is right.
  template <class... Text>
  void refuse(ErrorCode code, const std::function<void(Call&)>& change, const Text&... pieces) {
    Call call;
    call.options.variant = GetParam();
    change(call);
    expect_error(code, [&] { call.run(); }, pieces...);
    expect_next_call_right(GetParam());
  }
};

TEST_P(ResampleData, times_must_increase_and_be_finite) {
  using enum ErrorCode;
  refuse(times_not_sorted, [](Call& c) { c.x[4] = 3; }, "source_times[1, 2]", "2 s after 3 s");
  refuse(times_not_sorted, [](Call& c) { c.x[4] = 3, c.options.duplicates = Duplicates::last; }, "source_times[1, 2]");
  refuse(duplicate_times, [](Call& c) { c.x[1] = 0; }, "source_times[0, 1]", "twice 0 s");
  for (const double bad : {std::nan(""), kInfinity, -kInfinity})
    for (const std::size_t at : {0u, 1u, 2u, 5u}) {
      refuse(times_not_finite, [&](Call& c) { c.x[at] = bad; }, "source_times");
      refuse(
          times_not_finite, [&](Call& c) { c.x[at] = bad, c.options.duplicates = Duplicates::last; }, "source_times");
    }
  for (const double bad : {std::nan(""), kInfinity, -kInfinity})
    for (const Outside outside : {Outside::hold, Outside::nan, Outside::extrapolate, Outside::error})
      refuse(times_not_finite, [&](Call& c) { c.q[2] = bad, c.options.outside = outside; }, "target_times[1, 0]");
  // Also where there is nothing to interpolate.
  for (const double bad : {std::nan(""), kInfinity, -kInfinity})
    refuse(
        times_not_finite,
        [&](Call& c) {
          c.values = view(std::as_const(c.data).data(), {2, 0, 2});
          c.source_times = view(std::as_const(c.x).data(), {2, 0});
          c.options.outside = Outside::nan;
          c.q[3] = bad;
        },
        "target_times[1, 1]");
  // Every position of a long trajectory is looked at, by whatever vectors and shares.
  for (std::size_t at = 1; at < 200; at += 7) {
    std::vector<double> x(200);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
    std::swap(x[at], x[at - 1]);
    const std::vector<double> q{3.5, 100, 150};
    const std::vector<float> values(200);
    std::vector<float> out(3);
    expect_error(
        times_not_sorted,
        [&] {
          resample(view(values.data(), {1, 200, 1}), view(x.data(), {200}), view(q.data(), {3}),
                   view(out.data(), {1, 3, 1}), {.variant = GetParam()});
        },
        "source_times[0, " + std::to_string(at) + "]");
  }
}

TEST_P(ResampleData, times_must_not_overflow) {
  using enum ErrorCode;
  refuse(time_overflow, [](Call& c) { c.x[0] = -1.5e308, c.x[2] = 1.5e308; }, "span");
  const std::int64_t low = std::numeric_limits<std::int64_t>::min();
  const std::int64_t high = std::numeric_limits<std::int64_t>::max();
  const auto whole = [&](std::vector<std::int64_t> x, std::vector<std::int64_t> q, Outside outside) {
    const std::vector<float> values{1, 2};
    std::vector<float> out(1);
    resample(view(values.data(), {1, 2, 1}), view(std::as_const(x).data(), {1, 2}),
             view(std::as_const(q).data(), {1, 1}), view(out.data(), {1, 1, 1}),
             {.outside = outside, .variant = GetParam()});
    return out[0];
  };
  expect_error(time_overflow, [&] { whole({low, high}, {0}, Outside::hold); }, "span");
  expect_error(time_overflow, [&] { whole({high - 1, high}, {low}, Outside::extrapolate); }, "target_times[0, 0]");
  expect_error(time_overflow, [&] { whole({low, low + 1}, {high}, Outside::extrapolate); }, "target_times[0, 0]");
  // Holding needs no difference.
  EXPECT_EQ(whole({high - 1, high}, {low}, Outside::hold), 1);
  EXPECT_EQ(whole({low, low + 1}, {high}, Outside::hold), 2);
  EXPECT_EQ(whole({0, high}, {high / 2}, Outside::hold), 1.5F);
  // Nor does extrapolating need the one to the sample further away, which is beyond 64 bits here.
  EXPECT_EQ(whole({0, high}, {low}, Outside::extrapolate), 0.0F);
}

TEST_P(ResampleData, single_precision_times_must_resolve_the_steps) {
  using enum ErrorCode;
  const auto run = [&](double start, double step, Duplicates duplicates) {
    std::vector<float> x(200);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(start + step * static_cast<double>(i));
    const std::vector<float> q{x[3]};
    const std::vector<float> values(200, 2);
    std::vector<float> out(1);
    resample(view(values.data(), {1, 200, 1}), view(std::as_const(x).data(), {200}), view(q.data(), {1}),
             view(out.data(), {1, 1, 1}), {.duplicates = duplicates, .variant = GetParam()});
    return out[0];
  };
  for (const Duplicates duplicates : {Duplicates::error, Duplicates::last}) {
    expect_error(time_precision, [&] { run(1.7e9, 0.01, duplicates); }, "f32", "1700000");  // all timestamps equal
    expect_error(time_precision, [&] { run(1.7e9, 2.0, duplicates); }, "trajectory 0");     // a few steps of 128 s
    expect_error(time_precision, [&] { run(86400, 0.001, duplicates); }, "trajectory 0");   // 7.8 ms after a day
    EXPECT_EQ(run(86400, 0.1, duplicates), 2);
    EXPECT_EQ(run(0, 1e-6, duplicates), 2);
  }
  // Timestamps that coincide now and then, because f32 resolves hardly less than a step: said for what it is.
  expect_error(
      time_precision,
      [&] {
        const std::vector<float> x{86400, 86400, 86400.0234375F, 86400.03125F};
        const std::vector<float> values(4);
        std::vector<float> out(1);
        resample(view(values.data(), {1, 4, 1}), view(x.data(), {4}), view(x.data(), {1}), view(out.data(), {1, 1, 1}),
                 {.variant = GetParam()});
      },
      "source_times[0, 1]");
  // A grid finer than f32 can tell its points apart.
  const std::vector<float> x{1e6F, 1e6F + 100};
  const std::vector<float> values(2);
  std::vector<float> out(3);
  expect_error(
      time_precision,
      [&] {
        resample(view(values.data(), {1, 2, 1}), view(x.data(), {2}), UniformGrid{1e6, 0.01, 3},
                 view(out.data(), {1, 3, 1}), {.variant = GetParam()});
      },
      "grid", "f64 or i64");
}

TEST_P(ResampleData, quaternions_must_have_a_norm) {
  using enum ErrorCode;
  for (const double bad : {0.0, std::nan(""), kInfinity}) {
    std::vector<float> values{0, 0, 0, 1, 0, 0, 0, static_cast<float>(bad), 0, 0, 1, 1};
    const std::vector<double> x{0, 1, 2};
    std::vector<float> out(4, -1);
    const auto at = [&](double q, double gap) {
      resample(view(values.data(), {1, 3, 4}), view(x.data(), {3}), view(&q, {1}), view(out.data(), {1, 1, 4}),
               {.interpolation = Interpolation::slerp, .max_gap = gap, .variant = GetParam()});
      return out;
    };
    expect_error(bad_quaternion, [&] { at(0.5, 0); }, "values[0, 1, 0:4]");
    expect_error(bad_quaternion, [&] { at(1, 0); }, "values[0, 1, 0:4]");
    expect_error(bad_quaternion, [&] { at(1.5, 0); }, "values[0, 1, 0:4]");
    // Only quaternions that a target uses count.
    EXPECT_EQ(at(0, 0), (std::vector<float>{0, 0, 0, 1}));
    EXPECT_TRUE(std::isnan(at(0.5, 0.5)[0]));
  }
}

TEST_P(ResampleData, the_first_error_is_reported_whatever_the_threads) {
  // Trajectories 3 and 7 of 16 are bad in different ways, in chunks of different threads.
  std::vector<double> x;
  for (int b = 0; b < 16; ++b)
    for (int i = 0; i < 500; ++i) x.push_back(i);
  x[3 * 500 + 250] = std::nan("");
  std::swap(x[7 * 500], x[7 * 500 + 1]);
  const std::vector<float> values(16 * 500 * 8);
  std::vector<float> out(values.size());
  expect_error(
      ErrorCode::times_not_finite,
      [&] {
        resample(view(values.data(), {16, 500, 8}), view(x.data(), {16, 500}), view(x.data(), {500}),
                 view(out.data(), {16, 500, 8}), {.variant = GetParam()});
      },
      "source_times[3, 250]");
}

TEST_P(ResampleData, trajectories_without_targets_are_not_looked_at) {
  const std::vector<float> values{1, 2, 5, 6};
  const std::vector<double> x{1, 0, 0, 1};
  const std::vector<double> q{0.5};
  const std::vector<std::int64_t> source{0, 2, 2, 4};
  const std::vector<std::int64_t> target{0, 0, 0, 1};
  std::vector<float> out(1);
  resample(view(values.data(), {4, 1}), view(x.data(), {4}), view(q.data(), {1}), view(out.data(), {1, 1}),
           {.source_offsets = source, .target_offsets = target, .variant = GetParam()});
  EXPECT_EQ(out[0], 5.5F);
}

TEST_P(ResampleData, offsets_beyond_four_gigabytes_work) {
  // Three rows 2^31 + 3 elements apart: 16 GB of addresses of which a few pages are ever touched.
  const std::int64_t apart = (std::int64_t{1} << 31) + 3;
  const std::size_t bytes = static_cast<std::size_t>(2 * apart + 16) * sizeof(float);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 16 GB of address space";
  auto* data = static_cast<float*>(memory);
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t d = 0; d < 8; ++d) data[row * apart + d] = static_cast<float>(10 * row + d);
  const std::vector<double> x{0, 1, 2};
  const std::vector<double> q{0.5, 1.5};
  std::vector<float> out(16);
  resample({data, Layout::strided({1, 3, 8}, {0, apart, 1})}, view(x.data(), {3}), view(q.data(), {2}),
           view(out.data(), {1, 2, 8}), {.variant = GetParam()});
  for (std::int64_t d = 0; d < 8; ++d) {
    EXPECT_EQ(out[static_cast<std::size_t>(d)], static_cast<float>(5 + d));
    EXPECT_EQ(out[static_cast<std::size_t>(8 + d)], static_cast<float>(15 + d));
  }
  munmap(memory, bytes);
}

TEST_P(ResampleData, any_number_of_channels_gives_the_same) {
  for (const std::int64_t channels : {1, 3, 30, 71, 1025}) {
    CaseShape shape;
    shape.channels = channels;
    shape.values = channels % 2 ? DType::bf16 : DType::f32;
    const ResampleCase c(shape);
    Buffer got = c.output();
    Buffer want = c.output();
    c.run(GetParam(), got, nullptr);
    c.run("reference", want, nullptr);
    EXPECT_EQ(difference_of(got, want, tolerance_of(shape)), "") << channels;
  }
}

TEST_P(ResampleData, rows_written_past_the_caches_are_the_same) {
  constexpr std::size_t kLine = 64;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    CaseShape shape;
    shape.values = dtype;
    shape.target = 700;
    shape.channels = 96;
    const ResampleCase c(shape);
    ResampleOptions options = c.options();
    options.variant = GetParam();
    const std::size_t bytes = static_cast<std::size_t>(c.output().layout().size()) * size_of(dtype);
    const auto run = [&](std::int64_t cache, std::size_t shift) {  // the output `shift` bytes behind a cache line
      const detail::PretendedCache pretended(cache);
      std::vector<unsigned char> memory(bytes + 2 * kLine, 0xA5);
      void* start = memory.data();
      std::size_t room = memory.size();
      std::align(kLine, bytes + shift, start, room);
      unsigned char* output = static_cast<unsigned char*>(start) + shift;
      resample(c.values(), c.source_times(), c.target_times(), {output, dtype, c.output().layout()}, options);
      EXPECT_TRUE(std::all_of(memory.data(), output, [](unsigned char byte) { return byte == 0xA5; }));
      EXPECT_TRUE(
          std::all_of(output + bytes, memory.data() + memory.size(), [](unsigned char b) { return b == 0xA5; }));
      return std::vector<unsigned char>(output, output + bytes);
    };
    const std::vector<unsigned char> want = run(std::int64_t{1} << 40, 0);
    EXPECT_EQ(run(1, 0), want) << to_string(dtype);
    EXPECT_EQ(run(1, 16), want) << to_string(dtype);
  }
}

TEST_P(ResampleData, extreme_values_go_through) {
  const std::vector<float> values{1e30F, -1e30F, -0.0F, 1e-40F, 1e30F};
  const std::vector<double> x{0, 1, 2, 3, 4};
  const std::vector<double> q{0.25, 0.5, 2, 3, 3.5};
  std::vector<float> out(5);
  resample(view(values.data(), {1, 5, 1}), view(x.data(), {5}), view(q.data(), {5}), view(out.data(), {1, 5, 1}),
           {.variant = GetParam()});
  // w b + (a - w a) may round twice: one step of f32.
  const float step = std::nextafter(0.5e30F, INFINITY) - 0.5e30F;
  EXPECT_NEAR(out[0], 0.5e30F, step);
  EXPECT_EQ(out[1], 0);
  EXPECT_TRUE(out[2] == 0 && std::signbit(out[2]));
  EXPECT_EQ(out[3], 1e-40F);
  EXPECT_NEAR(out[4], 0.5e30F, step);
}

INSTANTIATE_TEST_SUITE_P(Variants, ResampleData, ::testing::ValuesIn(cpu_variants("resample")),
                         [](const auto& variant) { return variant.param; });

}  // namespace
}  // namespace tmaops::test
