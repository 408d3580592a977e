// Every GPU variant of the backward pass against the reference on the CPU: random problems, each subset of gradients,
// outputs poisoned and between canaries; deterministic sums bit by bit.
#include <map>
#include <memory>
#include <random>

#include "gpu/mirror.hpp"
#include "gpu/support.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/gpu/shapes.hpp"

namespace tmaops::test {
namespace {

namespace backward = ops::ms_deform_attn_backward;

std::map<std::string, int>& backward_runs() {
  static std::map<std::string, int> counts;
  return counts;
}

/// The three gradients of a case on the host, poisoned; only those of `wanted` (bits) are given.
struct Gradients {
  Buffer value, locations, weights;
  Gradients(Case& c, DType value_dtype, bool own)
      : value(value_dtype, c.value().layout()),
        locations(own ? c.locations().dtype() : DType::f32, c.locations().layout()),
        weights(own ? c.weights().dtype() : DType::f32, c.weights().layout()) {}
};

/// `own`: each gradient has the type of its input, else f32.
void check(const Case& made, std::uint64_t seed, bool own, unsigned wanted = 7, int shift = 0) {
  Case c = made;
  SCOPED_TRACE(c.text() + (own ? ", own types" : "") + ", gradients " + std::to_string(wanted) + ", shift " +
               std::to_string(shift));
  std::mt19937_64 random(seed);
  Buffer grad_output(random() % 2 ? c.shape().value_dtype : DType::f32, c.output().layout());
  grad_output.fill_normal(random);
  Gradients want(c, own ? c.shape().value_dtype : DType::f32, own);
  const Gradients poisoned = want;
  c.backward(grad_output,
             {.value = want.value, .sampling_locations = want.locations, .attention_weights = want.weights},
             "reference_backward");

  const Mirror value(c.value(), shift), locations(c.locations(), shift), weights(c.weights(), shift),
      gradient(grad_output, shift);
  for (const auto& variant : backward::variants()) {
    if (!test::runs_here(variant)) continue;
    for (const bool deterministic : {false, true}) {
      MsDeformAttnOptions options = c.options(variant.name);
      options.deterministic = deterministic;
      options.dependent_launch = deterministic;
      const Mirror to_value(poisoned.value, shift), to_locations(poisoned.locations, shift),
          to_weights(poisoned.weights, shift);
      MsDeformAttnGradients gradients;
      if (wanted & 1) gradients.value = to_value.view();
      if (wanted & 2) gradients.sampling_locations = to_locations.view();
      if (wanted & 4) gradients.attention_weights = to_weights.view();
      const backward::Problem problem = backward::make_problem(value.view(), c.shape().levels, locations.view(),
                                                               weights.view(), gradient.view(), gradients, options);
      for (const std::string& name : names_of(variant, problem)) {
        options.variant = name;
        for (const Mirror* to : {&to_value, &to_locations, &to_weights}) to->reset();
        try {
          const Plan plan = plan_ms_deform_attn_backward(value.view(), c.shape().levels, locations.view(),
                                                         weights.view(), gradient.view(), gradients, options);
          std::vector<unsigned char> bits;
          for (int repeat = 0; repeat < 3; ++repeat) {  // the second run makes a graph, the third replays it
            plan.run();
            check_cuda(cudaDeviceSynchronize(), variant.name);
            const Buffer got = to_value.download();
            if (repeat > 0 && deterministic) {
              EXPECT_EQ(bits, got.bits()) << name << ": other bits in run " << repeat;
            }
            bits = got.bits();
          }
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
          const std::string_view takes_all = c.shape().value_dtype != DType::f64 ? "fixed_point_backward"
                                             : deterministic                     ? ""
                                                                                 : "warp_atomics_backward";
          ASSERT_NE(variant.name, takes_all) << error.what();
          continue;
        }
        ++backward_runs()[std::string(variant.name)];
        const std::string what = name + (deterministic ? ", deterministic" : "");
        const bool f64 = c.shape().value_dtype == DType::f64;
        if (wanted & 1) expect_gradient(to_value.download(), want.value, f64, what + ", value");
        if (wanted & 2) expect_gradient(to_locations.download(), want.locations, f64, what + ", locations");
        if (wanted & 4) expect_gradient(to_weights.download(), want.weights, f64, what + ", weights");
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// Calls check(variant, options) for each variant here that takes the value's gradient of a case, and says how many
/// there were. Those that sum in one order alone are asked for deterministic gradients.
template <class Check>
int each_variant_that_takes(const Case& c, const Mirror& value, const Mirror& locations, const Mirror& weights,
                            const Mirror& gradient, const Mirror& to, const Check& check) {
  int count = 0;
  for (const auto& variant : backward::variants()) {
    if (!test::runs_here(variant)) continue;
    MsDeformAttnOptions options = c.options(variant.name);
    for (const bool deterministic : {false, true}) {
      options.deterministic = deterministic;
      const auto problem = backward::make_problem(value.view(), c.shape().levels, locations.view(), weights.view(),
                                                  gradient.view(), {.value = to.view()}, options);
      if (!variant.supports(problem, device_info({DeviceType::cuda, 0}))) continue;
      check(variant, options);
      ++count;
      break;
    }
  }
  return count;
}

class GpuMsDeformAttnBackward : public testing::TestWithParam<int> {};

TEST_P(GpuMsDeformAttnBackward, variants_agree_with_the_reference_on_random_problems) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(static_cast<std::uint64_t>(900 + GetParam()));
  for (int i = 0; i < problems(25); ++i) {
    const Shape shape = random_gpu_shape(random);
    const int shift = random() % 4 == 0 ? 1 + static_cast<int>(random() % 5) : 0;
    const unsigned wanted = random() % 3 == 0 ? 1 + static_cast<unsigned>(random() % 7) : 7;
    check(Case(shape, random()), random(), random() % 2 == 0, wanted, shift);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuMsDeformAttnBackward, testing::Range(0, 6));

TEST(GpuMsDeformAttnBackwardShapes, measured_shapes_in_small) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 50;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32})
    for (const bool own : {false, true}) {
      ++seed;
      check(Case({.batch = 2,
                  .heads = 8,
                  .channels = 32,
                  .queries = 301,
                  .levels = {{23, 40}, {12, 20}, {6, 10}},
                  .points = 4,
                  .value_dtype = dtype,
                  .location_dtype = DType::f32,
                  .weight_dtype = DType::f32},
                 seed),
            seed, own);
      if (testing::Test::HasFailure()) return;
    }
  for (const auto& variant : backward::variants())
    if (test::runs_here(variant)) {
      EXPECT_GE(backward_runs()[std::string(variant.name)], 2) << variant.name;
    }
}

TEST(GpuMsDeformAttnBackwardShapes, f64_values) {
  TMAOPS_NEEDS_GPU();
  backward_runs().clear();
  std::uint64_t seed = 400;
  for (const DType points : {DType::f64, DType::f32})
    for (const Sampling sampling : {Sampling::bilinear, Sampling::nearest})
      for (const bool strided : {false, true}) {
        ++seed;
        const Case c({.channels = 33,
                      .queries = 40,
                      .levels = {{8, 16}, {21, 5}, {2, 2}},
                      .value_dtype = DType::f64,
                      .location_dtype = points,
                      .weight_dtype = points,
                      .sampling = sampling,
                      .strided = strided},
                     seed);
        check(c, seed, true);
        if (points == DType::f32) check(c, seed, false);  // the value's gradient in f32
        if (testing::Test::HasFailure()) return;
      }
  EXPECT_EQ(backward_runs()["warp_atomics_backward"], 12);
}

TEST(GpuMsDeformAttnBackwardShapes, levels_that_lie_on_the_device) {
  TMAOPS_NEEDS_GPU();
  Case c({.channels = 16, .queries = 40, .levels = {{4, 4}, {8, 2}}}, 9);
  Buffer grad_output = c.output();
  grad_output.fill_normal(c.random());
  Gradients want(c, DType::f32, false);
  const Gradients poisoned = want;
  c.backward(grad_output,
             {.value = want.value, .sampling_locations = want.locations, .attention_weights = want.weights},
             "reference_backward");
  const Mirror value(c.value()), locations(c.locations()), weights(c.weights()), gradient(grad_output);
  for (const bool right : {true, false})
    for (const bool deterministic : {false, true}) {
      Buffer shapes(DType::i64, {2, 2});
      const double sides[] = {4, 4, right ? 8.0 : 9.0, 2};
      for (std::int64_t i = 0; i < 4; ++i) shapes.set(i, sides[i]);
      const Mirror there(shapes), to_value(poisoned.value), to_locations(poisoned.locations),
          to_weights(poisoned.weights);
      MsDeformAttnOptions options{.spatial_shapes = there.view(), .deterministic = deterministic};
      ms_deform_attn_backward(
          value.view(), {}, locations.view(), weights.view(), gradient.view(),
          {.value = to_value.view(), .sampling_locations = to_locations.view(), .attention_weights = to_weights.view()},
          options);
      check_cuda(cudaDeviceSynchronize(), "levels on the device");
      if (right) {
        expect_gradient(to_value.download(), want.value, false, "value");
        expect_gradient(to_locations.download(), want.locations, false, "locations");
        expect_gradient(to_weights.download(), want.weights, false, "weights");
        continue;
      }
      // The second level ends behind S: its points have no gradient.
      const Buffer got = to_weights.download();
      for (std::int64_t i = 0; i < got.layout().size(); ++i) {
        if (i / 3 % 2 == 1) {
          ASSERT_EQ(got.get(i), 0) << i;
        } else {
          ASSERT_FALSE(std::isnan(got.get(i))) << i;
        }
      }
    }
}

TEST(GpuMsDeformAttnBackwardShapes, empty_problems_clear_the_gradients) {
  TMAOPS_NEEDS_GPU();
  for (const auto& [batch, heads, channels, queries] :
       std::vector<std::array<std::int64_t, 4>>{{0, 2, 8, 5}, {2, 0, 8, 5}, {2, 2, 0, 5}, {2, 2, 8, 0}})
    check(Case({.batch = batch, .heads = heads, .channels = channels, .queries = queries}, 1), 2, true);
}

/// pixel_lists_backward takes as many images at a time as its lists have room for: here one of three.
TEST(GpuMsDeformAttnBackwardShapes, many_samples_go_image_by_image) {
  TMAOPS_NEEDS_CHIP();
  Case c({.batch = 3, .heads = 1, .channels = 8, .queries = 70000, .levels = {{9, 13}}, .points = 64}, 21);
  Buffer grad_output = c.output();
  grad_output.fill_normal(c.random());
  const Mirror value(c.value()), locations(c.locations()), weights(c.weights()), gradient(grad_output);
  const auto run = [&](std::string_view name) {
    const Mirror to(Buffer(DType::f32, c.value().layout()));
    MsDeformAttnOptions options = c.options(name);
    options.deterministic = true;
    ms_deform_attn_backward(value.view(), c.shape().levels, locations.view(), weights.view(), gradient.view(),
                            {.value = to.view()}, options);
    return to.download();
  };
  const Buffer want = run("fixed_point_backward");
  expect_gradient(run("pixel_lists_backward"), want, false, "image by image");
}

/// Infinite and NaN values stay with the points that sample them, and so do those of the incoming gradient.
TEST(GpuMsDeformAttnBackwardShapes, non_finite_data_stays_where_it_belongs) {
  TMAOPS_NEEDS_CHIP();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Case c({.heads = 2, .channels = 32, .queries = 300, .levels = {{16, 16}, {8, 8}}, .points = 4}, 5);
  for (std::int64_t at = 3; at < c.value().layout().size(); at += 401)
    c.value().set(at, at % 2 ? kInfinity : std::numeric_limits<double>::quiet_NaN());
  check(c, 6, false, 6);

  Case clean({.heads = 2, .channels = 32, .queries = 300, .levels = {{16, 16}, {8, 8}}, .points = 4}, 7);
  Buffer grad_output = clean.output();
  grad_output.fill_normal(clean.random());
  for (const std::int64_t q : {7, 150}) grad_output.set((300 + q) * 64 + 5, kInfinity);
  const auto finite_part = [&](const MsDeformAttnOptions& options, const TensorView& value, const TensorView& locations,
                               const TensorView& weights, const TensorView& gradient, const TensorView& to) {
    ms_deform_attn_backward(value, clean.shape().levels, locations, weights, gradient, {.value = to}, options);
  };
  Buffer want(DType::f32, clean.value().layout());
  const Buffer poisoned = want;
  finite_part(clean.options("reference_backward"), clean.value(), clean.locations(), clean.weights(), grad_output,
              want);
  const Mirror value(clean.value()), locations(clean.locations()), weights(clean.weights()), gradient(grad_output),
      to(poisoned);
  const int checked = each_variant_that_takes(
      clean, value, locations, weights, gradient, to, [&](const auto& variant, const MsDeformAttnOptions& options) {
        to.reset();
        finite_part(options, value.view(), locations.view(), weights.view(), gradient.view(), to.view());
        const Buffer got = to.download();
        for (std::int64_t i = 0; i < got.layout().size(); ++i)
          ASSERT_EQ(std::isfinite(got.get(i)), std::isfinite(want.get(i))) << variant.name << ", element " << i;
      });
  EXPECT_GE(checked, 4);
}

/// A point with a location that is not finite is skipped: it gives nothing to the value's gradient, and its own
/// gradients are 0, even where its weight is NaN or infinite.
TEST(GpuMsDeformAttnBackwardShapes, skipped_points_have_zero_gradients_whatever_their_weight) {
  TMAOPS_NEEDS_CHIP();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kOdd[] = {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity};
  const std::map<std::string, int> before = backward_runs();
  std::uint64_t seed = 80;
  for (const DType value : {DType::f32, DType::f16, DType::bf16})
    for (const DType points : {DType::f32, DType::f16, DType::bf16, DType::f64})
      for (const Sampling sampling : {Sampling::bilinear, Sampling::nearest}) {
        Case c({.channels = 32,
                .queries = 65,
                .levels = {{16, 16}, {8, 8}},
                .points = 4,
                .value_dtype = value,
                .location_dtype = points,
                .weight_dtype = points,
                .sampling = sampling,
                .odd_locations = false},
               ++seed);
        std::vector<std::int64_t> skipped;
        for (std::int64_t i = 0; i < c.weights().layout().size(); i += 3) {
          c.locations().set(2 * i + i % 2, kOdd[c.random()() % 3]);
          c.weights().set(i, kOdd[c.random()() % 3]);
          skipped.push_back(i);
        }
        Buffer grad_output = c.output();
        grad_output.fill_normal(c.random());
        Gradients want(c, DType::f32, false);
        c.backward(grad_output,
                   {.value = want.value, .sampling_locations = want.locations, .attention_weights = want.weights},
                   "reference_backward");
        for (const std::int64_t i : skipped) {
          ASSERT_EQ(want.locations.get(2 * i), 0) << i;
          ASSERT_EQ(want.locations.get(2 * i + 1), 0) << i;
          ASSERT_EQ(want.weights.get(i), 0) << i;
        }
        for (const bool own : {false, true}) check(c, seed, own);  // each GPU variant with the reference
        if (testing::Test::HasFailure()) return;
      }
  for (const auto& variant : backward::variants())
    if (test::runs_here(variant)) {
      const std::string name(variant.name);
      EXPECT_GT(backward_runs()[name], before.contains(name) ? before.at(name) : 0) << name;
    }
}

TEST(GpuMsDeformAttnBackwardShapes, plan_runs_inside_a_captured_graph) {
  TMAOPS_NEEDS_CHIP();
  Case c({.heads = 8, .channels = 32, .queries = 100, .points = 4, .value_dtype = DType::f16}, 3);
  Buffer grad_output = c.output();
  grad_output.fill_normal(c.random());
  Gradients want(c, DType::f16, true);
  const Gradients poisoned = want;
  c.backward(grad_output, {.value = want.value}, "reference_backward");
  const Mirror value(c.value()), locations(c.locations()), weights(c.weights()), gradient(grad_output);
  const Mirror to(poisoned.value);
  const int checked = each_variant_that_takes(
      c, value, locations, weights, gradient, to, [&](const auto& variant, const MsDeformAttnOptions& options) {
        to.reset();
        const Plan plan = plan_ms_deform_attn_backward(value.view(), c.shape().levels, locations.view(), weights.view(),
                                                       gradient.view(), {.value = to.view()}, options);
        test::replay_captured(plan, 2);
        expect_gradient(to.download(), want.value, false, std::string(variant.name));
      });
  EXPECT_GE(checked, 4);
}

}  // namespace
}  // namespace tmaops::test
