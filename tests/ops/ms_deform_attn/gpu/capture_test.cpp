// Calls of attention that are captured into a CUDA graph, take memory from a caller, or run as a plan on other memory,
// give what a plain call gives.
#include "gpu/mirror.hpp"
#include "gpu/support.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/gpu/shapes.hpp"

namespace tmaops::test {
namespace {

/// Few levels, and more than travel with a kernel's parameters.
std::vector<Shape> shapes() {
  Shape encoder{.heads = 8, .channels = 32, .queries = 259, .levels = {{16, 16}, {8, 8}, {4, 4}, {2, 2}}, .points = 4};
  encoder.value_dtype = DType::f16;
  Shape many{.queries = 33, .levels = {}, .points = 2};
  for (int l = 0; l < 17; ++l) many.levels.push_back({4, 4});
  return {{}, encoder, many};
}

/// Calls fn(name) for every GPU variant of a table in every configuration.
template <class Table, class Problem, class Fn>
void each_way(const Table& table, const Problem& problem, const Fn& fn) {
  for (const auto& variant : table) {
    if (variant.device != DeviceType::cuda || !try_variant(variant, problem, device_info({DeviceType::cuda, 0})))
      continue;
    for (const std::string& name : names_of(variant, problem)) {
      SCOPED_TRACE(name);
      fn(name);
    }
  }
}

TEST(GpuMsDeformAttnCapture, every_call_is_captured) {
  TMAOPS_NEEDS_CHIP();
  for (const Shape& shape : shapes()) {
    Case c(shape, 5);
    SCOPED_TRACE(c.text());
    const Mirror value(c.value()), locations(c.locations()), weights(c.weights()), output(c.output()),
        other(c.output());
    MsDeformAttnOptions options = c.options();
    const auto problem = ops::ms_deform_attn::make_problem(value.view(), shape.levels, locations.view(), weights.view(),
                                                           output.view(), options);
    each_way(ops::ms_deform_attn::variants(), problem, [&](const std::string& name) {
      CountingAllocator memory;
      options.variant = name;
      options.allocator = memory.allocator();
      const auto call = [&](cudaStream_t stream) {
        options.stream = stream;
        ms_deform_attn(value.view(), shape.levels, locations.view(), weights.view(), output.view(), options);
      };
      output.reset();
      call(nullptr);
      check_cuda(cudaDeviceSynchronize(), name);
      EXPECT_EQ(memory.allocated, ms_deform_attn_workspace(value.view(), shape.levels, locations.view(), weights.view(),
                                                           output.view(), options));
      EXPECT_EQ(memory.held, 0);
      const auto want = output.download().bits();
      for (const bool own : {false, true}) {
        options.allocator = own ? Allocator() : memory.allocator();
        output.reset();
        replay_captured(call, 2);
        EXPECT_EQ(output.download().bits(), want) << (own ? "library's memory" : "caller's memory");
      }
      output.reset();
      other.reset();
      Plan plan =
          plan_ms_deform_attn(value.view(), shape.levels, locations.view(), weights.view(), output.view(), options);
      replay_captured(plan, 2);
      const auto planned = output.download().bits();
      if (name.find("copied") == std::string::npos) {
        EXPECT_EQ(planned, want) << "planned";
      }
      plan.rebind({value.view().data, locations.view().data, weights.view().data, other.view().data});
      for (int run = 0; run < 3; ++run) plan.run();
      check_cuda(cudaDeviceSynchronize(), "plan");
      EXPECT_EQ(other.download().bits(), planned) << "bound to other memory";
    });
  }
}

TEST(GpuMsDeformAttnCapture, every_backward_call_is_captured) {
  TMAOPS_NEEDS_CHIP();
  namespace backward = ops::ms_deform_attn_backward;
  for (const Shape& shape : shapes())
    for (const bool deterministic : {false, true}) {
      Case c(shape, 6);
      SCOPED_TRACE(c.text() + (deterministic ? ", deterministic" : ""));
      Buffer grad_output = c.output();
      grad_output.fill_normal(c.random());
      const Buffer empty_value(shape.value_dtype, c.value().layout());
      const Buffer empty_locations(DType::f32, c.locations().layout());
      const Buffer empty_weights(DType::f32, c.weights().layout());
      const Mirror value(c.value()), locations(c.locations()), weights(c.weights()), gradient(grad_output),
          to_value(empty_value), to_locations(empty_locations), to_weights(empty_weights), other(empty_value);
      const MsDeformAttnGradients gradients{
          .value = to_value.view(), .sampling_locations = to_locations.view(), .attention_weights = to_weights.view()};
      MsDeformAttnOptions options = c.options();
      options.deterministic = deterministic;
      const auto problem = backward::make_problem(value.view(), shape.levels, locations.view(), weights.view(),
                                                  gradient.view(), gradients, options);
      each_way(backward::variants(), problem, [&](const std::string& name) {
        CountingAllocator memory;
        options.variant = name;
        options.allocator = memory.allocator();
        const auto call = [&](cudaStream_t stream) {
          options.stream = stream;
          ms_deform_attn_backward(value.view(), shape.levels, locations.view(), weights.view(), gradient.view(),
                                  gradients, options);
        };
        to_value.reset();
        to_locations.reset();
        call(nullptr);
        check_cuda(cudaDeviceSynchronize(), name);
        EXPECT_EQ(memory.allocated,
                  ms_deform_attn_backward_workspace(value.view(), shape.levels, locations.view(), weights.view(),
                                                    gradient.view(), gradients, options));
        EXPECT_EQ(memory.held, 0);
        const Buffer want = to_value.download();
        const Buffer want_locations = to_locations.download();
        const auto expect_same = [&](const Mirror& got, const char* what) {
          if (deterministic)
            EXPECT_EQ(got.download().bits(), want.bits()) << what;
          else
            expect_gradient(got.download(), want, false, what);
        };
        for (const bool own : {false, true}) {
          options.allocator = own ? Allocator() : memory.allocator();
          to_value.reset();
          to_locations.reset();
          replay_captured(call, 2);
          expect_same(to_value, own ? "library's memory" : "caller's memory");
          expect_gradient(to_locations.download(), want_locations, false, "locations");
        }
        to_value.reset();
        Plan plan = plan_ms_deform_attn_backward(value.view(), shape.levels, locations.view(), weights.view(),
                                                 gradient.view(), gradients, options);
        replay_captured(plan, 2);
        expect_same(to_value, "planned");
        other.reset();
        plan.rebind({value.view().data, locations.view().data, weights.view().data, gradient.view().data,
                     other.view().data, to_locations.view().data, to_weights.view().data});
        for (int run = 0; run < 3; ++run) plan.run();
        check_cuda(cudaDeviceSynchronize(), "plan");
        expect_same(other, "bound to other memory");
      });
    }
}

TEST(GpuMsDeformAttnCapture, an_allocator_without_memory_is_told_of) {
  TMAOPS_NEEDS_GPU();
  Case c(shapes().back(), 5);
  const Mirror value(c.value()), locations(c.locations()), weights(c.weights()), output(c.output());
  MsDeformAttnOptions options = c.options();
  options.allocator = {.allocate = [](void*, std::size_t, Stream) -> void* { return nullptr; },
                       .release = [](void*, void*, std::size_t, Stream) {}};
  try {
    ms_deform_attn(value.view(), c.shape().levels, locations.view(), weights.view(), output.view(), options);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device_out_of_memory) << error.what();
  }
}

}  // namespace
}  // namespace tmaops::test
