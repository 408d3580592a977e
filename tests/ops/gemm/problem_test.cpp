#include "ops/gemm/problem.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tmaops::ops::gemm {
namespace {

alignas(256) std::array<float, 4096> memory;

Problem problem_of(Layout a, Layout b, Layout d, const GemmOptions& options = {}) {
  return make_problem(ConstTensorView(memory.data(), DType::f32, a), ConstTensorView(memory.data(), DType::f32, b),
                      TensorView(memory.data() + 2048, DType::f32, d), options);
}

TEST(GemmProblem, finds_the_mode_in_the_strides) {
  const auto mode = [](bool a_row, bool b_row) {
    return problem_of(a_row ? Layout::strided({8, 6}, {6, 1}) : Layout::strided({8, 6}, {1, 8}),
                      b_row ? Layout::strided({6, 4}, {4, 1}) : Layout::strided({6, 4}, {1, 6}),
                      Layout::contiguous({8, 4}))
        .mode();
  };
  EXPECT_EQ(mode(true, false), GemmMode::RC);
  EXPECT_EQ(mode(false, true), GemmMode::CR);
  EXPECT_EQ(mode(true, true), GemmMode::RR);
  EXPECT_EQ(mode(false, false), GemmMode::CC);
}

TEST(GemmProblem, an_extent_of_one_leaves_the_choice_to_the_other) {
  EXPECT_EQ(order_of(1, 8, 8, 1), Order::row);
  EXPECT_EQ(order_of(1, 8, 999, 1), Order::row);
  EXPECT_EQ(order_of(1, 8, 1, 4), Order::column);  // elements 4 apart: only a single row of a column-major matrix
  EXPECT_EQ(order_of(8, 1, 1, 1), Order::column);
  EXPECT_EQ(order_of(8, 1, 4, 1), Order::row);
  EXPECT_EQ(order_of(1, 1, 7, 9), Order::row);
  EXPECT_EQ(order_of(8, 8, 1, 1), Order::row);
  EXPECT_EQ(order_of(8, 8, 16, 2), Order::general);
  EXPECT_EQ(order_of(8, 8, -8, 1), Order::row);
  EXPECT_EQ(order_of(8, 8, 0, 1), Order::row);
}

TEST(GemmProblem, knows_leading_dimensions_and_alignment) {
  const Problem problem =
      problem_of(Layout::strided({8, 6}, {10, 1}), Layout::strided({6, 4}, {1, 7}), Layout::strided({8, 4}, {1, 12}));
  EXPECT_EQ(problem.a.leading_dimension(), 10);
  EXPECT_EQ(problem.b.leading_dimension(), 7);
  EXPECT_EQ(problem.d.leading_dimension(), 12);
  EXPECT_EQ(problem.d.order, Order::column);
  EXPECT_EQ(problem.a.alignment, 128);
  EXPECT_EQ(problem_of(Layout::contiguous({1, 6}), Layout::contiguous({6, 1}), Layout::contiguous({1, 1}))
                .a.leading_dimension(),
            6);
  const Problem batched = make_problem(ConstTensorView(memory.data() + 1, DType::f32, Layout::contiguous({2, 3, 6})),
                                       ConstTensorView(memory.data(), DType::f32, Layout::contiguous({2, 6, 2})),
                                       TensorView(memory.data() + 2048, DType::f32, Layout::contiguous({2, 3, 2})), {});
  EXPECT_EQ(batched.a.alignment, 4);
  EXPECT_EQ(batched.b.alignment, 16);  // 12 floats from batch to batch
  EXPECT_EQ(batched.batch, 2);
}

TEST(GemmProblem, prints_itself_in_the_configuration_s_syntax) {
  EXPECT_EQ(problem_of(Layout::contiguous({8, 8}), Layout::strided({8, 8}, {1, 8}), Layout::contiguous({8, 8})).text(),
            "gemm: {mode: RC, size: 8, dtype: f32}");
  EXPECT_EQ(problem_of(Layout::strided({8, 6}, {10, 1}), Layout::contiguous({6, 4}), Layout::strided({8, 4}, {1, 8}),
                       {.alpha = 0.5F, .activation = Activation::relu})
                .text(),
            "gemm: {mode: RR, m: 8, n: 4, k: 6, dtype: f32, lda: 10, d: column, alpha: 0.5, activation: relu}");
  EXPECT_EQ(problem_of(Layout::strided({8, 6}, {12, 2}), Layout::contiguous({6, 4}), Layout::contiguous({8, 4})).text(),
            "gemm: {m: 8, n: 4, k: 6, dtype: f32, a_strides: [12, 2]}");
}

TEST(GemmProblem, keeps_c_only_when_it_is_read) {
  const TensorView d(memory.data() + 2048, DType::f32, Layout::contiguous({8, 4}));
  const Layout a = Layout::contiguous({8, 6});
  const Layout b = Layout::contiguous({6, 4});
  EXPECT_FALSE(problem_of(a, b, Layout::contiguous({8, 4}), {.beta = 0, .c = d}).c);
  const Problem in_place = problem_of(a, b, Layout::contiguous({8, 4}), {.beta = 1, .c = d});
  EXPECT_TRUE(in_place.c && in_place.c_is_d);
}

}  // namespace
}  // namespace tmaops::ops::gemm
