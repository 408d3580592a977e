// Steps fused into the forward operator give what the separate steps give; bad arguments are named.
#include <gtest/gtest.h>

#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/fused_case.hpp"
#include "support/expect_error.hpp"
#include "support/random_choice.hpp"

namespace tmaops::test {
namespace {

namespace forward = ops::ms_deform_attn;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Fused : public testing::TestWithParam<std::string> {
 protected:
  void check(FusedCase& c) const {
    SCOPED_TRACE(c.problem().text());
    if (!takes(forward::variants(), c.problem(), GetParam())) return;
    Buffer got = c.output();
    ms_deform_attn(c.value(), c.shape().levels, c.offsets(), c.logits(), got, c.options(GetParam()));
    expect_forward(got, c.want(), GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Variants, Fused, testing::ValuesIn(cpu_variants(forward::variants())),
                         [](const auto& test) { return test.param; });

TEST_P(Fused, equals_the_separate_steps) {
  std::mt19937_64 random(11);
  const auto pick = picker(random);
  for (int i = 0; i < 150; ++i) {
    Shape shape{.batch = pick(1, 2),
                .heads = pick(1, 2, 3),
                .channels = pick(1, 7, 16, 32, 40),
                .queries = pick(1, 4, 19),
                .levels = {{pick(1, 2, 5, 8), pick(1, 3, 6)}, {pick(1, 4), pick(1, 7)}, {3, 2}},
                .points = pick(1, 2, 4)};
    shape.value_dtype = pick(DType::f32, DType::f16, DType::bf16, DType::f64);
    shape.location_dtype = pick(DType::f32, DType::f16, DType::bf16, DType::f64);
    shape.weight_dtype = pick(DType::f32, DType::f16, DType::bf16, DType::f64);
    shape.sampling = pick(Sampling::bilinear, Sampling::bilinear, Sampling::nearest);
    shape.strided = random() % 3 == 0;
    shape.f32_output = random() % 4 == 0;
    if (random() % 3 == 0) shape.ragged = {2, 0, 3};
    FusedCase c(shape, random_fusions(random), random());
    check(c);
    if (HasFailure()) return;
  }
}

TEST_P(Fused, one_reference_point_for_all_levels) {
  FusedCase c({.levels = {{4, 8}, {5, 3}}}, {.reference_components = 2}, 3);
  ConstTensorView once = c.reference_points();
  once.strides[2] = 0;
  if (!takes(forward::variants(), c.problem(), GetParam())) return;
  Buffer every = c.reference_points();
  for (std::int64_t i = 0; i < every.layout().size(); ++i) every.set(i, every.get(i / 4 * 4 + i % 2));
  Buffer got = c.output();
  Buffer want = c.output();
  ms_deform_attn(c.value(), c.shape().levels, c.offsets(), c.logits(), got, c.options(GetParam(), once, {}));
  ms_deform_attn(c.value(), c.shape().levels, c.offsets(), c.logits(), want, c.options(GetParam(), every, {}));
  EXPECT_EQ(got.bits(), want.bits());
}

TEST_P(Fused, logits_of_any_size) {
  FusedCase c(
      {.batch = 1, .heads = 1, .channels = 16, .queries = 6, .levels = {{4, 4}}, .points = 3, .odd_locations = false},
      {.softmax = true, .reference_components = 2}, 4);
  if (!takes(forward::variants(), c.problem(), GetParam())) return;
  c.value().fill([] { return 1.0; });
  c.reference_points().fill([] { return 0.5; });
  c.offsets().fill([] { return 0.25; });
  const std::vector<double> logits{1e4,        1e4,
                                   -1e4,  // far beyond what exp takes
                                   -kInfinity, 3,
                                   -kInfinity,  // points without weight
                                   -kInfinity, -kInfinity,
                                   -kInfinity,  // nothing left
                                   0,          kInfinity,
                                   0,  //
                                   0,          std::numeric_limits<double>::quiet_NaN(),
                                   0,          -1e4,
                                   -1e4,       -1e4};
  for (std::size_t i = 0; i < logits.size(); ++i) c.logits().set(static_cast<std::int64_t>(i), logits[i]);
  Buffer got = c.output();
  ms_deform_attn(c.value(), c.shape().levels, c.offsets(), c.logits(), got, c.options(GetParam()));
  for (std::int64_t q = 0; q < 6; ++q) {
    if (q >= 2 && q <= 4)
      EXPECT_TRUE(std::isnan(got.get(q * 16))) << q;
    else
      EXPECT_NEAR(got.get(q * 16), 1.0, 1e-6) << q;
  }
}

TEST(FusedSelection, every_variant_takes_every_step) {
  for (const Fusions& fusions : {Fusions{.softmax = true}, Fusions{.reference_components = 4}, Fusions{.masked = true},
                                 Fusions{.bordered = true}}) {
    FusedCase c({.channels = 16}, fusions, 5);
    for (const std::string& name : cpu_variants(forward::variants()))
      EXPECT_TRUE(takes(forward::variants(), c.problem(), name)) << name;
    Buffer got = c.output();
    ms_deform_attn(c.value(), c.shape().levels, c.offsets(), c.logits(), got, c.options(""));
    expect_forward(got, c.want(), "selected");
  }
}

TEST(FusedSelection, the_problem_names_what_is_fused) {
  const FusedCase c({}, {.softmax = true, .reference_components = 4, .masked = true, .bordered = true}, 5);
  EXPECT_NE(c.problem().text().find("fused: [softmax, reference4, mask, border]"), std::string::npos)
      << c.problem().text();
}

/// A good call whose fused arguments a test spoils one by one.
class FusedArguments : public testing::Test {
 protected:
  FusedCase good{{.batch = 2, .heads = 2, .channels = 4, .queries = 3, .levels = {{4, 4}, {2, 3}}, .points = 2},
                 {.softmax = true, .reference_components = 2, .masked = true, .bordered = true},
                 1};
  MsDeformAttnOptions options = good.options("");
  std::vector<LevelShape> levels = good.shape().levels;
  std::vector<std::int64_t> starts;
  Buffer out = good.output();

  template <class... Text>
  void expect(ErrorCode code, const Text&... pieces) {
    const std::vector<unsigned char> before = out.bits();
    options.level_start_index = starts;
    expect_error(
        code, [&] { ms_deform_attn(good.value(), levels, good.offsets(), good.logits(), out, options); },
        "ms_deform_attn", pieces...);
    EXPECT_EQ(out.bits(), before) << "the output was written";
  }
};

TEST_F(FusedArguments, reference_points) {
  const ConstTensorView points = options.reference_points;
  options.reference_points.rank = 3;
  expect(ErrorCode::shape_mismatch, "reference_points", "(N, Lq, L, 2) or (N, Lq, L, 4)");
  for (const std::size_t k : {0, 1, 2, 3}) {
    options.reference_points = points;
    options.reference_points.shape[k] = 1;
    expect(ErrorCode::shape_mismatch, "reference_points");
  }
  options.reference_points = points;
  options.reference_points.dtype = DType::i32;
  expect(ErrorCode::unsupported_dtype, "reference_points", "i32");
  options.reference_points = points;
  options.reference_points.device = {DeviceType::cuda, 0};
  expect(ErrorCode::device_mismatch, "reference_points");
  options.reference_points = points;
  options.reference_points.data = nullptr;
  expect(ErrorCode::null_pointer, "reference_points");
  options.reference_points = points;
  options.reference_points.data = out.data();
  expect(ErrorCode::overlap, "output", "reference_points");
}
TEST_F(FusedArguments, offset_scale) {
  options.offset_scale = kInfinity;
  expect(ErrorCode::bad_parameter, "offset_scale", "inf", "finite");
}
TEST_F(FusedArguments, padding_mask) {
  const ConstTensorView mask = options.padding_mask;
  options.padding_mask.rank = 1;
  expect(ErrorCode::shape_mismatch, "padding_mask", "(N, S)");
  options.padding_mask = mask;
  options.padding_mask.shape[1] = 22;  // without the border
  expect(ErrorCode::shape_mismatch, "padding_mask");
  options.padding_mask = mask;
  options.padding_mask.dtype = DType::f32;
  expect(ErrorCode::unsupported_dtype, "padding_mask", "f32");
  options.padding_mask = mask;
  options.padding_mask.data = out.data();
  expect(ErrorCode::overlap, "output", "padding_mask");
}
TEST_F(FusedArguments, borders_count_in_the_length_and_the_starts) {
  starts = {20, 0};  // 6x6 + 4x5 pixels
  options.level_start_index = starts;
  ms_deform_attn(good.value(), levels, good.offsets(), good.logits(), out, options);
  starts = {0, 35};
  expect(ErrorCode::bad_level_start, "level_start_index[1]", "inside level 0");
  starts = {0, 37};
  expect(ErrorCode::bad_level_start, "level_start_index[1]", "20 pixels");
  starts = {};
  levels[1] = {3, 3};
  expect(ErrorCode::level_shapes_mismatch, "4x4 + 3x3, each in a border of one pixel, = 61", "S = 56");
  levels[1] = {1, INT64_MAX - 1};
  expect(ErrorCode::size_overflow, "levels[1]");
}
TEST_F(FusedArguments, backward_takes_none_of_them) {
  Case plain({}, 2);
  Buffer gradient(DType::f32, plain.value().layout());
  const Buffer grad_output = plain.output();
  const auto refused = [&](const MsDeformAttnOptions& wrong, const char* name) {
    expect_error(
        ErrorCode::bad_parameter,
        [&] {
          ms_deform_attn_backward(plain.value(), plain.shape().levels, plain.locations(), plain.weights(), grad_output,
                                  {.value = gradient}, wrong);
        },
        "ms_deform_attn_backward", name);
  };
  refused({.softmax = true}, "softmax");
  refused({.reference_points = options.reference_points}, "reference_points");
  refused({.padding_mask = options.padding_mask}, "padding_mask");
  refused({.bordered_value = true}, "bordered_value");
}

}  // namespace
}  // namespace tmaops::test
