// Steps fused into multi-scale deformable attention on the GPU, against the same steps done one after the other in f64.
#include <map>
#include <random>

#include "gpu/mirror.hpp"
#include "gpu/support.hpp"
#include "ops/ms_deform_attn/fused_case.hpp"
#include "ops/ms_deform_attn/gpu/shapes.hpp"

namespace tmaops::test {
namespace {

namespace forward = ops::ms_deform_attn;

/// Runs every GPU variant that takes the case, twice, and counts how often each did.
void check(FusedCase& c, int shift, std::map<std::string, int>& runs) {
  SCOPED_TRACE(c.problem().text() + ", shift " + std::to_string(shift));
  const Buffer want = c.want();
  const Mirror value(c.value(), shift), offsets(c.offsets(), shift), logits(c.logits(), shift);
  const Mirror reference(c.reference_points()), mask(c.mask(), shift);
  for (const auto& variant : forward::variants()) {
    if (!test::runs_here(variant)) continue;
    const std::string name(variant.name);
    Buffer first = c.output();
    for (const bool again : {false, true}) {
      const Mirror output(c.output(), shift);
      MsDeformAttnOptions options = c.options(name, reference.view(), mask.view());
      options.dependent_launch = again;
      try {
        ms_deform_attn(value.view(), c.shape().levels, offsets.view(), logits.view(), output.view(), options);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
        ASSERT_NE(name, "channel_per_thread") << error.what();
        break;
      }
      check_cuda(cudaDeviceSynchronize(), variant.name);
      ++runs[name];
      const Buffer got = output.download();
      expect_forward_of(variant.name, c.problem(), got, want, name);
      if (again) {
        EXPECT_EQ(got.bits(), first.bits()) << name << ": another result the second time";
      }
      first = got;
      if (testing::Test::HasFailure()) return;
    }
  }
}

/// The steps of f64 values, which one variant takes, and levels that lie on the device.
TEST(GpuMsDeformAttnFusedShapes, f64_values_and_levels_on_the_device) {
  TMAOPS_NEEDS_GPU();
  std::uint64_t seed = 80;
  for (const int components : {0, 2, 4})
    for (const bool bordered : {false, true})
      for (const DType dtype : {DType::f64, DType::f16}) {
        FusedCase c({.channels = 7,
                     .queries = 30,
                     .levels = {{5, 8}, {3, 4}},
                     .value_dtype = dtype,
                     .location_dtype = dtype,
                     .weight_dtype = dtype},
                    {.softmax = true,
                     .reference_components = components,
                     .masked = true,
                     .bordered = bordered,
                     .offset_scale = 0.3},
                    ++seed);
        std::map<std::string, int> runs;
        check(c, 0, runs);
        EXPECT_EQ(runs["channel_per_thread"], 2);
        Buffer shapes(DType::i64, {2, 2});
        const double sides[] = {5, 8, 3, 4};
        for (std::int64_t i = 0; i < 4; ++i) shapes.set(i, sides[i]);
        const Mirror value(c.value()), offsets(c.offsets()), logits(c.logits()), there(shapes);
        const Mirror reference(c.reference_points()), mask(c.mask()), output(c.output());
        MsDeformAttnOptions options = c.options("", reference.view(), mask.view());
        options.spatial_shapes = there.view();
        ms_deform_attn(value.view(), {}, offsets.view(), logits.view(), output.view(), options);
        check_cuda(cudaDeviceSynchronize(), "levels on the device");
        expect_forward(output.download(), c.want(), "levels on the device");
        if (testing::Test::HasFailure()) return;
      }
}

class GpuMsDeformAttnFused : public testing::TestWithParam<int> {};

TEST_P(GpuMsDeformAttnFused, equals_the_separate_steps) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(static_cast<std::uint64_t>(900 + GetParam()));
  std::map<std::string, int> runs;
  for (int i = 0; i < problems(40); ++i) {
    const Shape shape = random_gpu_shape(random);
    const int shift = random() % 4 == 0 ? 1 + static_cast<int>(random() % 5) : 0;
    FusedCase c(shape, random_fusions(random), random());
    check(c, shift, runs);
    if (HasFailure()) return;
  }
  EXPECT_GE(runs["channel_per_thread"], 2 * problems(40));
  EXPECT_GE(runs["shuffled_samples"], kOnExecutor ? 0 : 4);
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuMsDeformAttnFused, testing::Range(0, 4));

TEST(GpuMsDeformAttnFusedShapes, measured_shapes_in_small) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 1;
  std::map<std::string, int> runs;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const int components : {2, 4})
      for (const std::int64_t heads : {1, 8}) {
        FusedCase c(
            {.batch = 2,
             .heads = heads,
             .channels = 32,
             .queries = heads == 1 ? 1021 : 301,
             .levels = {{46, 80}, {23, 40}, {12, 20}, {6, 10}},
             .points = heads == 1 ? 8 : 4,
             .value_dtype = dtype,
             .location_dtype = dtype,
             .weight_dtype = dtype},
            {.softmax = true, .reference_components = components, .masked = components == 4, .bordered = heads == 1},
            ++seed);
        check(c, 0, runs);
        if (testing::Test::HasFailure()) return;
      }
  EXPECT_GE(runs["shuffled_samples"], 24);
  EXPECT_EQ(runs["level_per_thread"], 6) << "four points, no mask";
}

TEST(GpuMsDeformAttnFusedShapes, encoders_of_three_and_four_levels) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 60;
  std::map<std::string, int> runs;
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const DType points : {dtype, DType::f32})
      for (const bool four : {false, true})
        for (const bool bordered : {false, true}) {
          Shape shape{.batch = 2,
                      .heads = 3,
                      .channels = 32,
                      .queries = 301,
                      .levels = {{23, 40}, {12, 20}, {6, 10}},
                      .points = 4,
                      .value_dtype = dtype,
                      .location_dtype = points,
                      .weight_dtype = points};
          if (four) shape.levels.push_back({3, 5});
          FusedCase c(shape, {.softmax = true, .reference_components = 2, .bordered = bordered}, ++seed);
          check(c, 0, runs);
          if (testing::Test::HasFailure()) return;
        }
  EXPECT_EQ(runs["tma_resident"], 32);
}

/// Beyond what exp takes, and what is no number.
TEST(GpuMsDeformAttnFusedShapes, logits_may_have_any_size) {
  TMAOPS_NEEDS_GPU();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  FusedCase c({.batch = 1,
               .heads = 2,
               .channels = 32,
               .queries = 64,
               .levels = {{12, 16}, {6, 8}, {3, 4}, {2, 2}},
               .points = 4,
               .value_dtype = DType::f16,
               .location_dtype = DType::f32,
               .weight_dtype = DType::f32},
              {.softmax = true, .reference_components = 2}, 70);
  const double sizes[] = {100, -100, 1e4, -1e4, -kInfinity, kInfinity, std::numeric_limits<double>::quiet_NaN()};
  for (std::int64_t row = 0; row < 7 * 16; ++row)
    for (std::int64_t s = 0; s < 16; s += 1 + row / 7)
      c.logits().set(16 * row + s, row < 7 ? sizes[row % 7] + static_cast<double>(s) : sizes[row % 7]);
  Buffer want = c.output();
  ms_deform_attn(c.value(), c.shape().levels, c.offsets(), c.logits(), want, c.options("reference"));
  const Mirror value(c.value()), offsets(c.offsets()), logits(c.logits()), reference(c.reference_points());
  for (const char* variant : {"tma_resident", "level_per_thread", "shuffled_samples"}) {
    const Mirror output(c.output());
    ms_deform_attn(value.view(), c.shape().levels, offsets.view(), logits.view(), output.view(),
                   c.options(variant, reference.view(), {}));
    check_cuda(cudaDeviceSynchronize(), variant);
    expect_forward(output.download(), want, variant);
  }
}

/// A border is another row pitch: the variants that read 16 bytes take it, and the published kernels.
TEST(GpuMsDeformAttnFusedShapes, a_border_is_taken_by_every_variant_of_the_forward_pass) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 40;
  std::map<std::string, int> runs;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const std::int64_t heads : {1, 8})
      for (const std::int64_t queries : {7, 301, 2100})
        for (const std::int64_t points : {4, 8}) {
          FusedCase c({.batch = 2,
                       .heads = heads,
                       .channels = 32,
                       .queries = queries,
                       .levels = {{23, 32}, {23, 40}, {12, 20}, {6, 10}},
                       .points = points,
                       .value_dtype = dtype,
                       .location_dtype = dtype,
                       .weight_dtype = dtype},
                      {.bordered = true}, ++seed);
          check(c, 0, runs);
          if (testing::Test::HasFailure()) return;
        }
  for (const auto& variant : forward::variants())
    if (test::runs_here(variant)) {
      EXPECT_GE(runs[std::string(variant.name)], 2) << variant.name;
    }
}

TEST(GpuMsDeformAttnFusedShapes, the_selected_variant_is_that_of_a_plain_call) {
  TMAOPS_NEEDS_GPU();
  FusedCase c({.channels = 32, .value_dtype = DType::f16}, {.softmax = true}, 2);
  const Mirror value(c.value()), offsets(c.offsets()), logits(c.logits()), output(c.output());
  const Plan plan = plan_ms_deform_attn(value.view(), c.shape().levels, offsets.view(), logits.view(), output.view(),
                                        c.options("", {}, {}));
  EXPECT_EQ(plan.variant(), "shuffled_samples");
}

}  // namespace
}  // namespace tmaops::test
