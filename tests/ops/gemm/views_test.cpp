// Arguments that are no tensors and options that are none are refused by name, whichever they are.
#include <gtest/gtest.h>

#include <vector>

#include "support/broken_views.hpp"
#include "tmaops/gemm.hpp"

namespace tmaops::test {
namespace {

struct GemmCall {
  std::vector<float> numbers = std::vector<float>(6, 1.0F);
  std::vector<float> product = std::vector<float>(4, -1.0F);
  ConstTensorView a = view(std::as_const(numbers).data(), {2, 3});
  ConstTensorView b = view(std::as_const(numbers).data(), {3, 2});
  TensorView d = view(product.data(), {2, 2});
  GemmOptions options{
      .beta = 1.0F, .c = view(std::as_const(numbers).data(), {2, 2}), .bias = view(std::as_const(numbers).data(), {2})};
};

TEST(GemmViews, that_are_no_tensors_are_refused_by_name) {
  GemmCall call;
  const auto once = [&] { gemm(call.a, call.b, call.d, call.options); };
  const auto planned = [&] { plan_gemm(call.a, call.b, call.d, call.options).run(); };
  const auto refused = [&](const std::string& argument, auto& view) {
    expect_refused("gemm: " + argument, view, once);
    expect_refused("gemm: " + argument, view, planned);
  };
  refused("a", call.a);
  refused("b", call.b);
  refused("d", call.d);
  refused("c", call.options.c);
  refused("bias", call.options.bias);
  EXPECT_EQ(call.product, (std::vector<float>(4, -1.0F)));
  once();
  EXPECT_EQ(call.product, (std::vector<float>(4, 5.0F)));
}

TEST(GemmViews, batches_that_are_no_tensors_are_refused_by_name) {
  GemmCall call;
  call.a = view(std::as_const(call.numbers).data(), {2, 1, 3});
  call.b = view(std::as_const(call.numbers).data(), {2, 3, 1});
  call.d = view(call.product.data(), {2, 1, 1});
  call.options = {};
  const auto once = [&] { gemm(call.a, call.b, call.d, call.options); };
  expect_refused("gemm: a", call.a, once);
  expect_refused("gemm: b", call.b, once);
  expect_refused("gemm: d", call.d, once);
}

TEST(GemmViews, options_that_are_none_are_refused_by_name) {
  GemmCall call;
  const auto once = [&] { gemm(call.a, call.b, call.d, call.options); };
  expect_enumerator_refused("gemm: activation", call.options.activation, once);
  expect_enumerator_refused("gemm: bias_axis", call.options.bias_axis, once);
}

TEST(GemmViews, names_of_what_is_no_enumerator_are_question_marks) {
  for (const int number : kNoEnumerators) {
    EXPECT_EQ(to_string(static_cast<GemmMode>(number)), "?");
    EXPECT_EQ(to_string(static_cast<Activation>(number)), "?");
    EXPECT_EQ(to_string(static_cast<BiasAxis>(number)), "?");
  }
}

}  // namespace
}  // namespace tmaops::test
