// Random problems of any shape, type and layout: every variant against the references.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/case.hpp"

namespace tmaops::test {
namespace {

Shape random_shape() {
  Shape shape;
  shape.batch = *rc::gen::inRange(1, 4);
  shape.heads = *rc::gen::inRange(1, 5);
  shape.channels = *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 80), rc::gen::element<std::int64_t>(16, 32, 64));
  shape.queries = *rc::gen::inRange(1, 40);
  shape.points = *rc::gen::inRange(1, 10);
  shape.levels.clear();
  const auto side =
      rc::gen::oneOf(rc::gen::inRange<std::int64_t>(1, 20), rc::gen::element<std::int64_t>(1, 2, 4, 8, 16));
  const std::size_t levels = *rc::gen::inRange<std::size_t>(1, 6);
  for (std::size_t l = 0; l < levels; ++l) shape.levels.push_back({*side, *side});
  if (*rc::gen::arbitrary<bool>()) {
    for (std::size_t l = 0; l < levels; ++l) shape.ragged.push_back(*rc::gen::inRange(0, 9));
    shape.ragged.front() += 1;
  }
  const auto dtype = rc::gen::element(DType::f32, DType::f16, DType::bf16, DType::f64);
  shape.value_dtype = *dtype;
  shape.location_dtype = *dtype;
  shape.weight_dtype = *dtype;
  shape.sampling = *rc::gen::element(Sampling::bilinear, Sampling::bilinear, Sampling::nearest);
  shape.strided = *rc::gen::arbitrary<bool>();
  return shape;
}

RC_GTEST_PROP(MsDeformAttnProperty, every_forward_variant_agrees_with_the_reference, ()) {
  namespace forward = ops::ms_deform_attn;
  Case c(random_shape(), *rc::gen::arbitrary<std::uint64_t>());
  RC_LOG() << c.text();
  const Buffer want = c.reference();
  for (const std::string& name : cpu_variants(forward::variants())) {
    Buffer got = c.output();
    const forward::Problem problem =
        forward::make_problem(c.value(), c.shape().levels, c.locations(), c.weights(), got, c.options());
    if (!takes(forward::variants(), problem, name)) continue;
    c.forward(got, name);
    expect_forward(got, want, name);
  }
  RC_ASSERT(!testing::Test::HasFailure());
}

RC_GTEST_PROP(MsDeformAttnProperty, every_backward_variant_agrees_with_the_reference, ()) {
  namespace backward = ops::ms_deform_attn_backward;
  Case c(random_shape(), *rc::gen::arbitrary<std::uint64_t>());
  RC_LOG() << c.text();
  const bool f64 = c.value().dtype() == DType::f64;
  Buffer grad_output = c.output();
  grad_output.fill_normal(c.random());
  const DType dtype = f64 ? DType::f64 : DType::f32;
  const auto run = [&](const std::string& name) {
    std::vector<Buffer> gradients{
        {dtype, c.value().layout()}, {dtype, c.locations().layout()}, {dtype, c.weights().layout()}};
    const MsDeformAttnGradients views{
        .value = gradients[0], .sampling_locations = gradients[1], .attention_weights = gradients[2]};
    const backward::Problem problem = backward::make_problem(c.value(), c.shape().levels, c.locations(), c.weights(),
                                                             grad_output, views, c.options());
    if (!takes(backward::variants(), problem, name)) return std::vector<Buffer>{};
    c.backward(grad_output, views, name);
    return gradients;
  };
  const std::vector<Buffer> want = run("reference_backward");
  for (const std::string& name : cpu_variants(backward::variants())) {
    const std::vector<Buffer> got = run(name);
    for (std::size_t i = 0; i < got.size(); ++i) expect_gradient(got[i], want[i], f64, name);
  }
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace tmaops::test
