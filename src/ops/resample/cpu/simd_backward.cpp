// Vectors through Highway, the instruction set chosen at run time. Adds to `portable_backward`: targets located a
// vector at a time (locate-inl.hpp), and the sums compiled for the same instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/resample/cpu/simd_backward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/resample/cpu/locate-inl.hpp"
#include "ops/resample/definition.hpp"
#include "ops/resample/gather.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::resample::HWY_NAMESPACE {
namespace {

#include "ops/resample/cpu/channels.inc"
#include "ops/resample/cpu/sums.inc"

template <class Time>
resample_backward::GatherKernels KernelsOf(DType values, DType gradient) {
  return {OrderedVector<Time>, values == DType::f64 ? Locator<Time, double>() : Locator<Time, float>(),
          add_kernel(gradient), store_kernel(values)};
}

void LaunchBackward(const resample_backward::Problem& problem, const resample_backward::Arguments& arguments) {
  resample_backward::run_gather(problem, arguments,
                                problem.times == DType::f32 ? KernelsOf<float>(problem.values, problem.output)
                                : problem.times == DType::f64
                                    ? KernelsOf<double>(problem.values, problem.output)
                                    : KernelsOf<std::int64_t>(problem.values, problem.output));
}

}  // namespace
}  // namespace tmaops::ops::resample::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tmaops::ops::resample {
HWY_EXPORT(LaunchBackward);
namespace {
void dispatch(const resample_backward::Problem& problem, const resample_backward::Arguments& arguments) {
  HWY_DYNAMIC_DISPATCH(LaunchBackward)(problem, arguments);
}
}  // namespace
}  // namespace tmaops::ops::resample

namespace tmaops::ops::resample_backward::simd_backward {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (!problem.unit_time_stride) return Support::no("times with a stride other than 1");
  if (!problem.unit_channel_stride) return Support::no("channels with a stride other than 1");
  return resample::tiles_support(problem);
}

void launch(const Problem& problem, const Arguments& arguments, Stream) { resample::dispatch(problem, arguments); }

}  // namespace tmaops::ops::resample_backward::simd_backward
#endif
