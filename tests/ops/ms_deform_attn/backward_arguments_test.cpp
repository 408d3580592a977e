// Bad arguments of the backward operator, what it adds to the checks of the forward one: a named error, nothing
// written, and the next correct call is right.
#include <gtest/gtest.h>

#include <array>

#include "ops/ms_deform_attn/case.hpp"
#include "support/expect_error.hpp"

namespace tmaops::test {
namespace {

/// A good call whose arguments a test spoils one by one.
class BackwardArguments : public testing::Test {
 protected:
  Case good{{.batch = 2, .heads = 2, .channels = 4, .queries = 3, .levels = {{4, 4}, {2, 3}}, .points = 2}, 1};
  Buffer grad_output_buffer = good.output();
  ConstTensorView grad_output = grad_output_buffer;
  Buffer to_value{DType::f32, good.value().layout()};
  Buffer to_locations{DType::f32, good.locations().layout()};
  Buffer to_weights{DType::f32, good.weights().layout()};
  MsDeformAttnGradients gradients{
      .value = to_value, .sampling_locations = to_locations, .attention_weights = to_weights};

  void SetUp() override { grad_output_buffer.fill_normal(good.random()); }

  template <class... Text>
  void expect(ErrorCode code, const Text&... pieces) {
    const auto before = std::array{to_value.bits(), to_locations.bits(), to_weights.bits()};
    expect_error(
        code,
        [&] {
          ms_deform_attn_backward(good.value(), good.shape().levels, good.locations(), good.weights(), grad_output,
                                  gradients);
        },
        "ms_deform_attn_backward", pieces...);
    EXPECT_EQ((std::array{to_value.bits(), to_locations.bits(), to_weights.bits()}), before);
    EXPECT_NO_THROW(good.backward(grad_output_buffer, {.value = to_value}, ""));
    EXPECT_FALSE(std::isnan(to_value.get(0)));
  }
};

TEST_F(BackwardArguments, shape_of_grad_output) {
  grad_output.shape[2] = 4;
  expect(ErrorCode::shape_mismatch, "grad_output", "(2, 3, 4)");
}
TEST_F(BackwardArguments, dtype_of_grad_output) {
  grad_output.dtype = DType::f16;
  expect(ErrorCode::unsupported_dtype, "grad_output", "f16");
}
TEST_F(BackwardArguments, null_grad_output) {
  grad_output.data = nullptr;
  expect(ErrorCode::null_pointer, "grad_output");
}
TEST_F(BackwardArguments, shape_of_grad_value) {
  gradients.value.shape[1] = 21;
  expect(ErrorCode::shape_mismatch, "gradients.value", "(2, 22, 2, 4), as value");
}
TEST_F(BackwardArguments, shape_of_grad_locations) {
  gradients.sampling_locations.rank = 5;
  expect(ErrorCode::shape_mismatch, "gradients.sampling_locations");
}
TEST_F(BackwardArguments, shape_of_grad_weights) {
  gradients.attention_weights.shape[4] = 1;
  expect(ErrorCode::shape_mismatch, "gradients.attention_weights");
}
TEST_F(BackwardArguments, dtypes_of_gradients) {
  gradients.value.dtype = DType::f64;
  expect(ErrorCode::unsupported_dtype, "gradients.value", "f64");
}
TEST_F(BackwardArguments, gradients_must_not_overlap_anything) {
  gradients.value.data = good.value().data();
  expect(ErrorCode::overlap, "gradients.value", "value");
  gradients.value = to_value;
  gradients.attention_weights.data = to_locations.data();
  expect(ErrorCode::overlap, "gradients.attention_weights", "gradients.sampling_locations");
}
TEST_F(BackwardArguments, gradient_with_overlapping_elements) {
  gradients.value.strides[0] = 0;
  expect(ErrorCode::bad_strides, "gradients.value");
}
TEST_F(BackwardArguments, device_of_a_gradient) {
  gradients.value.device = {DeviceType::cuda, 0};
  expect(ErrorCode::device_mismatch, "gradients.value");
}
TEST_F(BackwardArguments, inputs_are_checked_as_forward) {
  expect_error(
      ErrorCode::level_shapes_mismatch,
      [&] {
        ms_deform_attn_backward(good.value(), std::array{LevelShape{4, 4}}, good.locations(), good.weights(),
                                grad_output, gradients);
      },
      "ms_deform_attn_backward: levels");
}

}  // namespace
}  // namespace tmaops::test
