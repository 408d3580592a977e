// Random problems through every CPU variant: sizes, modes, strides, alignment, types, epilogues.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "ops/gemm/gemm_case.hpp"

namespace tmaops::test {
namespace {

std::int64_t between(std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); }

DType any_dtype() { return *rc::gen::element(DType::f32, DType::f16, DType::bf16); }

Placement any_placement(bool input) {
  Placement placement{.column_major = *rc::gen::arbitrary<bool>(),
                      .padding = *rc::gen::weightedElement<std::int64_t>({{3, 0}, {1, 1}, {1, 8}}),
                      .step = *rc::gen::weightedElement<std::int64_t>({{6, 1}, {1, 2}, {1, 3}}),
                      .reversed = *rc::gen::weightedElement<bool>({{7, false}, {1, true}}),
                      .shift = *rc::gen::weightedElement<std::int64_t>({{2, 0}, {1, 1}, {1, 3}})};
  placement.broadcast = input && *rc::gen::weightedElement<bool>({{3, false}, {1, true}});
  return placement;
}

GemmCase any_case() {
  GemmCase x{.m = between(0, 70), .n = between(0, 70), .k = between(0, 90)};
  x.batch = *rc::gen::weightedElement<std::int64_t>({{5, 0}, {1, 1}, {2, 3}, {1, 9}});
  x.in = any_dtype();
  x.out = any_dtype();
  x.a = any_placement(true);
  x.b = any_placement(true);
  x.c = any_placement(true);
  x.d = any_placement(false);
  x.alpha = *rc::gen::weightedElement<float>({{3, 1.0F}, {1, -0.75F}, {1, 0.0F}});
  x.beta = *rc::gen::weightedElement<float>({{2, 0.0F}, {1, 1.0F}, {1, 0.3F}});
  x.c_is_d = *rc::gen::arbitrary<bool>();
  x.c_dtype = any_dtype();
  if (*rc::gen::arbitrary<bool>()) x.bias = any_dtype();
  x.bias_axis = *rc::gen::element(BiasAxis::column, BiasAxis::row);
  x.bias_stride = *rc::gen::weightedElement<std::int64_t>({{3, 1}, {1, 2}, {1, -1}, {1, 0}});
  x.activation = *rc::gen::weightedElement<Activation>(
      {{3, Activation::none}, {1, Activation::relu}, {1, Activation::gelu}, {1, Activation::silu}});
  x.seed = static_cast<std::uint64_t>(between(1, 1 << 20));
  return x;
}

template <class Generate>
void check(const char* what, const Generate& generate) {
  const bool passed = rc::check(what, [&] {
    const GemmCase x = generate();
    RC_LOG() << describe(x) << "\n";
    check_case(x);
    RC_ASSERT(!::testing::Test::HasFailure());
  });
  EXPECT_TRUE(passed);
}

TEST(GemmProperty, small_problems_of_every_kind) { check("every variant agrees with f64", any_case); }

/// Long in M or N: several tiles, last ones cut short, B packed.
TEST(GemmProperty, problems_of_several_tiles) {
  check("every variant agrees with f64", [] {
    GemmCase x = any_case();
    if (*rc::gen::arbitrary<bool>())
      x.m = between(257, 800);
    else
      x.n = between(257, 1300);
    x.k = between(0, 24);
    if (x.batch > 0) x.batch = 2;
    return x;
  });
}

/// The plain problems that oneDNN computes without our epilogue.
TEST(GemmProperty, dense_problems) {
  check("every variant agrees with f64", [] {
    GemmCase x = any_case();
    x.n = between(1, 200);
    x.k = between(1, 300);
    for (Placement* placement : {&x.a, &x.b, &x.c, &x.d})
      *placement = Placement{.column_major = placement->column_major, .shift = placement->shift};
    x.bias_stride = 1;
    x.c_is_d = true;
    return x;
  });
}

}  // namespace
}  // namespace tmaops::test
