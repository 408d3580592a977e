// The gradient to the values on the GPU: against the reference on the CPU, and bit-identical from run to run.
#include <cstring>

#include "gpu/resample_problems.cuh"
#include "ops/resample/problem_backward.hpp"

namespace tmaops::test {
namespace {

/// Gradients of `c` by every GPU variant; the two gradients have dtypes `given` and `made`.
void check_backward(const Case& c, DType given, DType made_type, std::uint64_t seed) {
  SCOPED_TRACE(text(c) + ", gradients " + std::string(to_string(given)) + " -> " + std::string(to_string(made_type)) +
               ", seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  Made made = make(c, seed);
  Buffer grad_output(given, made.output->layout());
  grad_output.fill_normal(random);
  Buffer want(made_type, made.values->layout());
  const Buffer poisoned = want;
  ResampleOptions options = made.options;
  options.variant = "reference_backward";
  if (c.grid)
    resample_backward(*made.source, made.grid, grad_output, want, options);
  else
    resample_backward(*made.source, *made.target, grad_output, want, options);

  const Mirror source(*made.source, c.shift);
  const Mirror target(c.grid ? Buffer(c.times, {0}) : *made.target, c.shift);
  const Mirror given_gradient(grad_output, c.shift);
  const double scale = static_cast<double>(c.targets) * (c.outside == Outside::extrapolate ? 20 : 1);
  const double relative = made_type == DType::f32 ? 4e-6 : made_type == DType::f16 ? 0x1p-10 : 0x1p-7;
  for (const auto& variant : ops::resample_backward::variants()) {
    if (variant.device != DeviceType::cuda) continue;
    options.variant = std::string(variant.name);
    std::vector<Buffer> runs;
    for (int run = 0; run < 2; ++run) {
      const Mirror gradient(poisoned, c.shift);
      if (c.grid)
        resample_backward(source.view(), made.grid, given_gradient.view(), gradient.view(), options);
      else
        resample_backward(source.view(), target.view(), given_gradient.view(), gradient.view(), options);
      check_cuda(cudaDeviceSynchronize(), variant.name);
      runs.push_back(gradient.download());
      expect_close(runs.back(), want, relative, 2e-6 * scale, variant.name.data());
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(runs[0].bits(), runs[1].bits()) << variant.name << " differs from run to run";
  }
}

class GpuResampleBackward : public ::testing::TestWithParam<int> {};

TEST_P(GpuResampleBackward, AgreesWithTheReferenceOnRandomProblems) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(static_cast<std::uint64_t>(3000 + GetParam()));
  for (int i = 0; i < 20; ++i) {
    Case c = random_case(random);
    c.valid = false;
    for (ChannelGroup& group : c.groups)
      if (group.interpolation == Interpolation::cubic || group.interpolation == Interpolation::slerp)
        group.interpolation = Interpolation::linear;
    const DType other = random() % 3 == 0 ? DType::f32 : c.dtype;
    const bool widened = random() % 2 == 0;
    check_backward(c, widened ? other : c.dtype, widened ? c.dtype : other, random());
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuResampleBackward, ::testing::Range(0, 4));

TEST(GpuResampleBackwardShapes, LongTrajectoriesAndManyTargetsPerSample) {
  TMAOPS_NEEDS_GPU();
  for (const auto& [samples, targets, channels] :
       std::vector<std::array<std::int64_t, 3>>{{20000, 10000, 14}, {40, 9000, 64}, {512, 512, 128}}) {
    check_backward({.batch = 2,
                    .samples = samples,
                    .targets = targets,
                    .channels = channels,
                    .dtype = DType::bf16,
                    .groups = one_group(channels, Interpolation::linear)},
                   DType::bf16, DType::bf16, 17);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tmaops::test
