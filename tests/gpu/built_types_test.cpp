// A build for one element type (-DTMAOPS_TYPES=bf16) refuses the others before anything is launched.
#undef TMAOPS_TYPES
#define TMAOPS_TYPES "f64,bf16"
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "core/cuda_types.hpp"

namespace tmaops {
namespace {

TEST(BuiltTypes, types_of_the_build_are_called_and_others_are_named) {
  int called = 0;
  with_value_type(DType::bf16, [&](auto* type) { called += std::is_same_v<decltype(type), __nv_bfloat16*> ? 1 : 100; });
  with_any_value_type(DType::f64, [&](auto* type) { called += std::is_same_v<decltype(type), double*> ? 1 : 100; });
  EXPECT_EQ(called, 2);
  for (const DType dtype : {DType::f16, DType::f32}) {
    try {
      with_value_type(dtype, [&](auto*) { ADD_FAILURE() << to_string(dtype) << " is called"; });
      ADD_FAILURE() << to_string(dtype) << " is not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::variant_refuses);
      EXPECT_EQ(error.details().got, "a build with GPU kernels for f64,bf16 alone");
      EXPECT_EQ(error.details().needed, "one with kernels for " + std::string(to_string(dtype)));
    }
  }
}

}  // namespace
}  // namespace tmaops
