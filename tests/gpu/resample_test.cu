// Every GPU variant of resampling against the reference on the CPU: random problems over all that the definition
// allows, outputs poisoned and between canaries, with and without dependent launch.
#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "gpu/mirror.cuh"
#include "gpu/support.cuh"
#include "ops/resample/problem.hpp"
#include "support/buffers.hpp"
#include "tmaops/resample.hpp"

namespace tmaops {
namespace {

using test::Buffer;
using test::Mirror;

/// What makes a problem; everything else is drawn from the seed.
struct Case {
  std::int64_t batch = 2, samples = 50, targets = 60, channels = 8;
  DType dtype = DType::f32;
  DType times = DType::f32;
  std::vector<ChannelGroup> groups{};
  Outside outside = Outside::hold;
  bool duplicates = false;
  bool gap = false;
  bool valid = false;
  bool shared_source = false, shared_target = false, grid = false;
  bool packed_source = false, packed_target = false;
  bool unsorted = false;
  bool clustered = false;  // all targets in a small part of the time
  std::int64_t pitch = 0;  // elements between rows beyond the channels
  std::int64_t apart = 0;  // rows between trajectories
  std::int64_t channel_step = 1;
  std::int64_t time_step = 1;
  int shift = 0;        // elements by which all tensors are off their alignment
  double reach = 0.02;  // how far targets leave the recorded time, as a part of it
};

std::string text(const Case& c) {
  std::string line = "B,S->T,D " + std::to_string(c.batch) + "," + std::to_string(c.samples) + "->" +
                     std::to_string(c.targets) + "," + std::to_string(c.channels) + " " +
                     std::string(to_string(c.dtype)) + " times " + std::string(to_string(c.times)) + " outside " +
                     std::to_string(static_cast<int>(c.outside)) + " shift " + std::to_string(c.shift) + " pitch " +
                     std::to_string(c.pitch) + " apart " + std::to_string(c.apart) + " steps " +
                     std::to_string(c.channel_step) + "," + std::to_string(c.time_step) + " groups";
  for (const ChannelGroup& group : c.groups)
    line += " " + std::to_string(static_cast<int>(group.interpolation)) + "x" + std::to_string(group.count);
  for (const auto& [name, set] : {std::pair{" duplicates", c.duplicates},
                                  {" gap", c.gap},
                                  {" valid", c.valid},
                                  {" shared_source", c.shared_source},
                                  {" shared_target", c.shared_target},
                                  {" grid", c.grid},
                                  {" packed_source", c.packed_source},
                                  {" packed_target", c.packed_target},
                                  {" unsorted", c.unsorted},
                                  {" clustered", c.clustered}})
    if (set) line += name;
  return line;
}

/// B + 1 offsets of trajectories with 0 to 2 * mean rows; at least `least`.
std::vector<std::int64_t> offsets(std::mt19937_64& random, std::int64_t batch, std::int64_t mean, std::int64_t least) {
  std::vector<std::int64_t> all{0};
  for (std::int64_t b = 0; b < batch; ++b)
    all.push_back(all.back() +
                  std::max(least, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * mean + 1))));
  return all;
}

Layout rows_layout(bool packed, std::int64_t batch, std::int64_t rows, std::int64_t channels, const Case& c) {
  const std::int64_t row = channels * c.channel_step + c.pitch;
  if (packed) return Layout::strided({rows, channels}, {row, c.channel_step});
  return Layout::strided({batch, rows, channels}, {(rows + c.apart) * row, row, c.channel_step});
}

/// The host side of a problem, and how it is called.
struct Made {
  std::vector<std::int64_t> source_offsets, target_offsets;
  std::unique_ptr<Buffer> values, source, target, output, valid;
  UniformGrid grid;
  ResampleOptions options;
};

Made make(const Case& c, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  Made made;
  if (c.packed_source) made.source_offsets = offsets(random, c.batch, c.samples, c.outside == Outside::nan ? 0 : 1);
  if (c.packed_target) made.target_offsets = offsets(random, c.batch, c.targets, 0);
  const std::int64_t source_rows = c.packed_source ? made.source_offsets.back() : c.samples;
  const std::int64_t target_rows = c.packed_target ? made.target_offsets.back() : c.targets;
  made.values = std::make_unique<Buffer>(c.dtype, rows_layout(c.packed_source, c.batch, source_rows, c.channels, c));
  made.output = std::make_unique<Buffer>(c.dtype, rows_layout(c.packed_target, c.batch, target_rows, c.channels, c));
  made.values->fill_normal(random);

  // Stamps in units of a mean step of 1 (f64: at 1.7e9 s; i64: 1 ms at that epoch, in ns).
  const double unit = c.times == DType::i64 ? 1e6 : 1.0;
  const double origin = c.times == DType::f64 ? 1.7e9 : 0.0;
  const std::int64_t epoch = c.times == DType::i64 ? 1'700'000'000'000'000'000 : 0;
  const auto set_time = [&](Buffer& buffer, std::int64_t index, double time) {
    if (c.times == DType::i64)
      static_cast<std::int64_t*>(buffer.data())[buffer.offset(index)] = epoch + static_cast<std::int64_t>(time * unit);
    else
      buffer.set(index, origin + time);
  };
  const auto times_layout = [&](bool flat, std::int64_t rows) {
    return flat ? Layout::strided({rows}, {c.time_step})
                : Layout::strided({c.batch, rows}, {(rows + c.apart) * c.time_step, c.time_step});
  };
  const bool flat_source = c.shared_source || c.packed_source;
  made.source = std::make_unique<Buffer>(c.times, times_layout(flat_source, source_rows));
  std::vector<double> stamps;
  for (std::int64_t b = 0; b < (c.shared_source ? 1 : c.batch); ++b) {
    const std::int64_t first = c.packed_source ? made.source_offsets[static_cast<std::size_t>(b)] : b * c.samples;
    const std::int64_t count =
        c.packed_source ? made.source_offsets[static_cast<std::size_t>(b) + 1] - first : c.samples;
    double time = uniform(0, 1);
    for (std::int64_t i = 0; i < count; ++i) {
      set_time(*made.source, first + i, time);
      stamps.push_back(time);
      const bool twice = c.duplicates && random() % 7 == 0;
      if (!twice) time += c.gap && random() % 9 == 0 ? 4.5 : uniform(0.5, 1.5);
    }
  }

  const double span = static_cast<double>(c.samples);
  const double low = c.clustered ? 0.7 * span : -c.reach * span;
  const double high = c.clustered ? 0.75 * span : (1 + c.reach) * span;
  if (c.grid) {
    made.grid.count = c.targets;
    const double period = (high - low) / static_cast<double>(std::max<std::int64_t>(c.targets, 1));
    if (c.times == DType::i64) {
      made.grid.start = epoch + static_cast<std::int64_t>(low * unit);
      made.grid.period = static_cast<std::int64_t>(period * unit) + 1;
    } else {
      made.grid.start = origin + low;
      made.grid.period = period;
    }
  } else {
    const bool flat_target = c.shared_target || c.packed_target;
    made.target = std::make_unique<Buffer>(c.times, times_layout(flat_target, target_rows));
    for (std::int64_t b = 0; b < (c.shared_target || c.packed_target ? 1 : c.batch); ++b) {
      std::vector<double> times(static_cast<std::size_t>(target_rows));
      for (double& time : times) time = uniform(low, high);
      for (std::size_t i = 0; i < times.size(); i += 5)  // some at the very time of a sample
        if (!stamps.empty()) times[i] = stamps[random() % stamps.size()];
      if (!c.unsorted) std::sort(times.begin(), times.end());
      for (std::int64_t t = 0; t < target_rows; ++t)
        set_time(*made.target, b * target_rows + t, times[static_cast<std::size_t>(t)]);
    }
  }

  made.options.channel_groups = c.groups;
  made.options.outside = c.outside;
  made.options.duplicates = c.duplicates ? Duplicates::last : Duplicates::error;
  if (c.gap) {
    if (c.times == DType::i64)
      made.options.max_gap = static_cast<std::int64_t>(3 * unit);
    else
      made.options.max_gap = 3.0;
  }
  made.options.source_offsets = made.source_offsets;
  made.options.target_offsets = made.target_offsets;
  if (c.valid)
    made.valid = std::make_unique<Buffer>(
        DType::u8, c.packed_target ? Layout::contiguous({target_rows})
                                   : Layout::strided({c.batch, target_rows}, {target_rows + c.apart, 1}));
  return made;
}

/// How often each variant ran.
std::map<std::string, int>& runs() {
  static std::map<std::string, int> counts;
  return counts;
}

/// `device_outside`: the policy on the GPU, where it is not the reference's.
void check(const Case& c, std::uint64_t seed, std::optional<Outside> device_outside = {}) {
  SCOPED_TRACE(text(c) + ", seed " + std::to_string(seed));
  Made made = make(c, seed);
  const Buffer poisoned = *made.output;
  const Buffer poisoned_valid = c.valid ? *made.valid : Buffer(DType::u8, {0});

  ResampleOptions options = made.options;
  options.variant = "reference";
  if (c.valid) options.valid = made.valid->view();
  if (c.grid)
    resample(*made.values, *made.source, made.grid, *made.output, options);
  else
    resample(*made.values, *made.source, *made.target, *made.output, options);

  const Mirror values(*made.values, c.shift);
  const Mirror source(*made.source, c.shift);
  const Mirror target(c.grid ? Buffer(c.times, {0}) : *made.target, c.shift);
  bool curved = false;
  for (const ChannelGroup& group : c.groups)
    curved |= group.interpolation == Interpolation::cubic || group.interpolation == Interpolation::slerp;
  const double f32_error = (curved ? 4e-6 : 2e-6) * (c.outside == Outside::extrapolate ? (curved ? 200 : 20) : 1);
  const double relative = c.dtype == DType::f32 ? 2e-6 : c.dtype == DType::f16 ? 0x1p-10 : 0x1p-7;

  for (const auto& variant : ops::resample::variants()) {
    if (variant.device != DeviceType::cuda) continue;
    for (const bool dependent : {false, true}) {
      const Mirror output(poisoned, c.shift);
      const Mirror valid(poisoned_valid, 0);
      options.variant = std::string(variant.name);
      options.dependent_launch = dependent;
      if (device_outside) options.outside = *device_outside;
      if (c.valid) options.valid = valid.view();
      try {
        if (c.grid)
          resample(values.view(), source.view(), made.grid, output.view(), options);
        else
          resample(values.view(), source.view(), target.view(), output.view(), options);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
        ASSERT_NE(variant.name, "element_search") << error.what();
        break;
      }
      check_cuda(cudaDeviceSynchronize(), variant.name);
      ++runs()[options.variant];
      const std::string what = options.variant + (dependent ? ", dependent launch" : "");
      test::expect_close(output.download(), *made.output, relative, f32_error, what.c_str());
      if (c.valid) test::expect_close(valid.download(), *made.valid, 0, 0, (what + ", valid").c_str());
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

std::vector<ChannelGroup> one_group(std::int64_t channels, Interpolation interpolation) {
  return {{0, channels, interpolation}};
}

Case random_case(std::mt19937_64& random) {
  const auto pick = [&](auto... choices) {
    const std::common_type_t<decltype(choices)...> all[] = {choices...};
    return all[random() % sizeof...(choices)];
  };
  const auto chance = [&](int one_in) { return random() % static_cast<unsigned>(one_in) == 0; };
  Case c;
  c.batch = pick(1, 2, 3, 7);
  c.samples = pick(1, 2, 3, 5, 30, 61, 100, 257, 1000);
  c.targets = pick(1, 2, 7, 50, 64, 129, 300, 1000);
  c.channels = pick(1, 2, 3, 4, 7, 8, 14, 16, 32, 64, 72, 256);
  c.dtype = pick(DType::f32, DType::f16, DType::bf16);
  c.times = pick(DType::f32, DType::f64, DType::i64);
  c.outside = pick(Outside::hold, Outside::nan, Outside::extrapolate);
  c.duplicates = chance(4);
  c.gap = chance(3);
  c.valid = chance(2);
  c.grid = chance(4);
  c.packed_source = chance(4);
  c.packed_target = !c.grid && chance(4);
  c.shared_source = !c.packed_source && chance(5);
  c.shared_target = !c.packed_target && chance(5);
  c.unsorted = chance(4);
  c.clustered = chance(5);
  if (chance(3)) c.pitch = pick(1, 2, 8, 16);
  if (chance(3)) c.apart = pick(1, 2, 3);
  if (chance(8)) c.channel_step = 2;
  if (chance(8)) c.time_step = 3;
  if (chance(3)) c.shift = pick(1, 2, 3, 4);
  if (chance(3)) {  // several groups
    std::int64_t first = 0;
    while (first < c.channels) {
      const bool quaternion = c.channels - first >= 4 && chance(3);
      const std::int64_t count =
          quaternion ? 4 : 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(c.channels - first));
      c.groups.push_back({first, count,
                          quaternion ? Interpolation::slerp
                                     : pick(Interpolation::linear, Interpolation::previous, Interpolation::next,
                                            Interpolation::nearest, Interpolation::cubic)});
      first += count;
    }
  } else {
    c.groups = one_group(c.channels, pick(Interpolation::linear, Interpolation::linear, Interpolation::previous,
                                          Interpolation::next, Interpolation::nearest, Interpolation::cubic));
  }
  return c;
}

class GpuResample : public ::testing::TestWithParam<int> {};

TEST_P(GpuResample, VariantsAgreeWithTheReferenceOnRandomProblems) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(static_cast<std::uint64_t>(1000 + GetParam()));
  for (int i = 0; i < 25; ++i) {
    const Case c = random_case(random);
    check(c, random());
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuResample, ::testing::Range(0, 8));

TEST(GpuResampleShapes, MeasuredShapesOfEachVariant) {
  TMAOPS_NEEDS_GPU();
  std::vector<Case> cases;
  for (const auto& [batch, samples, targets, channels] : std::vector<std::array<std::int64_t, 4>>{{3, 512, 512, 128},
                                                                                                  {2, 100, 2048, 256},
                                                                                                  {2, 1000, 500, 512},
                                                                                                  {3, 500, 250, 128},
                                                                                                  {2, 1024, 4096, 64},
                                                                                                  {2, 10000, 5000, 14},
                                                                                                  {2, 500, 256, 256},
                                                                                                  {5, 500, 250, 32},
                                                                                                  {3, 4096, 1024, 32},
                                                                                                  {300, 100, 50, 7},
                                                                                                  {4, 100, 256, 32}})
    for (const DType dtype : {DType::bf16, DType::f32})
      for (const DType times : {DType::f32, DType::i64})
        cases.push_back({.batch = batch,
                         .samples = samples,
                         .targets = targets,
                         .channels = channels,
                         .dtype = dtype,
                         .times = times,
                         .groups = one_group(channels, Interpolation::linear),
                         .valid = true});
  std::uint64_t seed = 7;
  for (const Case& c : cases) {
    check(c, ++seed);
    if (HasFailure()) return;
  }
  for (const auto& variant : ops::resample::variants())
    if (variant.device == DeviceType::cuda) EXPECT_GE(runs()[std::string(variant.name)], 4) << variant.name;
}

TEST(GpuResampleShapes, MoreTrajectoriesThanOneGridDimensionHolds) {
  TMAOPS_NEEDS_GPU();
  for (const std::int64_t channels : {8, 3})
    check({.batch = 70001,
           .samples = 3,
           .targets = 2,
           .channels = channels,
           .dtype = DType::bf16,
           .groups = one_group(channels, Interpolation::linear),
           .apart = 1},
          5);
}

TEST(GpuResampleShapes, RowsOfEveryWidthAndAlignment) {
  TMAOPS_NEEDS_GPU();
  std::uint64_t seed = 100;
  for (std::int64_t channels = 1; channels <= 33; ++channels)
    for (const int shift : {0, 1, 5}) {
      check({.batch = 3,
             .samples = 77,
             .targets = 61,
             .channels = channels,
             .dtype = DType::bf16,
             .groups = one_group(channels, Interpolation::linear),
             .shift = shift},
            ++seed);
      if (HasFailure()) return;
    }
}

TEST(GpuResampleShapes, NotANumberReachesOnlyTheTargetsBetweenItsNeighbours) {
  TMAOPS_NEEDS_GPU();
  for (const std::int64_t channels : {8, 7}) {
    Buffer values(DType::f32, {1, 4, channels});
    Buffer source(DType::f32, {1, 4});
    Buffer target(DType::f32, {1, 5});
    for (std::int64_t i = 0; i < values.layout().size(); ++i) values.set(i, i / channels == 1 ? NAN : 1.0);
    for (std::int64_t i = 0; i < 4; ++i) source.set(i, static_cast<double>(i));
    const double times[] = {0.0, 0.5, 1.5, 2.0, 3.0};
    for (std::int64_t i = 0; i < 5; ++i) target.set(i, times[i]);
    const Mirror device_values(values, 0), device_source(source, 0), device_target(target, 0);
    for (const auto& variant : ops::resample::variants()) {
      if (variant.device != DeviceType::cuda) continue;
      const Mirror output(Buffer(DType::f32, {1, 5, channels}), 0);
      ResampleOptions options;
      options.variant = std::string(variant.name);
      try {
        resample(device_values.view(), device_source.view(), device_target.view(), output.view(), options);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::variant_refuses);
        continue;
      }
      const Buffer got = output.download();
      for (std::int64_t t = 0; t < 5; ++t)
        EXPECT_EQ(std::isnan(got.get(t * channels)), t == 1 || t == 2) << variant.name << ", target " << t;
    }
  }
}

TEST(GpuResampleShapes, TargetsOutsideAreNotANumberWhereTheCpuReportsAnError) {
  TMAOPS_NEEDS_GPU();
  for (const std::int64_t channels : {8, 7}) {
    Case c{.batch = 3, .samples = 40, .targets = 90, .channels = channels, .valid = true, .reach = 0.3};
    c.outside = Outside::nan;
    c.groups = one_group(channels, Interpolation::linear);
    check(c, 11, Outside::error);
  }
}

TEST(GpuResampleShapes, PlanRunsInsideACapturedGraph) {
  TMAOPS_NEEDS_GPU();
  const Case c{.batch = 2,
               .samples = 200,
               .targets = 100,
               .channels = 16,
               .dtype = DType::bf16,
               .groups = one_group(16, Interpolation::linear),
               .packed_source = true};
  Made made = make(c, 3);
  const Buffer poisoned = *made.output;
  ResampleOptions options = made.options;
  options.variant = "reference";
  resample(*made.values, *made.source, *made.target, *made.output, options);
  const Mirror values(*made.values, 0), source(*made.source, 0), target(*made.target, 0);
  for (const auto& variant : ops::resample::variants()) {
    if (variant.device != DeviceType::cuda) continue;
    const Mirror output(poisoned, 0);
    options.variant = std::string(variant.name);
    const ResamplePlan plan(values.view(), source.view(), target.view(), output.view(), options);
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    check_cuda(cudaStreamCreate(&stream), "stream");
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    plan.run(stream);
    check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
    check_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
    check_cuda(cudaGraphLaunch(replay, stream), "replay");
    check_cuda(cudaStreamSynchronize(stream), "replay");
    test::expect_close(output.download(), *made.output, 0x1p-7, 2e-6, plan.variant().data());
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
}

}  // namespace
}  // namespace tmaops
