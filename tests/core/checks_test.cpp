#include "core/checks.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/expect_error.hpp"

namespace tmaops {
namespace {

using test::expect_error;

TEST(Checks, slices_of_one_buffer_do_not_overlap) {
  std::vector<float> buffer(10 * 8);
  const ConstTensorView left(buffer.data(), Layout::strided({10, 3}, {8, 1}));
  const ConstTensorView right(buffer.data() + 3, Layout::strided({10, 5}, {8, 1}));
  const ConstTensorView wide(buffer.data() + 2, Layout::strided({10, 5}, {8, 1}));
  const ConstTensorView wrapped(buffer.data() + 6, Layout::strided({9, 4}, {8, 1}));
  EXPECT_FALSE(may_overlap(left, right));
  EXPECT_TRUE(may_overlap(left, wide));
  EXPECT_TRUE(may_overlap(left, wrapped));
  EXPECT_TRUE(may_overlap(left, left));
  EXPECT_FALSE(may_overlap(view(buffer.data(), {4, 10}), view(buffer.data() + 40, {40})));
  EXPECT_TRUE(may_overlap(view(buffer.data(), {4, 10}), view(buffer.data() + 39, {40})));
}

TEST(Checks, negative_strides_count_in_the_range) {
  std::vector<float> buffer(100);
  const ConstTensorView reversed(buffer.data() + 50, Layout::strided({20}, {-1}));
  EXPECT_EQ(byte_range(reversed).first, -19 * 4);
  EXPECT_EQ(byte_range(reversed).last, 4);
  EXPECT_TRUE(may_overlap(reversed, view(buffer.data() + 31, {1})));
  EXPECT_FALSE(may_overlap(reversed, view(buffer.data() + 30, {1})));
}

TEST(Checks, knows_layouts_that_overlap_themselves) {
  EXPECT_TRUE(has_distinct_elements(Layout::contiguous({3, 4, 5})));
  EXPECT_TRUE(has_distinct_elements(Layout::strided({3, 4}, {1, 3})));
  EXPECT_TRUE(has_distinct_elements(Layout::strided({3, 1}, {1, 0})));
  EXPECT_FALSE(has_distinct_elements(Layout::strided({3, 4}, {0, 1})));
  EXPECT_FALSE(has_distinct_elements(Layout::strided({3, 4}, {3, 1})));
}

TEST(Checks, name_the_argument_and_the_numbers) {
  const ArgumentChecks check("gemm");
  std::vector<float> buffer(64);
  expect_error(
      ErrorCode::shape_mismatch, [&] { check.shape("b", Layout::contiguous({4, 5}), {4, 6}, "(K, N)"); }, "gemm: b",
      "(4, 5)", "(4, 6)");
  expect_error(
      ErrorCode::null_pointer,
      [&] { check.memory("a", ConstTensorView(nullptr, DType::f32, Layout::contiguous({1}))); }, "gemm: a");
  expect_error(
      ErrorCode::misaligned,
      [&] {
        check.memory("a",
                     ConstTensorView(reinterpret_cast<char*>(buffer.data()) + 2, DType::f32, Layout::contiguous({1})));
      },
      "2 past a multiple of 4");
  expect_error(
      ErrorCode::bad_strides,
      [&] { check.writable("d", ConstTensorView(buffer.data(), Layout::strided({8, 8}, {0, 1}))); }, "(0, 1)");
  expect_error(
      ErrorCode::size_overflow,
      [&] { check.memory("a", ConstTensorView(buffer.data(), Layout::strided({2, 2}, {std::int64_t{1} << 62, 1}))); },
      "gemm: a");
  expect_error(ErrorCode::size_overflow,
               [] { (void)Layout::contiguous({std::int64_t{1} << 40, std::int64_t{1} << 40}); });
  EXPECT_NO_THROW(check.memory("a", ConstTensorView(nullptr, DType::f32, Layout::contiguous({0, 5}))));
}

}  // namespace
}  // namespace tmaops
