// The checks of a count of violations, and its arguments as addresses.
#include "ops/resample/violations/problem.hpp"

#include <algorithm>

#include "ops/resample/options.hpp"

namespace tmaops::ops::resample_violations {

Problem make_problem(const ConstTensorView& source_times, const Targets& targets, const TensorView& counts,
                     const ResampleOptions& options) {
  const ArgumentChecks checks("resample_violations");
  checks.views({{"source_times", source_times}, {"target_times", targets.times}, {"counts", counts}});
  if (targets.grid) resample::check_grid(checks, source_times.dtype, *targets.grid);
  checks.rank("source_times", source_times, {1, 2}, "(B, S), (S) or packed (rows)");
  if (!targets.grid) checks.rank("target_times", targets.times, {1, 2}, "(B, T), (T) or packed (rows)");

  resample::check_offset_tensors(checks, options, "source_times", source_times);
  const resample::PackedOffsets source_offsets = resample::source_offsets_of(options);
  const resample::PackedOffsets target_offsets = resample::target_offsets_of(options);
  // The same checks as for a resampling of rows without channels.
  const std::int64_t samples = source_times.shape[static_cast<std::size_t>(source_times.rank - 1)];
  const std::int64_t wanted =
      targets.grid ? targets.grid->count : targets.times.shape[static_cast<std::size_t>(targets.times.rank - 1)];
  std::int64_t batch = 1;
  if (source_offsets.given)
    batch = std::max<std::int64_t>(source_offsets.trajectories, 0);
  else if (source_times.rank == 2)
    batch = source_times.shape[0];
  else if (target_offsets.given)
    batch = std::max<std::int64_t>(target_offsets.trajectories, 0);
  else if (!targets.grid && targets.times.rank == 2)
    batch = targets.times.shape[0];
  const auto rows = [&](bool packed, std::int64_t count) {
    return ConstTensorView{nullptr, DType::f32,
                           packed ? Layout::contiguous({count, 0}) : Layout::contiguous({batch, count, 0}),
                           source_times.device};
  };
  ResampleOptions of_times = options;
  of_times.channel_groups = {};
  Problem problem{resample::check_timeline("resample_violations", "values", rows(source_offsets.given, samples),
                                           "output", rows(target_offsets.given, wanted), source_times, targets,
                                           of_times)};
  checks.dtype("counts", counts, {DType::i64});
  checks.rank("counts", counts, {1}, "(7) or (6)");
  if (counts.shape[0] != kResampleViolations - 1)
    checks.shape("counts", counts, {kResampleViolations}, "(7), or (6) without the last");
  checks.same_device("counts", counts, "source_times", source_times);
  checks.writable("counts", counts);
  if (counts.strides[0] != 1)
    checks.fail(ErrorCode::bad_strides, "counts", "a stride of " + std::to_string(counts.strides[0]), "1");
  resample::check_apart_from_times(checks, "counts", counts, source_times, targets, options);
  return problem;
}

Arguments make_arguments(const Problem& problem, const ConstTensorView& source_times, const Targets& targets,
                         const TensorView& counts, const ResampleOptions& options) {
  Arguments arguments{resample::time_arguments(problem, source_times, targets, options)};
  arguments.counts = static_cast<std::int64_t*>(counts.data);
  arguments.counters = counts.shape[0];
  return arguments;
}

}  // namespace tmaops::ops::resample_violations
