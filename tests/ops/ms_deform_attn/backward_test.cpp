// Every backward variant against the reference, and the reference against finite differences of the forward reference.
#include <gtest/gtest.h>

#include <array>

#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/case.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::test {
namespace {

namespace backward = ops::ms_deform_attn_backward;

/// The three gradients of a case.
struct Gradients {
  Buffer value;
  Buffer locations;
  Buffer weights;

  Gradients(Case& c, DType value_dtype, DType location_dtype, DType weight_dtype)
      : value(value_dtype, c.value().layout()),
        locations(location_dtype, c.locations().layout()),
        weights(weight_dtype, c.weights().layout()) {}
  /// In the arithmetic's own type.
  explicit Gradients(Case& c)
      : Gradients(c, type(c.value().dtype()), type(c.value().dtype()), type(c.value().dtype())) {}
  static DType type(DType value) { return value == DType::f64 ? DType::f64 : DType::f32; }
  MsDeformAttnGradients views() {
    return {.value = value, .sampling_locations = locations, .attention_weights = weights};
  }
};

class Backward : public testing::TestWithParam<std::string> {
 protected:
  static bool takes_case(Case& c, const Buffer& grad_output, Gradients& gradients, const std::string& variant) {
    return takes(backward::variants(),
                 backward::make_problem(c.value(), c.shape().levels, c.locations(), c.weights(), grad_output,
                                        gradients.views(), c.options()),
                 variant);
  }
  void expect_reference(Case c, bool narrow = false) const {
    Buffer grad_output = c.output();
    grad_output.fill_normal(c.random());
    Gradients got = narrow ? Gradients(c, c.value().dtype(), c.locations().dtype(), c.weights().dtype()) : Gradients(c);
    Gradients want = got;
    if (!takes_case(c, grad_output, got, GetParam())) return;
    c.backward(grad_output, got.views(), GetParam());
    c.backward(grad_output, want.views(), "reference_backward");
    const bool f64 = c.value().dtype() == DType::f64;
    const std::string what = GetParam() + " on " + c.text();
    expect_gradient(got.value, want.value, f64, "value, " + what);
    expect_gradient(got.locations, want.locations, f64, "locations, " + what);
    expect_gradient(got.weights, want.weights, f64, "weights, " + what);
  }
};

INSTANTIATE_TEST_SUITE_P(Variants, Backward, testing::ValuesIn(cpu_variants(backward::variants())),
                         [](const auto& test) { return test.param; });

/// sum over the output of grad_output * output, by the forward reference in f64.
double loss(const Case& c, const Buffer& grad_output) {
  const Buffer out = c.reference();
  double sum = 0;
  for (std::int64_t i = 0; i < out.layout().size(); ++i) sum += out.get(i) * grad_output.get(i);
  return sum;
}

/// Central differences of the loss by every element of one input. The loss is linear in the values and weights, and
/// linear in a location between whole pixels.
void expect_differences(Case& c, Buffer& input, const Buffer& gradient, const Buffer& grad_output, const char* what) {
  constexpr double kStep = 1e-5;
  for (std::int64_t i = 0; i < input.layout().size(); ++i) {
    const double at = input.get(i);
    if (!std::isfinite(at)) {
      EXPECT_EQ(gradient.get(i), 0) << what << " " << i;
      continue;
    }
    input.set(i, at + kStep);
    const double above = loss(c, grad_output);
    input.set(i, at - kStep);
    const double below = loss(c, grad_output);
    input.set(i, at);
    EXPECT_NEAR((above - below) / (2 * kStep), gradient.get(i), 1e-6) << what << " " << i;
  }
}

TEST(BackwardReference, agrees_with_finite_differences) {
  for (const Sampling sampling : {Sampling::bilinear, Sampling::nearest}) {
    // Sides that are no powers of two: locations keep away from whole pixels, where the derivative jumps.
    Case c({.batch = 1,
            .heads = 2,
            .channels = 3,
            .queries = 3,
            .levels = {{5, 7}, {3, 3}},
            .points = 2,
            .value_dtype = DType::f64,
            .location_dtype = DType::f64,
            .weight_dtype = DType::f64,
            .sampling = sampling},
           11);
    Buffer grad_output = c.output();
    grad_output.fill_normal(c.random());
    Gradients gradients(c);
    c.backward(grad_output, gradients.views(), "reference_backward");
    expect_differences(c, c.value(), gradients.value, grad_output, "value");
    expect_differences(c, c.weights(), gradients.weights, grad_output, "weight");
    expect_differences(c, c.locations(), gradients.locations, grad_output, "location");
  }
}

TEST_P(Backward, agrees_with_the_reference_in_every_type) {
  for (const DType value : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (const DType points : {DType::f64, DType::f32, DType::f16, DType::bf16})
      for (const Sampling sampling : {Sampling::bilinear, Sampling::nearest})
        for (const bool narrow : {false, true})
          expect_reference(Case({.queries = 9,
                                 .levels = {{8, 16}, {4, 4}, {1, 2}},
                                 .value_dtype = value,
                                 .location_dtype = points,
                                 .weight_dtype = points,
                                 .sampling = sampling},
                                3),
                           narrow);
}

TEST_P(Backward, takes_every_number_of_channels) {
  for (const std::int64_t channels : {1, 3, 4, 15, 16, 17, 30, 32, 33, 64, 71, 130})
    expect_reference(Case({.channels = channels}, 4));
}

TEST_P(Backward, takes_every_number_of_points_and_levels) {
  for (const std::int64_t points : {1, 2, 5, 15, 16, 17, 33})
    for (const std::size_t levels : {1U, 2U, 5U}) {
      Shape shape{.channels = 5, .queries = 3, .points = points};
      shape.levels.assign(levels, {3, 5});
      expect_reference(Case(shape, static_cast<std::uint64_t>(points)));
    }
}

TEST_P(Backward, takes_ragged_points_and_strides) {
  expect_reference(Case({.levels = {{4, 4}, {8, 2}, {1, 1}}, .ragged = {3, 0, 4}}, 2));
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    expect_reference(Case({.strided = true}, seed));
    expect_reference(Case({.levels = {{4, 4}, {8, 2}, {1, 1}}, .ragged = {1, 12, 4}, .strided = true}, seed));
  }
}

TEST_P(Backward, gives_zero_gradients_without_queries) {
  Case c({.queries = 0}, 1);
  Buffer grad_output = c.output();
  Gradients got(c);
  c.backward(grad_output, got.views(), GetParam());
  for (const double x : got.value.values()) EXPECT_EQ(x, 0);
  EXPECT_TRUE(got.value.canaries_intact());
}

TEST_P(Backward, takes_empty_batch_heads_and_channels) {
  for (const Shape& shape : {Shape{.batch = 0}, Shape{.heads = 0}, Shape{.channels = 0}}) {
    Case c(shape, 1);
    Buffer grad_output = c.output();
    Gradients got(c);
    c.backward(grad_output, got.views(), GetParam());
    for (const double x : got.locations.values()) EXPECT_EQ(x, 0);
    for (const double x : got.weights.values()) EXPECT_EQ(x, 0);
  }
}

TEST_P(Backward, writes_only_the_gradients_asked_for) {
  Case c({}, 5);
  Buffer grad_output = c.output();
  grad_output.fill_normal(c.random());
  Gradients want(c);
  c.backward(grad_output, want.views(), GetParam());
  for (int only = 0; only < 3; ++only) {
    Gradients got(c);
    MsDeformAttnGradients views;
    if (only == 0) views.value = got.value;
    if (only == 1) views.sampling_locations = got.locations;
    if (only == 2) views.attention_weights = got.weights;
    c.backward(grad_output, views, GetParam());
    EXPECT_EQ(got.value.bits() == want.value.bits(), only == 0);
    EXPECT_EQ(got.locations.bits() == want.locations.bits(), only == 1);
    EXPECT_EQ(got.weights.bits() == want.weights.bits(), only == 2);
  }
}

TEST_P(Backward, same_bits_for_any_number_of_threads) {
  // One image and one head: with several threads, the levels are shared out.
  for (const std::int64_t heads : {1, 3}) {
    Case c({.batch = 1, .heads = heads, .channels = 20, .queries = 300, .levels = {{16, 20}, {7, 9}, {4, 4}}}, 6);
    Buffer grad_output = c.output();
    grad_output.fill_normal(c.random());
    std::vector<std::array<std::vector<unsigned char>, 3>> runs;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      Gradients got(c);
      c.backward(grad_output, got.views(), GetParam());
      runs.push_back({got.value.bits(), got.locations.bits(), got.weights.bits()});
      EXPECT_EQ(runs.back(), runs.front()) << threads << " threads";
    }
    set_num_threads(0);
  }
}

TEST_P(Backward, non_finite_values_go_only_to_points_that_touch_them) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Case c({.channels = 9, .queries = 40, .levels = {{8, 8}, {2, 4}}, .value_dtype = dtype}, 12);
    for (int i = 0; i < 10; ++i)
      c.value().set(static_cast<std::int64_t>(c.random()() % static_cast<std::uint64_t>(c.value().layout().size())),
                    std::numeric_limits<double>::quiet_NaN());
    Gradients got(c);
    Buffer grad_output = c.output();
    grad_output.fill_normal(c.random());
    c.backward(grad_output, got.views(), "reference_backward");
    std::int64_t finite = 0;
    for (const double x : got.weights.values()) finite += std::isfinite(x);
    EXPECT_GT(finite, got.weights.layout().size() / 2);
    EXPECT_LT(finite, got.weights.layout().size());
    for (const double x : got.value.values()) EXPECT_TRUE(std::isfinite(x));
    expect_reference(c);
  }
}

TEST_P(Backward, skipped_points_pass_nothing_on) {
  Case c({.batch = 1, .heads = 1, .channels = 4, .queries = 2, .levels = {{4, 4}, {2, 2}}, .points = 2}, 13);
  c.locations().fill([] { return 0.375; });
  for (std::int64_t i = 0; i < 8; ++i)
    c.locations().set(i, i % 3 == 0 ? -3.0 : std::numeric_limits<double>::infinity());
  Buffer grad_output = c.output();
  for (std::int64_t i = 0; i < 8; ++i) grad_output.set(i, i < 4 ? std::numeric_limits<double>::quiet_NaN() : 1.0);
  Gradients got(c);
  c.backward(grad_output, got.views(), GetParam());
  for (const double x : got.value.values()) EXPECT_TRUE(std::isfinite(x));
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(got.weights.get(i), 0);
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_EQ(got.locations.get(i), 0);
  for (std::int64_t i = 4; i < 8; ++i) EXPECT_NE(got.weights.get(i), 0);
}

TEST_P(Backward, skipped_points_have_zero_gradients_whatever_their_weight) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double location : {-3.0, 7.0, infinity, -infinity, nan})
    for (const double weight : {nan, infinity, -infinity}) {
      Case c({.batch = 1, .heads = 2, .channels = 8, .queries = 3, .levels = {{4, 4}, {2, 2}}, .points = 5}, 14);
      c.locations().fill([] { return 0.375; });
      const auto skipped = [](std::int64_t point) { return point % 4 == 1; };
      for (std::int64_t point = 0; point < c.weights().layout().size(); ++point) {
        if (!skipped(point)) continue;
        c.weights().set(point, weight);
        c.locations().set(2 * point + point % 2, location);
      }
      Buffer grad_output = c.output();
      grad_output.fill_normal(c.random());
      Gradients got(c);
      c.backward(grad_output, got.views(), GetParam());
      for (const double x : got.value.values()) ASSERT_TRUE(std::isfinite(x));
      for (std::int64_t point = 0; point < c.weights().layout().size(); ++point) {
        SCOPED_TRACE("location " + std::to_string(location) + ", weight " + std::to_string(weight) + ", point " +
                     std::to_string(point));
        if (skipped(point)) {
          EXPECT_EQ(got.locations.get(2 * point), 0);
          EXPECT_EQ(got.locations.get(2 * point + 1), 0);
          EXPECT_EQ(got.weights.get(point), 0);
        } else {
          EXPECT_NE(got.weights.get(point), 0);
        }
      }
    }
}

}  // namespace
}  // namespace tmaops::test
