// Arguments that are no tensors and options that are none are refused by name, whichever they are.
#include <gtest/gtest.h>

#include <vector>

#include "support/broken_views.hpp"
#include "tmaops/ms_deform_attn.hpp"

namespace tmaops::test {
namespace {

/// One image of 2 x 3 and 1 x 2 pixels, two heads of four channels, three queries with one point per level.
struct AttentionCall {
  std::vector<LevelShape> levels{{2, 3}, {1, 2}};
  std::vector<std::int64_t> starts{0, 6};
  std::vector<float> numbers = std::vector<float>(64, 0.5F);
  std::vector<std::uint8_t> padding = std::vector<std::uint8_t>(8, 0);
  std::vector<float> written = std::vector<float>(24, -1.0F);
  std::vector<float> to_value = std::vector<float>(64), to_locations = std::vector<float>(24),
                     to_weights = std::vector<float>(12);
  ConstTensorView value = view(std::as_const(numbers).data(), {1, 8, 2, 4});
  ConstTensorView locations = view(std::as_const(numbers).data(), {1, 3, 2, 2, 1, 2});
  ConstTensorView weights = view(std::as_const(numbers).data(), {1, 3, 2, 2, 1});
  TensorView output = view(written.data(), {1, 3, 8});
  ConstTensorView grad_output = view(std::as_const(numbers).data(), {1, 3, 8});
  MsDeformAttnGradients gradients{.value = view(to_value.data(), {1, 8, 2, 4}),
                                  .sampling_locations = view(to_locations.data(), {1, 3, 2, 2, 1, 2}),
                                  .attention_weights = view(to_weights.data(), {1, 3, 2, 2, 1})};
  MsDeformAttnOptions options{.level_start_index = starts};

  void fuse() {
    options.reference_points = view(std::as_const(numbers).data(), {1, 3, 2, 2});
    options.padding_mask = view(std::as_const(padding).data(), {1, 8});
    options.softmax = true;
  }
  void once() { ms_deform_attn(value, levels, locations, weights, output, options); }
  void planned() { plan_ms_deform_attn(value, levels, locations, weights, output, options).run(); }
  void backward() { ms_deform_attn_backward(value, levels, locations, weights, grad_output, gradients, options); }
  void backward_planned() {
    plan_ms_deform_attn_backward(value, levels, locations, weights, grad_output, gradients, options).run();
  }
};

TEST(MsDeformAttnViews, that_are_no_tensors_are_refused_by_name) {
  AttentionCall call;
  call.fuse();
  const auto refused = [&](const std::string& argument, auto& view) {
    expect_refused("ms_deform_attn: " + argument, view, [&] { call.once(); });
    expect_refused("ms_deform_attn: " + argument, view, [&] { call.planned(); });
  };
  refused("value", call.value);
  refused("sampling_locations", call.locations);
  refused("attention_weights", call.weights);
  refused("output", call.output);
  refused("reference_points", call.options.reference_points);
  refused("padding_mask", call.options.padding_mask);
  EXPECT_EQ(call.written, (std::vector<float>(24, -1.0F)));
  call.once();
}

TEST(MsDeformAttnViews, of_ragged_points_that_are_no_tensors_are_refused_by_name) {
  AttentionCall call;
  const std::vector<std::int32_t> points{1, 1};
  call.options.points_per_level = points;
  call.locations = view(std::as_const(call.numbers).data(), {1, 3, 2, 2, 2});
  call.weights = view(std::as_const(call.numbers).data(), {1, 3, 2, 2});
  call.once();
  expect_refused("ms_deform_attn: sampling_locations", call.locations, [&] { call.once(); });
  expect_refused("ms_deform_attn: attention_weights", call.weights, [&] { call.once(); });
}

TEST(MsDeformAttnViews, of_the_backward_pass_that_are_no_tensors_are_refused_by_name) {
  AttentionCall call;
  call.backward();
  const auto refused = [&](const std::string& argument, auto& view) {
    expect_refused("ms_deform_attn_backward: " + argument, view, [&] { call.backward(); });
    expect_refused("ms_deform_attn_backward: " + argument, view, [&] { call.backward_planned(); });
  };
  refused("value", call.value);
  refused("sampling_locations", call.locations);
  refused("attention_weights", call.weights);
  refused("grad_output", call.grad_output);
  refused("gradients.value", call.gradients.value);
  refused("gradients.sampling_locations", call.gradients.sampling_locations);
  refused("gradients.attention_weights", call.gradients.attention_weights);
  call.backward();
}

TEST(MsDeformAttnViews, options_that_are_none_are_refused_by_name) {
  AttentionCall call;
  expect_enumerator_refused("ms_deform_attn: sampling", call.options.sampling, [&] { call.once(); });
  expect_enumerator_refused("ms_deform_attn_backward: sampling", call.options.sampling, [&] { call.backward(); });
}

TEST(MsDeformAttnViews, lists_without_memory_are_refused_by_name) {
  AttentionCall call;
  const std::size_t two = 2;
  call.options.level_start_index = {static_cast<const std::int64_t*>(nullptr), two};
  expect_error(ErrorCode::null_pointer, [&] { call.once(); }, "ms_deform_attn: level_start_index");
  call.options.level_start_index = {};
  call.options.points_per_level = {static_cast<const std::int32_t*>(nullptr), two};
  expect_error(ErrorCode::null_pointer, [&] { call.backward(); }, "ms_deform_attn_backward: points_per_level");
  call.options.points_per_level = {};
  expect_error(
      ErrorCode::null_pointer,
      [&] {
        ms_deform_attn(call.value, {static_cast<const LevelShape*>(nullptr), two}, call.locations, call.weights,
                       call.output);
      },
      "ms_deform_attn: levels");
}

}  // namespace
}  // namespace tmaops::test
