// Bad arguments of the forward operator: a named error, nothing written, and the next correct call is right.
#include <gtest/gtest.h>

#include <functional>

#include "ops/ms_deform_attn/case.hpp"
#include "support/expect_error.hpp"

namespace tmaops::test {
namespace {

/// A good call whose arguments a test spoils one by one.
class Arguments : public testing::Test {
 protected:
  Case good{{.batch = 2, .heads = 2, .channels = 4, .queries = 3, .levels = {{4, 4}, {2, 3}}, .points = 2}, 1};
  ConstTensorView value = good.value();
  ConstTensorView locations = good.locations();
  ConstTensorView weights = good.weights();
  Buffer out = good.output();
  TensorView output = out;
  std::vector<LevelShape> levels = good.shape().levels;
  std::vector<std::int64_t> starts;
  std::vector<std::int32_t> ragged;
  MsDeformAttnOptions options;

  void call() {
    options.level_start_index = starts;
    options.points_per_level = ragged;
    ms_deform_attn(value, levels, locations, weights, output, options);
  }
  /// The error, an untouched output, and a right result of the good call.
  template <class... Text>
  void expect(ErrorCode code, const Text&... pieces) {
    const std::vector<unsigned char> before = out.bits();
    expect_error(code, [&] { call(); }, "ms_deform_attn", pieces...);
    EXPECT_EQ(out.bits(), before) << "the output was written";
    Buffer next = good.output();
    good.forward(next, "");
    expect_forward(next, good.reference(), "next call");
  }
};

TEST_F(Arguments, rank_of_each_tensor) {
  value = view(static_cast<const float*>(value.data), {2, 22, 8});
  expect(ErrorCode::shape_mismatch, "value", "(N, S, M, D)");
}
TEST_F(Arguments, rank_of_locations) {
  locations = view(static_cast<const float*>(locations.data), {2, 3, 2, 4, 2});
  expect(ErrorCode::shape_mismatch, "sampling_locations", "(N, Lq, M, L, P, 2)");
}
TEST_F(Arguments, rank_of_weights) {
  weights = view(static_cast<const float*>(weights.data), {2, 3, 2, 4});
  expect(ErrorCode::shape_mismatch, "attention_weights");
}
TEST_F(Arguments, rank_of_output) {
  output = view(static_cast<float*>(output.data), {2, 3, 2, 4});
  expect(ErrorCode::shape_mismatch, "output", "(N, Lq, M * D)");
}
TEST_F(Arguments, batch_of_locations) {
  locations.shape[0] = 1;
  expect(ErrorCode::shape_mismatch, "sampling_locations", "(1, 3, 2, 2, 2, 2)");
}
TEST_F(Arguments, heads_of_locations) {
  locations.shape[2] = 1;
  expect(ErrorCode::shape_mismatch, "sampling_locations");
}
TEST_F(Arguments, levels_of_locations) {
  locations.shape[3] = 1;
  expect(ErrorCode::shape_mismatch, "sampling_locations");
}
TEST_F(Arguments, coordinates_of_locations) {
  locations.shape[5] = 1;
  expect(ErrorCode::shape_mismatch, "sampling_locations");
}
TEST_F(Arguments, queries_of_weights) {
  weights.shape[1] = 2;
  expect(ErrorCode::shape_mismatch, "attention_weights", "(2, 2, 2, 2, 2)");
}
TEST_F(Arguments, points_of_weights) {
  weights.shape[4] = 1;
  expect(ErrorCode::shape_mismatch, "attention_weights");
}
TEST_F(Arguments, shape_of_output) {
  output.shape[2] = 7;
  expect(ErrorCode::shape_mismatch, "output", "(2, 3, 7)");
}

TEST_F(Arguments, level_areas_must_add_up_to_s) {
  levels[1] = {2, 2};
  expect(ErrorCode::level_shapes_mismatch, "4x4 + 2x2 = 20", "S = 22");
}
TEST_F(Arguments, level_areas_that_overflow) {
  levels[1] = {1LL << 40, 1LL << 40};
  expect(ErrorCode::size_overflow, "levels[1]");
}
TEST_F(Arguments, level_without_pixels) {
  levels[1] = {0, 3};
  expect(ErrorCode::empty_level, "levels[1]", "0x3");
  levels[1] = {2, -3};
  expect(ErrorCode::empty_level, "levels[1]");
}
TEST_F(Arguments, no_levels) {
  levels.clear();
  expect(ErrorCode::empty_level, "levels");
}
TEST_F(Arguments, no_points) {
  locations.shape[4] = 0;
  expect(ErrorCode::empty_level, "sampling_locations");
}

TEST_F(Arguments, level_start_count) {
  starts = {0};
  expect(ErrorCode::bad_level_start, "level_start_index", "1 entries");
}
TEST_F(Arguments, level_start_negative) {
  starts = {-1, 16};
  expect(ErrorCode::bad_level_start, "level_start_index[0]", "-1");
}
TEST_F(Arguments, level_start_past_s) {
  starts = {0, 17};
  expect(ErrorCode::bad_level_start, "level_start_index[1]", "17", "S = 22");
  starts = {0, std::numeric_limits<std::int64_t>::max()};
  expect(ErrorCode::bad_level_start, "level_start_index[1]");
}
TEST_F(Arguments, level_start_overlap) {
  starts = {0, 15};
  expect(ErrorCode::bad_level_start, "level_start_index[1]", "ends at 16");
}

TEST_F(Arguments, ragged_points_must_add_up) {
  locations = view(static_cast<const float*>(locations.data), {2, 3, 2, 4, 2});
  weights = view(static_cast<const float*>(weights.data), {2, 3, 2, 4});
  ragged = {1, 2};
  expect(ErrorCode::points_mismatch, "points_per_level", "a sum of 3", "4");
  ragged = {4};
  expect(ErrorCode::points_mismatch, "points_per_level", "1 entries");
  ragged = {5, -1};
  expect(ErrorCode::points_mismatch, "points_per_level[1]", "-1");
  ragged = {3, 1};
  EXPECT_NO_THROW(call());
}
TEST_F(Arguments, ragged_points_all_zero) {
  locations = view(static_cast<const float*>(locations.data), {2, 3, 2, 0, 2});
  weights = view(static_cast<const float*>(weights.data), {2, 3, 2, 0});
  ragged = {0, 0};
  expect(ErrorCode::empty_level, "no sampling points");
}

TEST_F(Arguments, dtypes_outside_the_table) {
  value.dtype = DType::i32;
  output.dtype = DType::i32;
  expect(ErrorCode::unsupported_dtype, "value", "i32", "bf16");
}
TEST_F(Arguments, dtype_of_locations) {
  locations.dtype = DType::i64;
  expect(ErrorCode::unsupported_dtype, "sampling_locations", "i64");
}
TEST_F(Arguments, dtype_of_weights) {
  weights.dtype = DType::u8;
  expect(ErrorCode::unsupported_dtype, "attention_weights", "u8");
}
TEST_F(Arguments, dtype_of_output) {
  output.dtype = DType::f16;
  expect(ErrorCode::dtype_mismatch, "output", "f16", "f32, as value");
}

TEST_F(Arguments, devices_must_agree) {
  locations.device = {DeviceType::cuda, 0};
  expect(ErrorCode::device_mismatch, "sampling_locations", "cuda:0", "cpu");
}
TEST_F(Arguments, device_of_weights) {
  weights.device = {DeviceType::cuda, 1};
  expect(ErrorCode::device_mismatch, "attention_weights", "cuda:1");
}
TEST_F(Arguments, device_of_output) {
  output.device = {DeviceType::cuda, 0};
  expect(ErrorCode::device_mismatch, "output");
}

TEST_F(Arguments, output_with_overlapping_elements) {
  output.strides[1] = 0;
  expect(ErrorCode::bad_strides, "output");
  output.strides[1] = 7;
  expect(ErrorCode::bad_strides, "output");
}
TEST_F(Arguments, output_inside_an_input) {
  output.data = good.value().data();
  expect(ErrorCode::overlap, "output", "value");
  output.data = good.locations().data();
  expect(ErrorCode::overlap, "sampling_locations");
  output.data = good.weights().data();
  expect(ErrorCode::overlap, "attention_weights");
}
TEST_F(Arguments, null_pointers) {
  value.data = nullptr;
  expect(ErrorCode::null_pointer, "value");
}
TEST_F(Arguments, null_locations) {
  locations.data = nullptr;
  expect(ErrorCode::null_pointer, "sampling_locations");
}
TEST_F(Arguments, null_weights) {
  weights.data = nullptr;
  expect(ErrorCode::null_pointer, "attention_weights");
}
TEST_F(Arguments, null_output) {
  output.data = nullptr;
  expect(ErrorCode::null_pointer, "output");
}
TEST_F(Arguments, pointer_not_a_multiple_of_the_element) {
  value.data = static_cast<const char*>(value.data) + 1;
  expect(ErrorCode::misaligned, "value");
}
TEST_F(Arguments, strides_that_overflow) {
  value.strides[0] = std::numeric_limits<std::int64_t>::max() / 2;
  expect(ErrorCode::size_overflow, "value");
}
TEST_F(Arguments, element_count_that_overflows) {
  value.shape[0] = 1LL << 62;
  locations.shape[0] = 1LL << 62;
  weights.shape[0] = 1LL << 62;
  output.shape[0] = 1LL << 62;
  expect(ErrorCode::size_overflow);
}
TEST_F(Arguments, levels_may_be_tensors) {
  Buffer shapes(DType::i64, {2, 2});
  Buffer at(DType::i64, {2});
  const double sides[] = {4, 4, 2, 3};
  for (std::int64_t i = 0; i < 4; ++i) shapes.set(i, sides[i]);
  at.set(0, 6);
  at.set(1, 0);
  options.spatial_shapes = shapes;
  expect(ErrorCode::bad_parameter, "spatial_shapes", "beside levels");
  levels = {};
  call();
  expect_forward(out, good.reference(), "levels as a tensor");
  options.level_starts = at;
  call();
  Buffer want = good.output();
  starts = {6, 0};
  ms_deform_attn(value, good.shape().levels, locations, weights, want, {.level_start_index = starts});
  EXPECT_EQ(out.bits(), want.bits());
  expect(ErrorCode::bad_parameter, "spatial_shapes", "level_start_index");
  starts = {};
  at.set(1, 5);
  expect(ErrorCode::bad_level_start, "level_start_index[0]", "inside level 1");
  shapes.set(0, 5);
  expect(ErrorCode::level_shapes_mismatch, "levels", "5x4 + 2x3");
  options.level_starts.shape[0] = 1;
  expect(ErrorCode::shape_mismatch, "level_starts", "(L)");
  options.spatial_shapes.strides[0] = 3;
  expect(ErrorCode::bad_strides, "spatial_shapes", "contiguous");
  options.spatial_shapes.dtype = DType::i32;
  expect(ErrorCode::unsupported_dtype, "spatial_shapes", "i32");
  options.spatial_shapes = {};
  expect(ErrorCode::bad_parameter, "level_starts", "without spatial_shapes");
}
TEST_F(Arguments, levels_on_another_device_than_the_value) {
  Buffer shapes(DType::i64, {2, 2});
  options.spatial_shapes = shapes;
  options.spatial_shapes.device = {DeviceType::cuda, 0};
  levels = {};
  expect(ErrorCode::device_mismatch, "spatial_shapes", "cuda:0", "cpu");
}
TEST_F(Arguments, unknown_sampling) {
  options.sampling = static_cast<Sampling>(7);
  expect(ErrorCode::bad_parameter, "sampling", "7");
}
TEST_F(Arguments, unknown_variant) {
  options.variant = "fastest";
  expect(ErrorCode::unknown_variant, "fastest", "reference");
}

TEST_F(Arguments, not_aligned_to16_bytes_is_fine) {
  // Inputs and output 4 bytes past a multiple of 16.
  std::vector<float> memory(4096);
  auto* base = reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 15) / 16 * 16);
  const auto copy = [&base](const Buffer& from) {
    float* to = base + 1;
    for (std::int64_t i = 0; i < from.layout().size(); ++i) to[i] = static_cast<float>(from.get(i));
    base += (from.layout().size() + 7) / 4 * 4;
    return to;
  };
  value.data = copy(good.value());
  locations.data = copy(good.locations());
  weights.data = copy(good.weights());
  output.data = base + 1;
  call();
  const Buffer want = good.reference();
  for (std::int64_t i = 0; i < want.layout().size(); ++i) EXPECT_NEAR(base[1 + i], want.get(i), 1e-5);
}

TEST_F(Arguments, plan_checks_before_it_runs) {
  levels[0] = {5, 4};
  expect_error(ErrorCode::level_shapes_mismatch,
               [&] { plan_ms_deform_attn(value, levels, locations, weights, output); });
}

}  // namespace
}  // namespace tmaops::test
