// Memory that runs out in the middle of a call is an error like any other.
#include <gtest/gtest.h>

#include "ops/gemm/gemm_case.hpp"
#include "support/failing_allocations.hpp"

namespace tmaops::test {
namespace {

TEST(GemmMemory, that_runs_out_is_an_error) {
  set_num_threads(2);
  std::mt19937_64 random(1);
  Buffer a(DType::f16, {70, 40});
  Buffer b(DType::f16, {40, 90});
  Buffer d(DType::f32, {70, 90});
  a.fill_normal(random);
  b.fill_normal(random);
  const TensorView to = d;
  const ConstTensorView from_a = a;
  const ConstTensorView from_b = b;
  // oneDNN is not asked: an allocation of its own may fail beyond our reach.
  for (const char* variant : {"blocked", "reference"}) {
    const GemmOptions options{.variant = variant};
    expect_out_of_memory_is_an_error(variant, [&] { gemm(from_a, from_b, to, options); });
    expect_out_of_memory_is_an_error("a plan", [&] { plan_gemm(from_a, from_b, to, options).run(); });
  }
  // The refusal itself may find no room for its message.
  EXPECT_THROW(gemm(from_a, from_a, to), Error);
  for (const bool and_all : {false, true})
    for (std::int64_t first = 0; first < 40; ++first) {
      bool refused = false;
      {
        const FailingAllocations running_out(first, and_all);
        try {
          gemm(from_a, from_a, to);
        } catch (const Error&) {
          refused = true;
        }
      }
      EXPECT_TRUE(refused) << first;
    }
  set_num_threads(0);
}

TEST(Memory, that_runs_out_in_the_lists_is_an_error) {
  expect_out_of_memory_is_an_error("operators", [] { (void)operators(); });
  expect_out_of_memory_is_an_error("variants", [] { (void)variants("gemm"); });
  expect_out_of_memory_is_an_error("text",
                                   [] { (void)Layout::contiguous({1'000'000'000, 1'000'000'000}).shape_text(); });
}

}  // namespace
}  // namespace tmaops::test
