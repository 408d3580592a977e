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

#if HWY_TARGET != HWY_SCALAR
#include "ops/resample/shared/vectors.inc"

/// add_gradient and store_sums of f16, which plain loops convert in integers.
void AddHalves(void* sum, double weight, const void* gradient, std::int64_t stride, std::int64_t count) {
  if (!kConverts<float16> || stride != 1) return add_gradient<float16>(sum, weight, gradient, stride, count);
  auto* to = static_cast<float*>(sum);
  const auto* from = static_cast<const float16*>(gradient);
  const auto w = static_cast<float>(weight);
  InVectors<float>(count, [&](auto d, std::int64_t c) HWY_ATTR {
    hn::StoreU(hn::MulAdd(hn::Set(d, w), LoadWide(d, from + c), hn::LoadU(d, to + c)), d, to + c);
  });
}
void StoreHalves(const void* sum, void* row, std::int64_t stride, std::int64_t count) {
  if (!kConverts<float16> || stride != 1) return store_sums<float16>(sum, row, stride, count);
  const auto* from = static_cast<const float*>(sum);
  auto* to = static_cast<float16*>(row);
  InVectors<float>(count,
                   [&](auto d, std::int64_t c) HWY_ATTR { StoreNarrow<false>(d, hn::LoadU(d, from + c), to + c); });
}
#else
constexpr auto AddHalves = &add_gradient<float16>;
constexpr auto StoreHalves = &store_sums<float16>;
#endif

template <class Time>
resample_backward::GatherKernels KernelsOf(DType values, DType gradient) {
  return {OrderedVector<Time>, values == DType::f64 ? Locator<Time, double>() : Locator<Time, float>(),
          gradient == DType::f16 ? AddHalves : add_kernel(gradient),
          values == DType::f16 ? StoreHalves : store_kernel(values)};
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
