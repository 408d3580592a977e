// A plan of attention on other memory gives what a plain call there gives.
#include <gtest/gtest.h>

#include "ops/ms_deform_attn/case.hpp"
#include "support/expect_error.hpp"

namespace tmaops::test {
namespace {

TEST(MsDeformAttnRebind, forward_works_on_the_other_memory) {
  Case x({}, 1);
  Case y({}, 2);
  for (const std::string& variant : cpu_variants(ops::ms_deform_attn::variants())) {
    SCOPED_TRACE(variant);
    Buffer first = x.output();
    Buffer want = y.output();
    Buffer got = y.output();
    try {
      y.forward(want, variant);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
      continue;
    }
    Plan plan = plan_ms_deform_attn(x.value(), x.shape().levels, x.locations(), x.weights(), first, x.options(variant));
    plan.rebind({y.value().data(), y.locations().data(), y.weights().data(), got.data()});
    plan.run();
    EXPECT_EQ(got.bits(), want.bits());
    EXPECT_EQ(first.bits(), x.output().bits()) << "the first memory was not touched";
    expect_error(
        ErrorCode::overlap, [&] { plan.rebind({got.data(), y.locations().data(), y.weights().data(), got.data()}); },
        "ms_deform_attn: output", "value");
  }
}

TEST(MsDeformAttnRebind, backward_works_on_the_other_memory) {
  Case x({}, 3);
  Case y({}, 4);
  Buffer grad_output = x.output();
  grad_output.fill_normal(x.random());
  const auto empty = [](Buffer& like) { return Buffer(DType::f32, like.layout()); };
  Buffer first = empty(x.value());
  Buffer want = empty(y.value());
  Buffer got = empty(y.value());
  y.backward(grad_output, {.value = want}, {});
  Plan plan = plan_ms_deform_attn_backward(x.value(), x.shape().levels, x.locations(), x.weights(), grad_output,
                                           {.value = first}, x.options());
  plan.rebind({y.value().data(), y.locations().data(), y.weights().data(), grad_output.data(), got.data()});
  plan.run();
  EXPECT_EQ(got.bits(), want.bits());
  expect_error(
      ErrorCode::bad_parameter, [&] { plan.rebind({got.data()}); },
      "value, sampling_locations, attention_weights, grad_output, gradients.value");
}

TEST(MsDeformAttnWorkspace, a_call_on_the_cpu_needs_no_device_memory) {
  Case x({}, 5);
  Buffer output = x.output();
  EXPECT_EQ(ms_deform_attn_workspace(x.value(), x.shape().levels, x.locations(), x.weights(), output, x.options()), 0);
  Buffer gradient(DType::f32, x.value().layout());
  EXPECT_EQ(ms_deform_attn_backward_workspace(x.value(), x.shape().levels, x.locations(), x.weights(), output,
                                              {.value = gradient}, x.options()),
            0);
}

}  // namespace
}  // namespace tmaops::test
