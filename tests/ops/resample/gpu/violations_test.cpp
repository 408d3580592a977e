// Violations in times on the device are counted there, and the counts arrive in stream order.
#include <limits>

#include "gpu/support.hpp"
#include "support/buffers.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::test {
namespace {

/// Two trajectories of 600 timestamps and 700 targets with known violations.
struct Times {
  std::vector<float> source = std::vector<float>(2 * 600);
  std::vector<float> target = std::vector<float>(2 * 700);

  Times() {
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i % 600);
    for (std::size_t i = 0; i < target.size(); ++i) target[i] = 0.5f * static_cast<float>(i % 700);
  }
};

std::vector<std::int64_t> counted(const Times& times, const ResampleOptions& options) {
  const DeviceArray<float> source(times.source);
  const DeviceArray<float> target(times.target);
  const DeviceArray<std::int64_t> counts(static_cast<std::size_t>(kResampleViolations));
  const Device gpu{DeviceType::cuda, 0};
  resample_violations({source.get(), DType::f32, Layout::contiguous({2, 600}), gpu},
                      {target.get(), DType::f32, Layout::contiguous({2, 700}), gpu},
                      {counts.get(), DType::i64, Layout::contiguous({kResampleViolations}), gpu}, options);
  const std::vector<std::int64_t> on_gpu = counts.values();
  std::vector<std::int64_t> on_cpu(static_cast<std::size_t>(kResampleViolations), -1);
  resample_violations({times.source.data(), DType::f32, Layout::contiguous({2, 600}), {}},
                      {times.target.data(), DType::f32, Layout::contiguous({2, 700}), {}},
                      {on_cpu.data(), DType::i64, Layout::contiguous({kResampleViolations}), {}}, options);
  EXPECT_EQ(on_gpu, on_cpu);
  return on_gpu;
}

TEST(GpuResampleViolations, none_in_good_times) {
  TMAOPS_NEEDS_GPU();
  EXPECT_EQ(counted({}, {}), std::vector<std::int64_t>(7, 0));
}

TEST(GpuResampleViolations, every_kind_is_counted) {
  TMAOPS_NEEDS_GPU();
  Times times;
  times.source[5] = NAN;
  times.source[600 + 7] = INFINITY;  // not finite, and the next one is before it
  times.source[300] = times.source[299];
  times.source[400] = 1;
  times.source[599] = 1;
  times.target[3] = NAN;
  times.target[700 + 699] = 1e6f;
  times.target[700] = -1;
  ResampleOptions options;
  options.outside = Outside::error;
  // [0, 400] is before [0, 399], and so is [0, 599]; the last timestamp of trajectory 0 is 1, so targets after 1 are
  // outside.
  const std::vector<std::int64_t> counts = counted(times, options);
  EXPECT_EQ(counts[0], 2);
  EXPECT_EQ(counts[1], 3);
  EXPECT_EQ(counts[2], 1);
  EXPECT_EQ(counts[3], 1);
  EXPECT_EQ(counts[4], 696 + 2);
  EXPECT_EQ(counts[5], 0);
  EXPECT_EQ(counts[6], 0);
  options.outside = Outside::hold;
  options.duplicates = Duplicates::last;
  const std::vector<std::int64_t> lenient = counted(times, options);
  EXPECT_EQ(lenient[2], 0);
  EXPECT_EQ(lenient[4], 0);
}

}  // namespace
}  // namespace tmaops::test
