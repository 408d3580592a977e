// Resamplings that are captured into a CUDA graph, take memory from a caller, or run as a plan on other memory, give
// what a plain call gives.
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/gpu/check.hpp"

namespace tmaops::test {
namespace {

using Groups = std::vector<ChannelGroup>;

/// Calls with and without tables in device memory.
std::vector<ProblemShape> cases() {
  const Groups two{{0, 4, Interpolation::linear}, {4, 4, Interpolation::nearest}};
  return {{.groups = {{0, 8, Interpolation::linear}}},
          {.groups = two},
          {.batch = 700, .groups = {{0, 8, Interpolation::linear}}, .packed_source = true, .packed_target = true},
          {.groups = two, .valid = true, .grid = true, .packed_source = true}};
}

TEST(GpuResampleCapture, every_call_is_captured) {
  TMAOPS_NEEDS_CHIP();
  for (const ProblemShape& c : cases()) {
    SCOPED_TRACE(text(c));
    Made made = make(c, 7);
    const Mirror values(*made.values), source(*made.source), output(*made.output);
    const Mirror target(c.grid ? Buffer(c.times, {0}) : *made.target);
    const Mirror valid(c.valid ? *made.valid : Buffer(DType::u8, {0}));
    const ops::resample::Targets targets = c.grid ? ResampleTargets(made.grid) : ResampleTargets(target.view());
    for (const auto& variant : ops::resample::variants()) {
      if (variant.device != DeviceType::cuda) continue;
      CountingAllocator memory;
      ResampleOptions options = made.options;
      if (c.valid) options.valid = valid.view();
      const auto problem = ops::resample::make_problem(values.view(), source.view(), targets, output.view(), options);
      for (const std::string& name : ways(variant, problem)) {
        SCOPED_TRACE(name);
        options.variant = name;
        options.allocator = memory.allocator();
        std::size_t bytes = 0;
        const auto call = [&](cudaStream_t stream) {
          options.stream = stream;
          if (c.grid) {
            resample(values.view(), source.view(), made.grid, output.view(), options);
            bytes = resample_workspace(values.view(), source.view(), made.grid, output.view(), options);
          } else {
            resample(values.view(), source.view(), target.view(), output.view(), options);
            bytes = resample_workspace(values.view(), source.view(), target.view(), output.view(), options);
          }
        };
        memory.allocated = 0;
        output.reset();
        call(nullptr);
        check_cuda(cudaDeviceSynchronize(), name);
        EXPECT_EQ(memory.allocated, bytes);
        EXPECT_EQ(memory.held, 0);
        const auto want = output.download().bits();
        for (const bool own : {false, true}) {
          options.allocator = own ? Allocator() : memory.allocator();
          output.reset();
          replay_captured(call, 2);
          EXPECT_EQ(output.download().bits(), want) << (own ? "library's memory" : "caller's memory");
        }
        if (c.grid) continue;
        output.reset();
        const Plan plan = plan_resample(values.view(), source.view(), target.view(), output.view(), options);
        replay_captured(plan, 2);
        EXPECT_EQ(output.download().bits(), want) << "planned";
      }
    }
  }
}

TEST(GpuResampleCapture, every_backward_call_is_captured) {
  TMAOPS_NEEDS_CHIP();
  for (const ProblemShape& c : cases()) {
    if (c.grid) continue;
    SCOPED_TRACE(text(c));
    Made made = make(c, 8);
    std::mt19937_64 random(9);
    made.output->fill_normal(random);
    const Mirror source(*made.source), target(*made.target), gradient(*made.output), to(*made.values);
    for (const auto& variant : ops::resample_backward::variants()) {
      if (variant.device != DeviceType::cuda) continue;
      SCOPED_TRACE(variant.name);
      CountingAllocator memory;
      ResampleOptions options = made.options;
      options.allocator = memory.allocator();
      options.variant = variant.name;
      const auto call = [&](cudaStream_t stream) {
        options.stream = stream;
        resample_backward(source.view(), target.view(), gradient.view(), to.view(), options);
      };
      try {
        call(nullptr);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
        continue;
      }
      check_cuda(cudaDeviceSynchronize(), "resample_backward");
      EXPECT_EQ(memory.allocated,
                resample_backward_workspace(source.view(), target.view(), gradient.view(), to.view(), options));
      EXPECT_EQ(memory.held, 0);
      const auto want = to.download().bits();
      for (const bool own : {false, true}) {
        options.allocator = own ? Allocator() : memory.allocator();
        to.reset();
        replay_captured(call, 2);
        EXPECT_EQ(to.download().bits(), want) << (own ? "library's memory" : "caller's memory");
      }
      // A plan keeps its tables when it is bound to other memory.
      const Mirror other_gradient(*made.output), other_to(*made.values);
      Plan plan = plan_resample_backward(source.view(), target.view(), gradient.view(), to.view(), options);
      plan.run();
      plan.rebind({source.view().data, target.view().data, other_gradient.view().data, other_to.view().data});
      plan.run();
      check_cuda(cudaDeviceSynchronize(), "plan");
      EXPECT_EQ(to.download().bits(), want) << "planned";
      EXPECT_EQ(other_to.download().bits(), want) << "bound to other memory";
    }
  }
}

TEST(GpuResampleCapture, counting_violations_is_captured) {
  TMAOPS_NEEDS_CHIP();
  const ProblemShape c{.batch = 40, .packed_source = true, .packed_target = true, .unsorted = true};
  Made made = make(c, 3);
  const Mirror source(*made.source), target(*made.target);
  const Mirror counts(Buffer(DType::i64, {kResampleViolations}));
  ResampleOptions options = made.options;
  const auto call = [&](cudaStream_t stream) {
    options.stream = stream;
    resample_violations(source.view(), target.view(), counts.view(), options);
  };
  call(nullptr);
  check_cuda(cudaDeviceSynchronize(), "violations");
  const auto want = counts.download().bits();
  counts.reset();
  replay_captured(call, 2);
  EXPECT_EQ(counts.download().bits(), want);
}

}  // namespace
}  // namespace tmaops::test
