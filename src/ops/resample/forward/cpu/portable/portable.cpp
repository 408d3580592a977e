// Plain C++ loops. Adds to the reference: a walk along the timestamps instead of a search per target, rows and weights
// found once per target instead of once per channel, arithmetic in the type of the values, and threads. Takes any
// strides.
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/resample/forward/shared/interval_sweep.hpp"
#include "ops/resample/shared/reference_bracket.hpp"
#include "ops/resample/shared/tiles.hpp"

namespace tmaops::ops::resample::portable {
namespace {

#include "ops/resample/shared/channels.inc"
#include "ops/resample/shared/interval_rows.inc"
#include "ops/resample/shared/locate.inc"

template <class Value>
constexpr decltype(TileKernels::combine) kCombine = {combine_linear<Value>,
                                                     combine_step<Value, Interpolation::previous>,
                                                     combine_step<Value, Interpolation::next>,
                                                     combine_step<Value, Interpolation::nearest>,
                                                     combine_cubic<Value>,
                                                     combine_slerp<Value>};

void run(const Problem& problem, const Arguments& arguments) {
  visit_time_type(problem.times, [&]<class Time>(Time*) {
    visit_value_type(problem.values, [&]<class Value>(Value*) {
      using C = Compute<Value>;
      run_tiles(problem, arguments, {ordered_each<Time>, locate_each<Time, C>, time_ratios<Time, C>, kCombine<Value>});
    });
  });
  run_intervals(problem, arguments, interval_kernels(problem.values));
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return tiles_support(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::resample::portable
