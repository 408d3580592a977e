// 16-bit values on the CPU whose small levels are widened: any shape agrees with the reference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>

#include "ops/ms_deform_attn/case.hpp"
#include "ops/ms_deform_attn/paired_maps.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::test {
namespace {

namespace forward = ops::ms_deform_attn;

RC_GTEST_PROP(PairedMapsProperty, agree_with_the_reference_with_the_same_bits_for_any_number_of_threads, ()) {
  Shape shape;
  shape.batch = *rc::gen::inRange(1, 3);
  shape.heads = *rc::gen::inRange(1, 4);
  shape.channels = *rc::gen::element(32, 64, 96);
  shape.queries = *rc::gen::inRange(1, 80);
  shape.value_dtype = *rc::gen::element(DType::f16, DType::bf16);
  const bool coded = shape.value_dtype == DType::f16 && *rc::gen::arbitrary<bool>();
  const auto points_type = rc::gen::element(DType::f16, DType::f32, DType::bf16);
  shape.location_dtype = *points_type;
  shape.weight_dtype = *points_type;
  shape.strided = *rc::gen::arbitrary<bool>();
  // Most often the last levels are small and have few of the points; at times not, or they have none.
  shape.levels.clear();
  const std::size_t large = *rc::gen::inRange<std::size_t>(1, 3);
  const std::size_t small = *rc::gen::inRange<std::size_t>(1, 4);
  for (std::size_t l = 0; l < large + small; ++l) {
    const auto side = l < large ? rc::gen::inRange(1, 40) : rc::gen::inRange(1, 7);
    shape.levels.push_back({*side, *side});
    shape.ragged.push_back(l < large ? *rc::gen::inRange(1, 20) : *rc::gen::inRange(0, 9));
  }
  Case c(shape, *rc::gen::arbitrary<std::uint64_t>());
  RC_LOG() << c.text() << (coded ? ", coded" : "");
  Buffer got = c.output();
  const forward::Problem problem = c.problem(got);
  if (!takes(forward::variants(), problem, "simd_packed")) return;
  const std::size_t widened = forward_in_pairs(problem, c.arguments(got), coded);
  RC_CLASSIFY(widened != 0, "widened");
  expect_forward(got, c.reference(), "simd_packed");
  set_num_threads(1);
  Buffer again = c.output();
  forward_in_pairs(problem, c.arguments(again), coded);
  set_num_threads(0);
  RC_ASSERT(again.bits() == got.bits());
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace tmaops::test
