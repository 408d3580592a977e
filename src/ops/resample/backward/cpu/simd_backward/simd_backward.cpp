// Vectors through Highway, the instruction set chosen at run time. Adds to `portable_backward`: targets located a
// vector at a time (locate-inl.hpp), and the sums compiled for the same instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/resample/backward/cpu/simd_backward/simd_backward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/resample/backward/shared/gather.hpp"
#include "ops/resample/backward/shared/interval_gather.hpp"
#include "ops/resample/shared/locate-inl.hpp"
#include "ops/resample/shared/reference_bracket.hpp"

HWY_BEFORE_NAMESPACE();
namespace tmaops::ops::resample::HWY_NAMESPACE {
namespace {

#include "ops/resample/shared/channels.inc"
#include "ops/resample/shared/interval_rows.inc"
#include "ops/resample/shared/sums.inc"

template <class Time>
resample_backward::GatherKernels KernelsOf(DType values, DType gradient) {
  return {OrderedVector<Time>, values == DType::f64 ? Locator<Time, double>() : Locator<Time, float>(),
          add_kernel(gradient), store_kernel(values)};
}

void RunBackward(const resample_backward::Problem& problem, const resample_backward::Arguments& arguments) {
  visit_time_type(problem.times, [&]<class Time>(Time*) {
    resample_backward::run_gather(problem, arguments, KernelsOf<Time>(problem.values, problem.output));
  });
  resample_backward::run_interval_gather(problem, arguments, interval_kernels);
}

}  // namespace
}  // namespace tmaops::ops::resample::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tmaops::ops::resample {
HWY_EXPORT(RunBackward);
namespace {
void dispatch(const resample_backward::Problem& problem, const resample_backward::Arguments& arguments) {
  HWY_DYNAMIC_DISPATCH(RunBackward)(problem, arguments);
}
}  // namespace
}  // namespace tmaops::ops::resample

namespace tmaops::ops::resample_backward::simd_backward {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (!problem.unit_time_stride) return Support::no("times with a stride other than 1");
  if (!problem.unit_channel_stride) return Support::no("channels with a stride other than 1");
  return resample::tiles_support(problem);
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(resample::dispatch, problem, arguments);
}

}  // namespace tmaops::ops::resample_backward::simd_backward
#endif
