// Plain C++ loops. Adds to the reference: a walk along the timestamps instead of a search per target, rows and weights
// found once per target instead of once per channel, arithmetic in the type of the values, and threads. Takes any
// strides.
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/resample/shared/definition.hpp"
#include "ops/resample/shared/tiles.hpp"

namespace tmaops::ops::resample::portable {
namespace {

#include "ops/resample/shared/channels.inc"
#include "ops/resample/shared/locate.inc"

template <class Value>
constexpr decltype(TileKernels::combine) kCombine = {combine_linear<Value>,
                                                     combine_step<Value, Interpolation::previous>,
                                                     combine_step<Value, Interpolation::next>,
                                                     combine_step<Value, Interpolation::nearest>,
                                                     combine_cubic<Value>,
                                                     combine_slerp<Value>};

template <class Time>
TileKernels kernels_of(DType values) {
  switch (values) {
    case DType::f64:
      return {ordered_each<Time>, locate_each<Time, double>, time_ratios<Time, double>, kCombine<double>};
    case DType::f32:
      return {ordered_each<Time>, locate_each<Time, float>, time_ratios<Time, float>, kCombine<float>};
    case DType::f16:
      return {ordered_each<Time>, locate_each<Time, float>, time_ratios<Time, float>, kCombine<float16>};
    default:
      return {ordered_each<Time>, locate_each<Time, float>, time_ratios<Time, float>, kCombine<bfloat16>};
  }
}

void run(const Problem& problem, const Arguments& arguments) {
  const TileKernels kernels = problem.times == DType::f32   ? kernels_of<float>(problem.values)
                              : problem.times == DType::f64 ? kernels_of<double>(problem.values)
                                                            : kernels_of<std::int64_t>(problem.values);
  run_tiles(problem, arguments, kernels);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return tiles_support(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::resample::portable
