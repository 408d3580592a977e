// Every GPU variant of multi-scale deformable attention against the reference on the CPU: random problems over all that
// the definition allows, outputs poisoned and between canaries, with and without dependent launch.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "gpu/mirror.hpp"
#include "gpu/support.hpp"
#include "ops/ms_deform_attn/gpu/shapes.hpp"

namespace tmaops::test {
namespace {

namespace forward = ops::ms_deform_attn;

/// How often each variant ran.
std::map<std::string, int>& runs() {
  static std::map<std::string, int> counts;
  return counts;
}

/// Runs every GPU variant that takes the case, as a single call and as a plan, which may keep memory and launch other
/// kernels for it. `want` is the reference's output; `shift` as in Mirror.
void check(const Case& made, int shift = 0) {
  Case c = made;
  SCOPED_TRACE(c.text() + ", shift " + std::to_string(shift));
  const Buffer want = c.reference();
  const Mirror value(c.value(), shift);
  const Mirror locations(c.locations(), shift);
  const Mirror weights(c.weights(), shift);
  for (const auto& variant : forward::variants()) {
    if (!test::runs_here(variant)) continue;
    for (const auto& [dependent, planned] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
      MsDeformAttnOptions options = c.options(variant.name);
      options.dependent_launch = dependent;
      const Mirror shape(c.output(), shift);
      const forward::Problem problem = forward::make_problem(value.view(), c.shape().levels, locations.view(),
                                                             weights.view(), shape.view(), options);
      for (const std::string& name : names_of(variant, problem)) {
        options.variant = name;
        const Mirror output(c.output(), shift);
        try {
          if (planned) {
            const Plan plan = plan_ms_deform_attn(value.view(), c.shape().levels, locations.view(), weights.view(),
                                                  output.view(), options);
            plan.run();
            check_cuda(cudaDeviceSynchronize(), variant.name);
          } else {
            ms_deform_attn(value.view(), c.shape().levels, locations.view(), weights.view(), output.view(), options);
          }
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
          ASSERT_NE(variant.name, "channel_per_thread") << error.what();
          continue;
        }
        check_cuda(cudaDeviceSynchronize(), variant.name);
        ++runs()[std::string(variant.name)];
        expect_forward_of(variant.name, problem, output.download(), want,
                          name + (dependent ? ", dependent launch" : "") + (planned ? ", plan" : ""));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

class GpuMsDeformAttn : public testing::TestWithParam<int> {};

TEST_P(GpuMsDeformAttn, variants_agree_with_the_reference_on_random_problems) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(static_cast<std::uint64_t>(500 + GetParam()));
  for (int i = 0; i < problems(40); ++i) {
    const Shape shape = random_gpu_shape(random);
    const int shift = random() % 4 == 0 ? 1 + static_cast<int>(random() % 5) : 0;
    check(Case(shape, random()), shift);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuMsDeformAttn, testing::Range(0, 6));

TEST(GpuMsDeformAttnShapes, measured_shapes_in_small) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 1;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const DType points : {dtype, DType::f32})
      for (const std::int64_t heads : {1, 8}) {
        check(Case({.batch = 3,
                    .heads = heads,
                    .channels = 32,
                    .queries = 1021,
                    .levels = {{46, 80}, {23, 40}, {12, 20}, {6, 10}},
                    .points = heads == 1 ? 8 : 4,
                    .value_dtype = dtype,
                    .location_dtype = points,
                    .weight_dtype = points},
                   ++seed));
        if (testing::Test::HasFailure()) return;
      }
  for (const auto& variant : forward::variants())
    if (test::runs_here(variant)) {
      EXPECT_GE(runs()[std::string(variant.name)], 2) << variant.name;
    }
}

/// Items with one, two and four groups of threads, in blocks that do not divide the queries.
TEST(GpuMsDeformAttnShapes, decoders_of_three_and_four_levels) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 70;
  for (const DType dtype : {DType::f16, DType::f32})
    for (const std::int64_t levels : {3, 4})
      for (const std::int64_t batch : {1, 4, 11}) {
        std::vector<LevelShape> shapes = {{20, 24}, {10, 12}, {5, 6}, {3, 3}};
        shapes.resize(static_cast<std::size_t>(levels));
        check(Case({.batch = batch,
                    .heads = 8,
                    .channels = 32,
                    .queries = 301,
                    .levels = shapes,
                    .points = 4,
                    .value_dtype = dtype,
                    .location_dtype = dtype,
                    .weight_dtype = dtype},
                   ++seed));
        if (testing::Test::HasFailure()) return;
      }
}

TEST(GpuMsDeformAttnShapes, every_width_of_a_level) {
  TMAOPS_NEEDS_CHIP();
  for (std::int64_t side = 1; side <= 12; ++side)
    for (const std::int64_t heads : {1, 2}) {
      check(Case({.heads = heads,
                  .channels = 32,
                  .queries = 70,
                  .levels = {{side, 1}, {1, side}, {side, side}, {2, side}},
                  .points = 8,
                  .value_dtype = DType::f16,
                  .location_dtype = DType::f32},
                 static_cast<std::uint64_t>(side)));
      if (testing::Test::HasFailure()) return;
    }
}

/// 132 KiB in shared memory: 40 rows of 50 pixels and 8 of 14 in two planes of 32 bytes a pixel.
TEST(GpuMsDeformAttnShapes, the_largest_third_and_fourth_level_that_stay_in_shared_memory) {
  TMAOPS_NEEDS("sm90");
  const int before = runs()["tma_resident"];
  check(Case({.batch = 1,
              .channels = 32,
              .queries = 70,
              .levels = {{16, 16}, {8, 8}, {40, 50}, {8, 14}},
              .points = 4,
              .value_dtype = DType::f16,
              .location_dtype = DType::f16,
              .weight_dtype = DType::f16},
             90));
  EXPECT_GT(runs()["tma_resident"], before);
}

/// Images and heads of a few queries, so that blocks go through several.
TEST(GpuMsDeformAttnShapes, every_width_from_two_pixels_on_and_many_images) {
  TMAOPS_NEEDS_CHIP();
  for (std::int64_t side = 2; side <= 9; ++side)
    for (const std::int64_t points : {4, 8}) {
      check(Case({.batch = 40,
                  .heads = 7,
                  .channels = 32,
                  .queries = 2 * side + 1,
                  .levels = {{side, 2}, {2, side}, {side, side}, {2, side}},
                  .points = points,
                  .value_dtype = side % 2 == 0 ? DType::f16 : DType::bf16,
                  .location_dtype = DType::f32,
                  .weight_dtype = DType::f32},
                 static_cast<std::uint64_t>(side)));
      if (testing::Test::HasFailure()) return;
    }
}

/// As many queries as the first level has pixels, or more: whole strips of 16 columns, narrower ones, and queries
/// behind them; the last width has none.
TEST(GpuMsDeformAttnShapes, queries_that_are_pixels) {
  TMAOPS_NEEDS_CHIP();
  for (const std::int64_t width : {4, 12, 16, 20, 28, 32, 44, 18})
    for (const std::int64_t more : {0, 3, 40}) {
      const std::int64_t height = width % 3 + 5;
      check(Case({.batch = 3,
                  .heads = 2,
                  .channels = 32,
                  .queries = height * width + more,
                  .levels = {{height, width}, {5, 8}, {3, 4}, {2, 2}},
                  .points = 8,
                  .value_dtype = width % 8 == 0 ? DType::f16 : DType::bf16,
                  .location_dtype = width % 8 == 0 ? DType::f16 : DType::f32,
                  .weight_dtype = width % 8 == 0 ? DType::f16 : DType::f32},
                 static_cast<std::uint64_t>(width + more)));
      if (testing::Test::HasFailure()) return;
    }
}

TEST(GpuMsDeformAttnShapes, non_finite_values_go_only_to_outputs_that_sample_them) {
  TMAOPS_NEEDS_CHIP();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const std::int64_t heads : {1, 8})
      for (const int every : {97, 1009}) {
        Case c({.heads = heads,
                .channels = 32,
                .queries = 500,
                .levels = {{16, 16}, {8, 8}, {16, 8}, {4, 4}},
                .points = 8,
                .value_dtype = dtype},
               5);
        for (std::int64_t at = 3; at < c.value().layout().size(); at += every)
          c.value().set(at, at % 3 == 0   ? std::numeric_limits<double>::quiet_NaN()
                            : at % 3 == 1 ? kInfinity
                                          : -kInfinity);
        std::int64_t finite = 0;
        for (const double x : c.reference().values()) finite += std::isfinite(x);
        if (every == 1009) {
          EXPECT_GT(finite, c.output().layout().size() / 4);
        }
        check(c);
        if (testing::Test::HasFailure()) return;
      }
}

TEST(GpuMsDeformAttnShapes, non_finite_weights_reach_their_outputs_alone) {
  TMAOPS_NEEDS_GPU();
  Case c({.batch = 1,
          .heads = 1,
          .channels = 32,
          .queries = 64,
          .levels = {{4, 4}, {8, 8}},
          .points = 4,
          .value_dtype = DType::f16,
          .odd_locations = false},
         8);
  c.locations().fill([] { return 0.4; });
  for (std::int64_t q = 0; q < 64; q += 5) c.weights().set(q * 8 + 3, std::numeric_limits<double>::infinity());
  const Mirror value(c.value()), locations(c.locations()), weights(c.weights());
  for (const auto& variant : forward::variants()) {
    if (!test::runs_here(variant)) continue;
    const Mirror output(c.output());
    try {
      ms_deform_attn(value.view(), c.shape().levels, locations.view(), weights.view(), output.view(),
                     c.options(variant.name));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
      continue;
    }
    const Buffer got = output.download();
    for (std::int64_t i = 0; i < 64 * 32; ++i)
      ASSERT_EQ(std::isfinite(got.get(i)), i / 32 % 5 != 0) << variant.name << ", element " << i;
  }
}

TEST(GpuMsDeformAttnShapes, f64_values) {
  TMAOPS_NEEDS_GPU();
  runs().clear();
  std::uint64_t seed = 300;
  for (const DType points : {DType::f64, DType::f32})
    for (const Sampling sampling : {Sampling::bilinear, Sampling::nearest})
      for (const std::int64_t channels : {3, 32})
        for (const bool strided : {false, true}) {
          check(Case({.batch = 2,
                      .channels = channels,
                      .queries = 40,
                      .levels = {{8, 16}, {21, 5}, {2, 2}},
                      .value_dtype = DType::f64,
                      .location_dtype = points,
                      .weight_dtype = points,
                      .sampling = sampling,
                      .strided = strided},
                     ++seed));
          if (testing::Test::HasFailure()) return;
        }
  EXPECT_EQ(runs()["channel_per_thread"], 64);
}

TEST(GpuMsDeformAttnShapes, f32_outputs_of_16_bit_values) {
  TMAOPS_NEEDS_GPU();
  runs().clear();
  std::uint64_t seed = 330;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const std::int64_t channels : {7, 16, 32})
      check(Case({.channels = channels,
                  .queries = 101,
                  .levels = {{21, 40}, {8, 8}},
                  .points = 4,
                  .value_dtype = dtype,
                  .location_dtype = DType::f32,
                  .weight_dtype = DType::f32,
                  .f32_output = true},
                 ++seed));
  EXPECT_EQ(runs()["channel_per_thread"], 24);
  EXPECT_GE(runs()["shuffled_samples"], 16);
  EXPECT_EQ(runs()["level_per_thread"], 0);
}

/// Level shapes, and starts, in device memory.
class DeviceLevels {
 public:
  explicit DeviceLevels(const std::vector<LevelShape>& levels, const std::vector<std::int64_t>& starts = {})
      : starts_given_(!starts.empty()), shapes_(buffer_of(levels)), starts_(buffer_of(starts)) {}
  MsDeformAttnOptions options(MsDeformAttnOptions made) const {
    made.spatial_shapes = shapes_.view();
    if (starts_given_) made.level_starts = starts_.view();
    return made;
  }

 private:
  template <class T>
  static Buffer buffer_of(const std::vector<T>& list) {
    constexpr std::int64_t each = sizeof(T) / sizeof(std::int64_t);
    const auto count = static_cast<std::int64_t>(list.size());
    Buffer made(DType::i64, each == 2 ? Layout::contiguous({count, 2}) : Layout::contiguous({count}));
    std::memcpy(made.data(), list.data(), list.size() * sizeof(T));
    return made;
  }
  bool starts_given_;
  Mirror shapes_;
  Mirror starts_;
};

TEST(GpuMsDeformAttnShapes, levels_that_lie_on_the_device) {
  TMAOPS_NEEDS_GPU();
  std::uint64_t seed = 360;
  for (const DType dtype : {DType::f16, DType::f32, DType::f64})
    for (const Sampling sampling : {Sampling::bilinear, Sampling::nearest})
      for (const bool ragged : {false, true})
        for (const int count : {3, 19}) {
          Shape shape{.channels = 32, .queries = 50, .points = 4, .value_dtype = dtype, .sampling = sampling};
          shape.levels.clear();
          for (int l = 0; l < count; ++l) shape.levels.push_back({1 + (7 * l) % 5, 2 + (3 * l) % 7});
          if (ragged)
            for (int l = 0; l < count; ++l) shape.ragged.push_back(l % 3);
          const Case made(shape, ++seed);
          Case c = made;
          const Buffer want = c.reference();
          const Mirror value(c.value()), locations(c.locations()), weights(c.weights());
          const DeviceLevels levels(shape.levels);
          const auto run = [&](std::string_view variant, const DeviceLevels& on_device) {
            const Mirror output(c.output());
            ms_deform_attn(value.view(), {}, locations.view(), weights.view(), output.view(),
                           on_device.options(c.options(variant)));
            check_cuda(cudaDeviceSynchronize(), "levels on the device");
            return output.download();
          };
          for (const auto& variant : forward::variants()) {
            if (variant.device != DeviceType::cuda) continue;
            if (variant.name == "channel_per_thread") {
              expect_forward(run(variant.name, levels), want, "levels on the device");
            } else {
              EXPECT_THROW(run(variant.name, levels), Error) << variant.name;
            }
          }
          expect_forward(run("", levels), want, "selected");
          std::vector<std::int64_t> starts;
          for (const forward::Level& level : c.problem(*std::make_unique<Buffer>(c.output())).levels)
            starts.push_back(level.start);
          expect_forward(run("", DeviceLevels(shape.levels, starts)), want, "starts on the device");
          if (HasFailure()) return;
        }
}

TEST(GpuMsDeformAttnShapes, a_level_on_the_device_that_is_none_makes_nan) {
  TMAOPS_NEEDS_GPU();
  constexpr std::int64_t kHuge = INT64_MAX;
  constexpr std::int64_t kSquare = std::int64_t{1} << 32;
  for (const Sampling sampling : {Sampling::bilinear, Sampling::nearest}) {
    Case c({.channels = 8, .queries = 20, .levels = {{4, 4}, {8, 2}}, .sampling = sampling}, 5);
    const Mirror value(c.value()), locations(c.locations()), weights(c.weights());
    const auto expect_nan = [&](const DeviceLevels& levels) {
      const Mirror output(c.output());
      ms_deform_attn(value.view(), {}, locations.view(), weights.view(), output.view(), levels.options(c.options("")));
      check_cuda(cudaDeviceSynchronize(), "bad levels");
      const Buffer got = output.download();
      EXPECT_TRUE(got.canaries_intact());
      for (const double x : got.values()) ASSERT_TRUE(std::isnan(x));
    };
    for (const LevelShape& bad : {LevelShape{0, 4},
                                  {4, 0},
                                  {-3, 5},
                                  {5, -3},
                                  {8, 5},
                                  {1, 33},
                                  {kHuge, 1},
                                  {1, kHuge},
                                  {kHuge, kHuge},
                                  {-kHuge, kHuge},
                                  {kSquare, kSquare}}) {
      expect_nan(DeviceLevels({{4, 4}, bad}));
      expect_nan(DeviceLevels({bad, {8, 2}}, {0, 16}));
    }
    for (const std::int64_t start : {std::int64_t{-1}, std::int64_t{17}, kHuge, -kHuge})
      expect_nan(DeviceLevels({{4, 4}, {8, 2}}, {0, start}));
  }
}

TEST(GpuMsDeformAttnShapes, empty_problems_do_nothing) {
  TMAOPS_NEEDS_GPU();
  for (const auto& [batch, heads, channels, queries] :
       std::vector<std::array<std::int64_t, 4>>{{0, 2, 8, 5}, {2, 0, 8, 5}, {2, 2, 0, 5}, {2, 2, 8, 0}})
    check(Case({.batch = batch, .heads = heads, .channels = channels, .queries = queries}, 1));
}

/// Two images 2^32 elements apart, the second one's levels listed out of order.
TEST(GpuMsDeformAttnShapes, offsets_beyond32_bits) {
  TMAOPS_NEEDS_CHIP();
  constexpr std::int64_t kApart = (std::int64_t{1} << 32) + 512;
  Case c({.heads = 1,
          .channels = 32,
          .queries = 200,
          .levels = {{8, 16}, {4, 4}},
          .points = 8,
          .value_dtype = DType::f16,
          .odd_locations = false},
         4);
  const Buffer want = c.reference();
  const std::int64_t image = c.value().layout().size() / 2;
  unsigned char* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(kApart + image) * 2) != cudaSuccess) {
    (void)cudaGetLastError();
    GTEST_SKIP() << "needs 8 GiB of device memory";
  }
  for (const std::int64_t n : {0, 1})
    check_cuda(cudaMemcpy(memory + n * kApart * 2, static_cast<unsigned char*>(c.value().data()) + n * image * 2,
                          static_cast<std::size_t>(image) * 2, cudaMemcpyHostToDevice),
               "upload");
  const ConstTensorView value(memory, DType::f16, Layout::strided({2, c.shape().length(), 1, 32}, {kApart, 32, 32, 1}),
                              {DeviceType::cuda, 0});
  const Mirror locations(c.locations()), weights(c.weights());
  for (const auto& variant : forward::variants()) {
    if (!test::runs_here(variant)) continue;
    const Mirror output(c.output());
    try {
      ms_deform_attn(value, c.shape().levels, locations.view(), weights.view(), output.view(), c.options(variant.name));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
      continue;
    }
    expect_forward(output.download(), want, std::string(variant.name));
  }
  cudaFree(memory);
}

TEST(GpuMsDeformAttnShapes, plan_runs_inside_a_captured_graph) {
  TMAOPS_NEEDS_CHIP();
  for (const std::int64_t points : {4, 8}) {
    Case c({.heads = 8,
            .channels = 32,
            .queries = 100,
            .levels = {{8, 12}, {4, 6}, {3, 4}, {2, 2}},
            .points = points,
            .value_dtype = DType::f16,
            .location_dtype = DType::f16,
            .weight_dtype = DType::f16},
           3);
    const Buffer want = c.reference();
    const Mirror value(c.value()), locations(c.locations()), weights(c.weights());
    for (const auto& variant : forward::variants()) {
      if (!test::runs_here(variant)) continue;
      const Mirror output(c.output());
      try {
        const Plan plan = plan_ms_deform_attn(value.view(), c.shape().levels, locations.view(), weights.view(),
                                              output.view(), c.options(variant.name));
        test::replay_captured(plan);
        expect_forward(output.download(), want, std::string(variant.name));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace tmaops::test
