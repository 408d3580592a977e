// Memory that runs out in the middle of a call is an error like any other.
#include <gtest/gtest.h>

#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/case.hpp"
#include "support/failing_allocations.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::test {
namespace {

TEST(MsDeformAttnMemory, that_runs_out_is_an_error) {
  set_num_threads(2);
  Case c({.channels = 16, .queries = 40, .levels = {{8, 8}, {4, 4}}, .points = 3}, 3);
  Buffer output = c.output();
  Buffer grad_output = c.output();
  grad_output.fill_normal(c.random());
  Buffer to_value(DType::f32, c.value().layout());
  Buffer to_locations(DType::f32, c.locations().layout());
  Buffer to_weights(DType::f32, c.weights().layout());
  for (const std::string& variant : cpu_variants(ops::ms_deform_attn::variants())) {
    const MsDeformAttnOptions options = c.options(variant);
    const std::vector<LevelShape> levels = c.shape().levels;
    expect_out_of_memory_is_an_error(
        variant.c_str(), [&] { ms_deform_attn(c.value(), levels, c.locations(), c.weights(), output, options); });
    expect_out_of_memory_is_an_error(
        "a plan", [&] { plan_ms_deform_attn(c.value(), levels, c.locations(), c.weights(), output, options).run(); });
  }
  for (const std::string& variant : cpu_variants(ops::ms_deform_attn_backward::variants())) {
    const MsDeformAttnOptions options = c.options(variant);
    const std::vector<LevelShape> levels = c.shape().levels;
    const MsDeformAttnGradients gradients{
        .value = to_value, .sampling_locations = to_locations, .attention_weights = to_weights};
    expect_out_of_memory_is_an_error(variant.c_str(), [&] {
      ms_deform_attn_backward(c.value(), levels, c.locations(), c.weights(), grad_output, gradients, options);
    });
  }
  set_num_threads(0);
}

}  // namespace
}  // namespace tmaops::test
