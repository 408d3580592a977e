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
    expect_error(
        code, [&] { call(); }, "ms_deform_attn", pieces...);
    EXPECT_EQ(out.bits(), before) << "the output was written";
    Buffer next = good.output();
    good.forward(next, "");
    expect_forward(next, good.reference(), "next call");
  }
};

TEST_F(Arguments, RankOfEachTensor) {
  value = view(static_cast<const float*>(value.data), {2, 22, 8});
  expect(ErrorCode::shape_mismatch, "value", "(N, S, M, D)");
}
TEST_F(Arguments, RankOfLocations) {
  locations = view(static_cast<const float*>(locations.data), {2, 3, 2, 4, 2});
  expect(ErrorCode::shape_mismatch, "sampling_locations", "(N, Lq, M, L, P, 2)");
}
TEST_F(Arguments, RankOfWeights) {
  weights = view(static_cast<const float*>(weights.data), {2, 3, 2, 4});
  expect(ErrorCode::shape_mismatch, "attention_weights");
}
TEST_F(Arguments, RankOfOutput) {
  output = view(static_cast<float*>(output.data), {2, 3, 2, 4});
  expect(ErrorCode::shape_mismatch, "output", "(N, Lq, M * D)");
}
TEST_F(Arguments, BatchOfLocations) {
  locations.shape[0] = 1;
  expect(ErrorCode::shape_mismatch, "sampling_locations", "(1, 3, 2, 2, 2, 2)");
}
TEST_F(Arguments, HeadsOfLocations) {
  locations.shape[2] = 1;
  expect(ErrorCode::shape_mismatch, "sampling_locations");
}
TEST_F(Arguments, LevelsOfLocations) {
  locations.shape[3] = 1;
  expect(ErrorCode::shape_mismatch, "sampling_locations");
}
TEST_F(Arguments, CoordinatesOfLocations) {
  locations.shape[5] = 1;
  expect(ErrorCode::shape_mismatch, "sampling_locations");
}
TEST_F(Arguments, QueriesOfWeights) {
  weights.shape[1] = 2;
  expect(ErrorCode::shape_mismatch, "attention_weights", "(2, 2, 2, 2, 2)");
}
TEST_F(Arguments, PointsOfWeights) {
  weights.shape[4] = 1;
  expect(ErrorCode::shape_mismatch, "attention_weights");
}
TEST_F(Arguments, ShapeOfOutput) {
  output.shape[2] = 7;
  expect(ErrorCode::shape_mismatch, "output", "(2, 3, 7)");
}

TEST_F(Arguments, LevelAreasMustAddUpToS) {
  levels[1] = {2, 2};
  expect(ErrorCode::level_shapes_mismatch, "4x4 + 2x2 = 20", "S = 22");
}
TEST_F(Arguments, LevelAreasThatOverflow) {
  levels[1] = {1LL << 40, 1LL << 40};
  expect(ErrorCode::size_overflow, "levels[1]");
}
TEST_F(Arguments, LevelWithoutPixels) {
  levels[1] = {0, 3};
  expect(ErrorCode::empty_level, "levels[1]", "0x3");
  levels[1] = {2, -3};
  expect(ErrorCode::empty_level, "levels[1]");
}
TEST_F(Arguments, NoLevels) {
  levels.clear();
  expect(ErrorCode::empty_level, "levels");
}
TEST_F(Arguments, NoPoints) {
  locations.shape[4] = 0;
  expect(ErrorCode::empty_level, "sampling_locations");
}

TEST_F(Arguments, LevelStartCount) {
  starts = {0};
  expect(ErrorCode::bad_level_start, "level_start_index", "1 entries");
}
TEST_F(Arguments, LevelStartNegative) {
  starts = {-1, 16};
  expect(ErrorCode::bad_level_start, "level_start_index[0]", "-1");
}
TEST_F(Arguments, LevelStartPastS) {
  starts = {0, 17};
  expect(ErrorCode::bad_level_start, "level_start_index[1]", "17", "S = 22");
  starts = {0, std::numeric_limits<std::int64_t>::max()};
  expect(ErrorCode::bad_level_start, "level_start_index[1]");
}
TEST_F(Arguments, LevelStartOverlap) {
  starts = {0, 15};
  expect(ErrorCode::bad_level_start, "level_start_index[1]", "ends at 16");
}

TEST_F(Arguments, RaggedPointsMustAddUp) {
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
TEST_F(Arguments, RaggedPointsAllZero) {
  locations = view(static_cast<const float*>(locations.data), {2, 3, 2, 0, 2});
  weights = view(static_cast<const float*>(weights.data), {2, 3, 2, 0});
  ragged = {0, 0};
  expect(ErrorCode::empty_level, "no sampling points");
}

TEST_F(Arguments, DtypesOutsideTheTable) {
  value.dtype = DType::i32;
  output.dtype = DType::i32;
  expect(ErrorCode::unsupported_dtype, "value", "i32", "bf16");
}
TEST_F(Arguments, DtypeOfLocations) {
  locations.dtype = DType::i64;
  expect(ErrorCode::unsupported_dtype, "sampling_locations", "i64");
}
TEST_F(Arguments, DtypeOfWeights) {
  weights.dtype = DType::u8;
  expect(ErrorCode::unsupported_dtype, "attention_weights", "u8");
}
TEST_F(Arguments, DtypeOfOutput) {
  output.dtype = DType::f16;
  expect(ErrorCode::dtype_mismatch, "output", "f16", "f32, as value");
}

TEST_F(Arguments, DevicesMustAgree) {
  locations.device = {DeviceType::cuda, 0};
  expect(ErrorCode::device_mismatch, "sampling_locations", "cuda:0", "cpu");
}
TEST_F(Arguments, DeviceOfWeights) {
  weights.device = {DeviceType::cuda, 1};
  expect(ErrorCode::device_mismatch, "attention_weights", "cuda:1");
}
TEST_F(Arguments, DeviceOfOutput) {
  output.device = {DeviceType::cuda, 0};
  expect(ErrorCode::device_mismatch, "output");
}

TEST_F(Arguments, OutputWithOverlappingElements) {
  output.strides[1] = 0;
  expect(ErrorCode::bad_strides, "output");
  output.strides[1] = 7;
  expect(ErrorCode::bad_strides, "output");
}
TEST_F(Arguments, OutputInsideAnInput) {
  output.data = good.value().data();
  expect(ErrorCode::overlap, "output", "value");
  output.data = good.locations().data();
  expect(ErrorCode::overlap, "sampling_locations");
  output.data = good.weights().data();
  expect(ErrorCode::overlap, "attention_weights");
}
TEST_F(Arguments, NullPointers) {
  value.data = nullptr;
  expect(ErrorCode::null_pointer, "value");
}
TEST_F(Arguments, NullLocations) {
  locations.data = nullptr;
  expect(ErrorCode::null_pointer, "sampling_locations");
}
TEST_F(Arguments, NullWeights) {
  weights.data = nullptr;
  expect(ErrorCode::null_pointer, "attention_weights");
}
TEST_F(Arguments, NullOutput) {
  output.data = nullptr;
  expect(ErrorCode::null_pointer, "output");
}
TEST_F(Arguments, PointerNotAMultipleOfTheElement) {
  value.data = static_cast<const char*>(value.data) + 1;
  expect(ErrorCode::misaligned, "value");
}
TEST_F(Arguments, StridesThatOverflow) {
  value.strides[0] = std::numeric_limits<std::int64_t>::max() / 2;
  expect(ErrorCode::size_overflow, "value");
}
TEST_F(Arguments, ElementCountThatOverflows) {
  value.shape[0] = 1LL << 62;
  locations.shape[0] = 1LL << 62;
  weights.shape[0] = 1LL << 62;
  output.shape[0] = 1LL << 62;
  expect(ErrorCode::size_overflow);
}
TEST_F(Arguments, UnknownSampling) {
  options.sampling = static_cast<Sampling>(7);
  expect(ErrorCode::bad_parameter, "sampling", "7");
}
TEST_F(Arguments, UnknownVariant) {
  options.variant = "fastest";
  expect(ErrorCode::unknown_variant, "fastest", "reference");
}

TEST_F(Arguments, NotAlignedTo16BytesIsFine) {
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

TEST_F(Arguments, PlanChecksBeforeItRuns) {
  levels[0] = {5, 4};
  expect_error(ErrorCode::level_shapes_mismatch, [&] { MsDeformAttnPlan(value, levels, locations, weights, output); });
}

}  // namespace
}  // namespace tmaops::test
