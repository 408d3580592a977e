// Every operator through the C interface gives what the C++ function gives, bit by bit, and a plan the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "c_api/c_tensors.hpp"
#include "tmaops/tmaops.hpp"

namespace tmaops::c_api_test {
namespace {

template <class T>
CTensor<T>& fill(CTensor<T>& tensor, double low = -1, double high = 1) {
  static std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(low, high);
  for (T& value : tensor.values) value = static_cast<T>(uniform(random));
  return tensor;
}

template <class T>
ConstTensorView view_of(const CTensor<T>& tensor) {
  const std::span<const std::int64_t> shape(tensor.tensor.shape, static_cast<std::size_t>(tensor.tensor.ndim));
  return {tensor.values.data(), Layout::contiguous(shape)};
}
template <class T>
TensorView view_of(CTensor<T>& tensor) {
  const std::span<const std::int64_t> shape(tensor.tensor.shape, static_cast<std::size_t>(tensor.tensor.ndim));
  return {tensor.values.data(), Layout::contiguous(shape)};
}

void expect_done(int status) { ASSERT_EQ(status, tmaops_done) << tmaops_last_error()->message; }

/// Runs a plan twice over a spoiled output, which must be written like `want` each time, and destroys it.
template <class T>
void expect_plan_writes(int status, tmaops_plan* plan, CTensor<T>& output, const std::vector<T>& want) {
  expect_done(status);
  ASSERT_NE(plan, nullptr);
  EXPECT_NE(tmaops_plan_variant(plan), std::string());
  EXPECT_NE(tmaops_plan_config(plan), nullptr);
  for (int run = 0; run < 2; ++run) {
    output.values.assign(output.values.size(), T(77));
    expect_done(tmaops_plan_run(plan, nullptr));
    EXPECT_EQ(output.values, want);
  }
  tmaops_plan_destroy(plan);
}

TEST(COperators, gemm_takes_every_option) {
  CTensor<float> a({3, 4}), b({4, 5}), c({3, 5}), bias({3}), d({3, 5}), want({3, 5});
  fill(a), fill(b), fill(c), fill(bias);
  GemmOptions options;
  options.alpha = 2;
  options.beta = -0.5F;
  options.c = view_of(c);
  options.bias = view_of(bias);
  options.bias_axis = BiasAxis::row;
  options.activation = Activation::gelu;
  options.variant = "blocked";
  gemm(view_of(a), view_of(b), view_of(want), options);

  tmaops_gemm_options given = TMAOPS_GEMM_OPTIONS;
  given.alpha = 2;
  given.beta = -0.5F;
  given.c = c;
  given.bias = bias;
  given.bias_axis = tmaops_bias_axis_row;
  given.activation = tmaops_activation_gelu;
  given.variant = "blocked";
  expect_done(tmaops_gemm(a, b, d, &given, nullptr));
  EXPECT_EQ(d.values, want.values);
  tmaops_plan* plan = nullptr;
  const int status = tmaops_plan_gemm(a, b, d, &given, &plan);
  expect_plan_writes(status, plan, d, want.values);
}

TEST(COperators, a_plan_is_bound_to_other_memory) {
  CTensor<float> a({3, 4}), b({4, 5}), other({3, 4}), d({3, 5}), want({3, 5});
  fill(a), fill(b), fill(other);
  gemm(view_of(other), view_of(b), view_of(want));
  tmaops_plan* plan = nullptr;
  expect_done(tmaops_plan_gemm(a, b, d, nullptr, &plan));
  std::vector<float> out(15);
  const void* const data[] = {other.values.data(), b.values.data(), out.data()};
  expect_done(tmaops_plan_rebind(plan, data, 3));
  expect_done(tmaops_plan_run(plan, nullptr));
  EXPECT_EQ(out, want.values);
  EXPECT_EQ(tmaops_plan_rebind(plan, data, 2), tmaops_error_bad_parameter);
  EXPECT_EQ(tmaops_last_error()->needed, std::string("3: a, b, d"));
  EXPECT_EQ(tmaops_plan_rebind(plan, data, -1), tmaops_error_bad_parameter);
  EXPECT_EQ(tmaops_plan_rebind(plan, nullptr, 3), tmaops_error_null_pointer);
  EXPECT_EQ(tmaops_plan_rebind(nullptr, data, 3), tmaops_error_null_pointer);
  const void* const missing[] = {nullptr, b.values.data(), out.data()};
  EXPECT_EQ(tmaops_plan_rebind(plan, missing, 3), tmaops_error_null_pointer);
  EXPECT_EQ(tmaops_last_error()->where, std::string("gemm: a"));
  tmaops_plan_destroy(plan);
}

TEST(COperators, calls_on_the_host_need_no_device_memory) {
  CTensor<float> values({1, 3, 1}), output({1, 2, 1}), gradient({1, 3, 1});
  CTensor<double> source({3}), target({2});
  source.values = {0, 1, 2};
  size_t bytes = 1;
  expect_done(tmaops_resample_workspace(values, source, target, nullptr, output, nullptr, &bytes));
  EXPECT_EQ(bytes, 0);
  bytes = 1;
  expect_done(tmaops_resample_backward_workspace(source, target, nullptr, output, gradient, nullptr, &bytes));
  EXPECT_EQ(bytes, 0);
  EXPECT_EQ(tmaops_resample_workspace(values, source, target, nullptr, output, nullptr, nullptr),
            tmaops_error_null_pointer);

  CTensor<float> a({2, 3}), b({3, 2}), d({2, 2});
  bytes = 1;
  expect_done(tmaops_gemm_workspace(a, b, d, nullptr, &bytes));
  EXPECT_EQ(bytes, 0);

  CTensor<float> value({1, 4, 1, 2}), locations({1, 3, 1, 1, 1, 2}), weights({1, 3, 1, 1, 1}), rows({1, 3, 2}),
      to({1, 4, 1, 2});
  const tmaops_level_shape level{2, 2};
  bytes = 1;
  expect_done(tmaops_ms_deform_attn_workspace(value, &level, 1, locations, weights, rows, nullptr, &bytes));
  EXPECT_EQ(bytes, 0);
  bytes = 1;
  const tmaops_ms_deform_attn_gradients gradients{to, nullptr, nullptr};
  expect_done(tmaops_ms_deform_attn_backward_workspace(value, &level, 1, locations, weights, rows, &gradients, nullptr,
                                                       &bytes));
  EXPECT_EQ(bytes, 0);
}

TEST(COperators, half_an_allocator_is_refused) {
  CTensor<float> values({1, 3, 1}), output({1, 2, 1});
  CTensor<double> source({3}), target({2});
  source.values = {0, 1, 2};
  tmaops_allocator half{};
  half.allocate = [](void*, size_t, tmaops_stream) -> void* { return nullptr; };
  tmaops_resample_options options = TMAOPS_RESAMPLE_OPTIONS;
  options.allocator = &half;
  EXPECT_EQ(tmaops_resample(values, source, target, nullptr, output, &options, nullptr), tmaops_error_bad_parameter);
  EXPECT_EQ(tmaops_last_error()->got, std::string("allocate without release"));
}

TEST(COperators, a_plan_says_its_variant_and_works_on_what_lies_in_its_tensors) {
  CTensor<float> a({1, 2}, {1, 2}), b({2, 1}, {3, 4}), d({1, 1});
  tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
  options.variant = "reference";
  tmaops_plan* plan = nullptr;
  expect_done(tmaops_plan_gemm(a, b, d, &options, &plan));
  EXPECT_STREQ(tmaops_plan_variant(plan), "reference");
  expect_done(tmaops_plan_run(plan, nullptr));
  EXPECT_EQ(d.values[0], 11);
  a.values[0] = 10;
  expect_done(tmaops_plan_run(plan, nullptr));
  EXPECT_EQ(d.values[0], 38);
  tmaops_plan_destroy(plan);
}

TEST(COperators, a_plan_that_cannot_be_made_is_null) {
  CTensor<float> a({1, 2}, {1, 2}), d({1, 1});
  tmaops_gemm_options options = TMAOPS_GEMM_OPTIONS;
  int nothing = 0;
  auto* plan = reinterpret_cast<tmaops_plan*>(&nothing);
  expect_failed(tmaops_plan_gemm(a, a, d, &options, &plan), tmaops_error_shape_mismatch, "gemm: b");
  EXPECT_EQ(plan, nullptr);
  options.variant = "no such";
  EXPECT_EQ(tmaops_gemm(d, d, a, &options, nullptr), tmaops_error_shape_mismatch);
  CTensor<float> e({1, 1});
  EXPECT_EQ(tmaops_plan_gemm(d, d, e, &options, &plan), tmaops_error_unknown_variant);
  expect_failed(tmaops_plan_gemm(d, d, e, nullptr, nullptr), tmaops_error_null_pointer, "gemm: plan");
  expect_failed(tmaops_plan_run(nullptr, nullptr), tmaops_error_null_pointer, "tmaops_plan_run: plan");
  EXPECT_EQ(tmaops_plan_variant(nullptr), nullptr);
  EXPECT_EQ(tmaops_plan_config(nullptr), nullptr);
  tmaops_plan_destroy(nullptr);
}

/// An attention of two levels, (2, 3) and (1, 2), with 4 and 2 points.
struct Attention {
  std::vector<tmaops_level_shape> levels{{2, 3}, {1, 2}};
  std::vector<LevelShape> level_shapes{{2, 3}, {1, 2}};
  std::vector<std::int64_t> level_start_index{2, 0};
  std::vector<std::int32_t> points{4, 2};
  CTensor<float> value{{2, 8, 2, 4}}, locations{{2, 3, 2, 6, 2}}, weights{{2, 3, 2, 6}}, output{{2, 3, 8}},
      want{{2, 3, 8}};
  tmaops_ms_deform_attn_options given = TMAOPS_MS_DEFORM_ATTN_OPTIONS;
  MsDeformAttnOptions options;

  Attention() {
    fill(value), fill(locations, 0, 1), fill(weights, 0, 1);
    given.level_start_index = level_start_index.data();
    given.points_per_level = points.data();
    options.level_start_index = level_start_index;
    options.points_per_level = points;
  }
  void expect_same() {
    ms_deform_attn(view_of(value), level_shapes, view_of(locations), view_of(weights), view_of(want), options);
    expect_done(tmaops_ms_deform_attn(value, levels.data(), 2, locations, weights, output, &given, nullptr));
    EXPECT_EQ(output.values, want.values);
    tmaops_plan* plan = nullptr;
    const int status = tmaops_plan_ms_deform_attn(value, levels.data(), 2, locations, weights, output, &given, &plan);
    const auto kept_levels = std::exchange(levels, {});  // a plan keeps what it needs of the lists
    const auto kept_points = std::exchange(points, {});
    expect_plan_writes(status, plan, output, want.values);
  }
};

TEST(COperators, ms_deform_attn_takes_ragged_points_and_level_starts) { Attention().expect_same(); }

TEST(COperators, ms_deform_attn_takes_nearest_sampling_and_variants) {
  Attention call;
  call.given.sampling = tmaops_sampling_nearest;
  call.given.variant = "reference";
  call.options.sampling = Sampling::nearest;
  call.options.variant = "reference";
  call.expect_same();
}

TEST(COperators, ms_deform_attn_takes_the_fused_inputs) {
  Attention call;
  CTensor<float> references({2, 3, 2, 4});
  CTensor<std::uint8_t> mask({2, 8});
  fill(references, 0, 1);
  mask.values[3] = mask.values[9] = 1;
  mask.tensor.dtype = {tmaops_dtype_bool, 8, 1};
  call.given.softmax = 1;
  call.given.reference_points = references;
  call.given.offset_scale = 0.25;
  call.given.padding_mask = mask;
  call.options.softmax = true;
  call.options.reference_points = view_of(references);
  call.options.offset_scale = 0.25;
  call.options.padding_mask = view_of(mask);
  call.expect_same();
}

TEST(COperators, ms_deform_attn_takes_levels_as_tensors) {
  Attention call;
  ms_deform_attn(view_of(call.value), call.level_shapes, view_of(call.locations), view_of(call.weights),
                 view_of(call.want), call.options);
  CTensor<std::int64_t> shapes({2, 2}, {2, 3, 1, 2}), starts({2}, {2, 0});
  call.given.level_start_index = nullptr;
  call.given.spatial_shapes = shapes;
  call.given.level_starts = starts;
  expect_done(
      tmaops_ms_deform_attn(call.value, nullptr, 0, call.locations, call.weights, call.output, &call.given, nullptr));
  EXPECT_EQ(call.output.values, call.want.values);
  expect_failed(tmaops_ms_deform_attn(call.value, call.levels.data(), 2, call.locations, call.weights, call.output,
                                      &call.given, nullptr),
                tmaops_error_bad_parameter, "ms_deform_attn: spatial_shapes");
}

TEST(COperators, ms_deform_attn_takes_bordered_values) {
  CTensor<float> value({1, 12, 1, 1}), locations({1, 1, 1, 1, 1, 2}, {0.5F, 0.5F}), weights({1, 1, 1, 1, 1}, {1});
  CTensor<float> output({1, 1, 1});
  value.values[5] = 3;
  value.values[6] = 5;
  const tmaops_level_shape level{1, 2};
  tmaops_ms_deform_attn_options options = TMAOPS_MS_DEFORM_ATTN_OPTIONS;
  options.bordered_value = 1;
  expect_done(tmaops_ms_deform_attn(value, &level, 1, locations, weights, output, &options, nullptr));
  EXPECT_EQ(output.values[0], 4);
}

TEST(COperators, ms_deform_attn_refuses_levels_by_name) {
  Attention call;
  const auto run = [&](const tmaops_level_shape* levels, std::int64_t count) {
    return tmaops_ms_deform_attn(call.value, levels, count, call.locations, call.weights, call.output, &call.given,
                                 nullptr);
  };
  expect_failed(run(nullptr, 2), tmaops_error_null_pointer, "ms_deform_attn: levels");
  expect_failed(run(call.levels.data(), -1), tmaops_error_bad_parameter, "ms_deform_attn: levels");
  EXPECT_EQ(run(call.levels.data(), 0), tmaops_error_empty_level);
}

TEST(COperators, ms_deform_attn_backward_writes_the_gradients_that_are_given) {
  Attention call;
  CTensor<float> grad_output({2, 3, 8}), grad_value({2, 8, 2, 4}), grad_locations({2, 3, 2, 6, 2}),
      grad_weights({2, 3, 2, 6});
  CTensor<float> want_value({2, 8, 2, 4}), want_weights({2, 3, 2, 6});
  fill(grad_output);
  ms_deform_attn_backward(view_of(call.value), call.level_shapes, view_of(call.locations), view_of(call.weights),
                          view_of(grad_output),
                          {.value = view_of(want_value), .attention_weights = view_of(want_weights)}, call.options);
  call.given.deterministic = 1;
  const tmaops_ms_deform_attn_gradients gradients{grad_value, nullptr, grad_weights};
  expect_done(tmaops_ms_deform_attn_backward(call.value, call.levels.data(), 2, call.locations, call.weights,
                                             grad_output, &gradients, &call.given, nullptr));
  EXPECT_EQ(grad_value.values, want_value.values);
  EXPECT_EQ(grad_weights.values, want_weights.values);
  tmaops_plan* plan = nullptr;
  const int status = tmaops_plan_ms_deform_attn_backward(call.value, call.levels.data(), 2, call.locations,
                                                         call.weights, grad_output, &gradients, &call.given, &plan);
  expect_plan_writes(status, plan, grad_value, want_value.values);
  expect_failed(tmaops_ms_deform_attn_backward(call.value, call.levels.data(), 2, call.locations, call.weights,
                                               grad_output, nullptr, &call.given, nullptr),
                tmaops_error_null_pointer, "ms_deform_attn_backward: gradients");
  const tmaops_ms_deform_attn_gradients wrong{nullptr, grad_weights, nullptr};
  expect_failed(tmaops_ms_deform_attn_backward(call.value, call.levels.data(), 2, call.locations, call.weights,
                                               grad_output, &wrong, &call.given, nullptr),
                tmaops_error_shape_mismatch, "ms_deform_attn_backward: gradients.sampling_locations");
}

/// Two packed trajectories of 3 and 2 samples, with targets of their own.
struct Packed {
  CTensor<float> values{{5, 6}}, output{{4, 6}}, want{{4, 6}};
  CTensor<std::int64_t> source_times{{5}, {0, 10, 40, 0, 100}};
  CTensor<std::int64_t> target_times{{4}, {5, 20, 1, 99}};
  CTensor<std::uint8_t> valid{{4}};
  std::vector<std::int64_t> source_offsets{0, 3, 5}, target_offsets{0, 2, 4};
  std::vector<tmaops_channel_group> groups{
      {0, 1, tmaops_interpolation_previous}, {1, 1, tmaops_interpolation_cubic}, {2, 4, tmaops_interpolation_slerp}};
  tmaops_resample_options given = TMAOPS_RESAMPLE_OPTIONS;

  Packed() {
    fill(values, 0.1, 1);
    given.channel_groups = groups.data();
    given.channel_group_count = 3;
    given.max_gap = {0, 50};
    given.source_offsets = source_offsets.data();
    given.source_offset_count = 3;
    given.target_offsets = target_offsets.data();
    given.target_offset_count = 3;
    given.valid = valid;
  }
};

TEST(COperators, resample_takes_packed_rows_groups_gaps_and_a_mask) {
  Packed call;
  const ChannelGroup groups[] = {
      {0, 1, Interpolation::previous}, {1, 1, Interpolation::cubic}, {2, 4, Interpolation::slerp}};
  CTensor<std::uint8_t> valid({4});
  ResampleOptions options;
  options.channel_groups = groups;
  options.max_gap = std::int64_t{50};
  options.source_offsets = call.source_offsets;
  options.target_offsets = call.target_offsets;
  options.valid = view_of(valid);
  resample(view_of(call.values), view_of(call.source_times), view_of(call.target_times), view_of(call.want), options);
  const auto same = [&] {
    EXPECT_EQ(call.valid.values, valid.values);
    for (std::size_t i = 0; i < call.want.values.size(); ++i)
      EXPECT_TRUE(call.output.values[i] == call.want.values[i] ||
                  (std::isnan(call.output.values[i]) && std::isnan(call.want.values[i])))
          << i;
  };
  expect_done(
      tmaops_resample(call.values, call.source_times, call.target_times, nullptr, call.output, &call.given, nullptr));
  same();
  EXPECT_EQ(call.valid.values, (std::vector<std::uint8_t>{1, 1, 0, 0}));
  tmaops_plan* plan = nullptr;
  expect_done(tmaops_plan_resample(call.values, call.source_times, call.target_times, nullptr, call.output, &call.given,
                                   &plan));
  call.groups.clear();
  call.source_offsets.assign(3, -7);  // a plan keeps offsets and groups of its own
  call.output.values.assign(24, 0.0F);
  expect_done(tmaops_plan_run(plan, nullptr));
  same();
  tmaops_plan_destroy(plan);
}

TEST(COperators, resample_takes_offsets_as_tensors) {
  Packed lists, call;
  std::ranges::copy(lists.values.values, call.values.values.begin());
  expect_done(tmaops_resample(lists.values, lists.source_times, lists.target_times, nullptr, lists.output, &lists.given,
                              nullptr));
  CTensor<std::int64_t> source({3}, {0, 3, 5}), target({3}, {0, 2, 4});
  call.given.source_offsets = call.given.target_offsets = nullptr;
  call.given.source_offset_count = call.given.target_offset_count = 0;
  call.given.source_offset_tensor = source;
  call.given.target_offset_tensor = target;
  const auto run = [&] {
    return tmaops_resample(call.values, call.source_times, call.target_times, nullptr, call.output, &call.given,
                           nullptr);
  };
  expect_done(run());
  EXPECT_EQ(call.valid.values, lists.valid.values);
  EXPECT_EQ(std::memcmp(call.output.values.data(), lists.output.values.data(), 24 * sizeof(float)), 0);
  target.values[2] = 3;
  expect_failed(run(), tmaops_error_bad_offsets, "resample: target_offset_tensor");
  call.given.source_offsets = call.source_offsets.data();
  call.given.source_offset_count = 3;
  expect_failed(run(), tmaops_error_bad_parameter, "resample: source_offset_tensor");

  CTensor<double> gradient({4, 6}, std::vector<double>(24, 1)), want({5, 6}), got({5, 6});
  tmaops_resample_options options = TMAOPS_RESAMPLE_OPTIONS;
  options.source_offsets = lists.source_offsets.data();
  options.target_offsets = lists.target_offsets.data();
  options.source_offset_count = options.target_offset_count = 3;
  expect_done(
      tmaops_resample_backward(call.source_times, call.target_times, nullptr, gradient, want, &options, nullptr));
  options = TMAOPS_RESAMPLE_OPTIONS;
  options.source_offset_tensor = source;
  options.target_offset_tensor = target;
  target.values[2] = 4;
  expect_done(
      tmaops_resample_backward(call.source_times, call.target_times, nullptr, gradient, got, &options, nullptr));
  EXPECT_EQ(got.values, want.values);
}

TEST(COperators, resample_takes_a_grid_in_the_unit_of_the_times) {
  CTensor<double> values({1, 2, 1}, {0, 10}), seconds({2}, {0, 10}), output({1, 3, 1});
  CTensor<std::int64_t> nanoseconds({2}, {0, 10});
  const tmaops_uniform_grid in_seconds{{0, 0}, {5, 0}, 3};
  const tmaops_uniform_grid in_nanoseconds{{0, 0}, {0, 5}, 3};
  const std::vector<double> want{0, 5, 10};
  expect_done(tmaops_resample(values, seconds, nullptr, &in_seconds, output, nullptr, nullptr));
  EXPECT_EQ(output.values, want);
  output.values.assign(3, -1);
  expect_done(tmaops_resample(values, nanoseconds, nullptr, &in_nanoseconds, output, nullptr, nullptr));
  EXPECT_EQ(output.values, want);
  tmaops_plan* plan = nullptr;
  const int status = tmaops_plan_resample(values, seconds, nullptr, &in_seconds, output, nullptr, &plan);
  expect_plan_writes(status, plan, output, want);
  for (const auto& [times, grid] : {std::pair<const tmaops_tensor*, tmaops_uniform_grid>(seconds, in_nanoseconds),
                                    std::pair<const tmaops_tensor*, tmaops_uniform_grid>(nanoseconds, in_seconds)})
    expect_failed(tmaops_resample(values, times, nullptr, &grid, output, nullptr, nullptr), tmaops_error_bad_parameter,
                  "resample: grid.period");
}

TEST(COperators, resample_takes_target_times_or_a_grid) {
  CTensor<double> values({1, 2, 1}, {0, 10}), times({2}, {0, 10}), output({1, 2, 1});
  const tmaops_uniform_grid grid{{0, 0}, {5, 0}, 2};
  expect_failed(tmaops_resample(values, times, nullptr, nullptr, output, nullptr, nullptr), tmaops_error_null_pointer,
                "resample: target_times");
  expect_failed(tmaops_resample(values, times, times, &grid, output, nullptr, nullptr), tmaops_error_bad_parameter,
                "resample: target_times");
}

TEST(COperators, a_plan_of_resample_reports_bad_times_when_it_runs) {
  CTensor<double> values({1, 2, 1}, {0, 10}), times({2}, {0, 10}), targets({1}, {11}), output({1, 1, 1});
  tmaops_resample_options options = TMAOPS_RESAMPLE_OPTIONS;
  options.outside = tmaops_outside_error;
  tmaops_plan* plan = nullptr;
  expect_done(tmaops_plan_resample(values, times, targets, nullptr, output, &options, &plan));
  EXPECT_EQ(tmaops_plan_run(plan, nullptr), tmaops_error_target_outside);
  targets.values[0] = 9;
  expect_done(tmaops_plan_run(plan, nullptr));
  EXPECT_EQ(output.values[0], 9);
  tmaops_plan_destroy(plan);
}

TEST(COperators, resample_backward_gives_the_weights_of_the_samples) {
  CTensor<double> times({2}, {0, 10}), targets({1}, {2.5}), grad_output({1, 1, 1}, {1}), grad_values({1, 2, 1});
  const tmaops_uniform_grid grid{{2.5, 0}, {1, 0}, 1};
  const std::vector<double> want{0.75, 0.25};
  expect_done(tmaops_resample_backward(times, targets, nullptr, grad_output, grad_values, nullptr, nullptr));
  EXPECT_EQ(grad_values.values, want);
  tmaops_plan* plan = nullptr;
  const int status = tmaops_plan_resample_backward(times, nullptr, &grid, grad_output, grad_values, nullptr, &plan);
  expect_plan_writes(status, plan, grad_values, want);
  tmaops_resample_options cubic = TMAOPS_RESAMPLE_OPTIONS;
  cubic.interpolation = tmaops_interpolation_cubic;
  EXPECT_EQ(tmaops_resample_backward(times, targets, nullptr, grad_output, grad_values, &cubic, nullptr),
            tmaops_error_bad_parameter);
}

TEST(COperators, resample_violations_counts_by_the_constants) {
  CTensor<double> times({4}, {0, 2, 1, 1}), targets({3}, {0.5, NAN, 9});
  CTensor<std::int64_t> counts({tmaops_violation_count});
  tmaops_resample_options options = TMAOPS_RESAMPLE_OPTIONS;
  options.outside = tmaops_outside_error;
  expect_done(tmaops_resample_violations(times, targets, nullptr, counts, &options, nullptr));
  EXPECT_EQ(counts.values[tmaops_violation_source_not_finite], 0);
  EXPECT_EQ(counts.values[tmaops_violation_source_not_sorted], 1);
  EXPECT_EQ(counts.values[tmaops_violation_source_duplicate], 1);
  EXPECT_EQ(counts.values[tmaops_violation_target_not_finite], 1);
  EXPECT_EQ(counts.values[tmaops_violation_target_outside], 1);
  EXPECT_EQ(counts.values[tmaops_violation_empty_trajectory], 0);
  EXPECT_EQ(counts.values[tmaops_violation_bad_offsets], 0);
  options.duplicates = tmaops_duplicates_last;
  const tmaops_uniform_grid grid{{0, 0}, {1, 0}, 4};
  expect_done(tmaops_resample_violations(times, nullptr, &grid, counts, &options, nullptr));
  EXPECT_EQ(counts.values[tmaops_violation_source_duplicate], 0);
}

TEST(COperators, a_gpu_that_is_not_there_is_an_error) {
  CTensor<float> a({2, 2});
  CTensor<float> d({2, 2});
  a.tensor.device = d.tensor.device = {tmaops_device_cuda, 99};
  const int status = tmaops_gemm(a, a, d, nullptr, nullptr);
  EXPECT_NE(status, tmaops_done);
  EXPECT_NE(status, tmaops_error_internal) << tmaops_last_error()->message;
}

static_assert(tmaops_activation_none == static_cast<int>(Activation::none));
static_assert(tmaops_activation_relu == static_cast<int>(Activation::relu));
static_assert(tmaops_activation_gelu == static_cast<int>(Activation::gelu));
static_assert(tmaops_activation_silu == static_cast<int>(Activation::silu));
static_assert(tmaops_bias_axis_column == static_cast<int>(BiasAxis::column));
static_assert(tmaops_bias_axis_row == static_cast<int>(BiasAxis::row));
static_assert(tmaops_sampling_bilinear == static_cast<int>(Sampling::bilinear));
static_assert(tmaops_sampling_nearest == static_cast<int>(Sampling::nearest));
static_assert(tmaops_interpolation_linear == static_cast<int>(Interpolation::linear));
static_assert(tmaops_interpolation_previous == static_cast<int>(Interpolation::previous));
static_assert(tmaops_interpolation_next == static_cast<int>(Interpolation::next));
static_assert(tmaops_interpolation_nearest == static_cast<int>(Interpolation::nearest));
static_assert(tmaops_interpolation_cubic == static_cast<int>(Interpolation::cubic));
static_assert(tmaops_interpolation_slerp == static_cast<int>(Interpolation::slerp));
static_assert(tmaops_interpolation_mean == static_cast<int>(Interpolation::mean));
static_assert(tmaops_interpolation_sum == static_cast<int>(Interpolation::sum));
static_assert(tmaops_interpolation_min == static_cast<int>(Interpolation::min));
static_assert(tmaops_interpolation_max == static_cast<int>(Interpolation::max));
static_assert(tmaops_interpolation_any == static_cast<int>(Interpolation::any));
static_assert(tmaops_interpolation_count == static_cast<int>(Interpolation::count));
static_assert(tmaops_interpolation_lowpass == static_cast<int>(Interpolation::lowpass));
static_assert(tmaops_outside_hold == static_cast<int>(Outside::hold));
static_assert(tmaops_outside_nan == static_cast<int>(Outside::nan));
static_assert(tmaops_outside_extrapolate == static_cast<int>(Outside::extrapolate));
static_assert(tmaops_outside_error == static_cast<int>(Outside::error));
static_assert(tmaops_duplicates_error == static_cast<int>(Duplicates::error));
static_assert(tmaops_duplicates_last == static_cast<int>(Duplicates::last));
static_assert(tmaops_violation_count == kResampleViolations);
static_assert(tmaops_violation_target_outside == static_cast<int>(ResampleViolation::target_outside));

}  // namespace
}  // namespace tmaops::c_api_test
