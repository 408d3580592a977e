// Plain C++ loops. Adds to the reference: targets located once instead of once per channel, gradients gathered per
// sample instead of scattered, f32 sums and threads. Takes any strides.
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/resample/backward/shared/gather.hpp"
#include "ops/resample/backward/shared/interval_gather.hpp"
#include "ops/resample/shared/reference_bracket.hpp"

namespace tmaops::ops::resample_backward::portable_backward {
namespace {

using namespace resample;  // NOLINT(google-build-using-namespace): the parts that both directions share

#include "ops/resample/shared/channels.inc"
#include "ops/resample/shared/interval_rows.inc"
#include "ops/resample/shared/locate.inc"
#include "ops/resample/shared/sums.inc"

template <class Time>
GatherKernels kernels_of(DType values, DType gradient) {
  return {ordered_each<Time>, values == DType::f64 ? locate_each<Time, double> : locate_each<Time, float>,
          add_kernel(gradient), store_kernel(values)};
}

void run(const Problem& problem, const Arguments& arguments) {
  visit_time_type(problem.times, [&]<class Time>(Time*) {
    run_gather(problem, arguments, kernels_of<Time>(problem.values, problem.output));
  });
  run_interval_gather(problem, arguments, interval_kernels);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return tiles_support(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::resample_backward::portable_backward
