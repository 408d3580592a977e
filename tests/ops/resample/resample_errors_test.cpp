// What bad arguments get: a named error that says what to change, an untouched output, and a correct next call.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "ops/resample/resample_call.hpp"
#include "support/expect_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::test {
namespace {

/// Changes the call, and expects the error with pieces of its message; the output must not have been written.
template <class... Text>
void expect_refusal(ErrorCode code, const std::function<void(Call&)>& change, const Text&... pieces) {
  Call call;
  change(call);
  expect_error(code, [&] { call.run(); }, pieces...);
  EXPECT_EQ(call.out, std::vector<float>(8, -1));
  expect_next_call_right("");
}

TEST(ResampleArguments, shapes_must_go_together) {
  using enum ErrorCode;
  expect_refusal(shape_mismatch, [](Call& c) { c.values = view(c.data.data(), {6, 2}); }, "values", "(B, S, D)");
  expect_refusal(shape_mismatch, [](Call& c) { c.source_times = view(c.x.data(), {3, 2}); }, "source_times", "(3, 2)");
  expect_refusal(shape_mismatch, [](Call& c) { c.source_times = view(c.x.data(), {4}); }, "source_times", "(S)");
  expect_refusal(shape_mismatch, [](Call& c) { c.target_times = view(c.q.data(), {2, 1}); }, "target_times");
  expect_refusal(shape_mismatch, [](Call& c) { c.target_times = view(c.q.data(), {1, 2, 2}); }, "target_times");
  expect_refusal(shape_mismatch, [](Call& c) { c.output = view(c.out.data(), {2, 2, 1}); }, "output");
  expect_refusal(shape_mismatch, [](Call& c) { c.grid = UniformGrid{0.0, 1.0, 3}; }, "output", "(2, 3, 2)");
  std::vector<std::uint8_t> mask(4);
  expect_refusal(shape_mismatch, [&](Call& c) { c.options.valid = view(mask.data(), {4}); }, "valid");
}

TEST(ResampleArguments, element_types_must_go_together) {
  using enum ErrorCode;
  std::vector<std::int64_t> whole(12);
  std::vector<float> single(6);
  std::vector<float> mask(4);
  expect_refusal(unsupported_dtype, [&](Call& c) { c.values = view(whole.data(), {2, 3, 2}); }, "values", "i64");
  expect_refusal(
      unsupported_dtype, [](Call& c) { c.source_times = {c.x.data(), DType::i32, c.source_times}; }, "source_times",
      "i32", "f32, f64, i64");
  expect_refusal(
      dtype_mismatch, [&](Call& c) { c.target_times = view(single.data(), {2, 2}); }, "target_times", "f32", "f64");
  expect_refusal(dtype_mismatch, [](Call& c) { c.output.dtype = DType::f16; }, "output", "f16");
  expect_refusal(unsupported_dtype, [&](Call& c) { c.options.valid = view(mask.data(), {2, 2}); }, "valid", "u8");
}

TEST(ResampleArguments, one_device_only) {
  using enum ErrorCode;
  const Device gpu{DeviceType::cuda, 0};
  expect_refusal(device_mismatch, [&](Call& c) { c.values.device = gpu; }, "cuda:0", "cpu");
  expect_refusal(device_mismatch, [&](Call& c) { c.source_times.device = gpu; }, "source_times", "cuda:0");
  expect_refusal(device_mismatch, [&](Call& c) { c.target_times.device = gpu; }, "target_times", "cuda:0");
  expect_refusal(device_mismatch, [&](Call& c) { c.output.device = gpu; }, "output", "cuda:0");
}

TEST(ResampleArguments, memory_must_be_usable) {
  using enum ErrorCode;
  expect_refusal(null_pointer, [](Call& c) { c.values.data = nullptr; }, "values", "(2, 3, 2)");
  expect_refusal(null_pointer, [](Call& c) { c.source_times.data = nullptr; }, "source_times");
  expect_refusal(null_pointer, [](Call& c) { c.target_times.data = nullptr; }, "target_times");
  expect_refusal(null_pointer, [](Call& c) { c.output.data = nullptr; }, "output");
  expect_refusal(
      misaligned, [](Call& c) { c.values.data = reinterpret_cast<const char*>(c.data.data()) + 2; }, "values",
      "multiple of 4");
  expect_refusal(bad_strides, [](Call& c) { c.output.strides = {0, 2, 1}; }, "output");
  expect_refusal(overlap, [](Call& c) { c.output.data = c.data.data(); }, "output", "values");
  expect_refusal(overlap, [](Call& c) { c.output.data = c.x.data(); }, "output", "source_times");
  expect_refusal(overlap, [](Call& c) { c.output.data = c.q.data(); }, "output", "target_times");
  expect_refusal(
      size_overflow, [](Call& c) { c.values.strides[0] = std::numeric_limits<std::int64_t>::max(); }, "values");
  const std::int64_t huge = std::int64_t{1} << 62;
  expect_refusal(size_overflow, [&](Call& c) {
    c.values = {c.data.data(), Layout::strided({huge, 3, 2}, {0, 0, 0})};
    c.source_times = {c.x.data(), Layout::strided({3}, {1})};
    c.grid = UniformGrid{0.0, 1.0, 2};
    c.output = {c.out.data(), Layout::strided({huge, 2, 2}, {0, 0, 0})};
  });
}

TEST(ResampleArguments, parameters_have_ranges) {
  using enum ErrorCode;
  expect_refusal(bad_parameter, [](Call& c) { c.options.max_gap = -1.0; }, "max_gap", "0 or more");
  expect_refusal(bad_parameter, [](Call& c) { c.options.max_gap = std::nan(""); }, "max_gap");
  expect_refusal(bad_parameter, [](Call& c) { c.options.max_gap = std::int64_t{-1}; }, "max_gap");
  expect_refusal(bad_parameter, [](Call& c) { c.options.outside = static_cast<Outside>(9); }, "outside");
  expect_refusal(bad_parameter, [](Call& c) { c.options.duplicates = static_cast<Duplicates>(9); }, "duplicates");
  expect_refusal(
      bad_parameter, [](Call& c) { c.options.interpolation = static_cast<Interpolation>(13); }, "interpolation");
  expect_refusal(bad_parameter, [](Call& c) { c.grid = UniformGrid{0.0, 0.0, 2}; }, "grid.period", "more than 0");
  expect_refusal(bad_parameter, [](Call& c) { c.grid = UniformGrid{0.0, kInfinity, 2}; }, "grid.period");
  expect_refusal(bad_parameter, [](Call& c) { c.grid = UniformGrid{0.0, 1.0, -1}; }, "grid.count");
  expect_refusal(times_not_finite, [](Call& c) { c.grid = UniformGrid{std::nan(""), 1.0, 2}; }, "grid.start");
  expect_refusal(time_overflow, [](Call& c) { c.grid = UniformGrid{1e308, 1e308, 2}; }, "grid");
  expect_refusal(unknown_variant, [](Call& c) { c.options.variant = "fastest"; }, "fastest", "reference");
  expect_refusal(
      bad_quaternion, [](Call& c) { c.options.interpolation = Interpolation::slerp; }, "2 channels", "x, y, z, w");
  const auto groups = [](std::vector<ChannelGroup> list, auto... pieces) {
    expect_refusal(bad_parameter, [&](Call& c) { c.options.channel_groups = list; }, pieces...);
  };
  groups({{0, 1}}, "end at channel 1 of 2");
  groups({{0, 1}, {0, 1}}, "channel_groups[1]", "starts at channel 1");
  groups({{0, 1}, {1, 2}}, "channel_groups[1]", "ends by channel 2");
  groups({{0, 0}, {0, 2}}, "channel_groups[0]");
  groups({{0, std::numeric_limits<std::int64_t>::max()}}, "channel_groups[0]");
  // Seconds for nanosecond times.
  std::vector<std::int64_t> ns{0, 1, 2, 0, 1, 2};
  const auto whole = [&](Call& c) {
    c.source_times = view(std::as_const(ns).data(), {2, 3});
    c.target_times = view(std::as_const(ns).data(), {2, 2});
  };
  expect_refusal(bad_parameter, [&](Call& c) { whole(c), c.options.max_gap = 0.5; }, "max_gap", "nanoseconds");
  expect_refusal(
      bad_parameter, [&](Call& c) { whole(c), c.grid = UniformGrid{0.0, 0.5, 2}; }, "grid.period", "nanoseconds");
  expect_refusal(
      time_overflow,
      [&](Call& c) {
        whole(c);
        c.grid = UniformGrid{std::numeric_limits<std::int64_t>::max() - 1, std::int64_t{2}, 2};
      },
      "within 64 bits");
}

TEST(ResampleArguments, offsets_must_fit) {
  using enum ErrorCode;
  using Offsets = std::vector<std::int64_t>;
  const auto packed = [](const Offsets& source, const Offsets& target, auto... pieces) {
    expect_refusal(
        bad_offsets,
        [&](Call& c) {
          c.values = view(std::as_const(c.data).data(), {6, 2});
          c.source_times = view(std::as_const(c.x).data(), {6});
          c.target_times = view(std::as_const(c.q).data(), {4});
          c.output = view(c.out.data(), {4, 2});
          c.options.source_offsets = source;
          c.options.target_offsets = target;
        },
        pieces...);
  };
  packed({1, 3, 6}, {0, 2, 4}, "source_offsets", "first offset of 1");
  packed({0, 3, 5}, {0, 2, 4}, "source_offsets", "last offset of 5", "6");
  packed({0, 7, 6}, {0, 2, 4}, "source_offsets", "offset 2 is 6 after 7");
  packed({0}, {0, 2, 4}, "source_offsets");
  packed({0, 3, 6}, {0, 4}, "target_offsets", "3 for 2 trajectories");
  packed({0, 3, 6}, {0, 2, 3}, "target_offsets", "4");
  packed({0, 3, 6}, {0, 5, 4}, "target_offsets");
}

}  // namespace
}  // namespace tmaops::test
