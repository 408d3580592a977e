// The checks of a count of violations, and its arguments as addresses.
#include "ops/resample/violations/problem.hpp"

#include "core/checks.hpp"
#include "ops/resample/options.hpp"

namespace tmaops::ops::resample_violations {

Problem make_problem(const ConstTensorView& source_times, const Targets& targets, const TensorView& counts,
                     const ResampleOptions& options) {
  const ArgumentChecks checks("resample_violations");
  checks.views({{"source_times", source_times}, {"target_times", targets.times}, {"counts", counts}});
  if (targets.grid) resample::check_grid(checks, source_times.dtype, *targets.grid);
  checks.rank("source_times", source_times, {1, 2}, "(B, S), (S) or packed (rows)");
  if (!targets.grid) checks.rank("target_times", targets.times, {1, 2}, "(B, T), (T) or packed (rows)");

  // The same checks as for a resampling of rows without channels.
  const std::int64_t samples = source_times.shape[static_cast<std::size_t>(source_times.rank - 1)];
  const std::int64_t wanted =
      targets.grid ? targets.grid->count : targets.times.shape[static_cast<std::size_t>(targets.times.rank - 1)];
  std::int64_t batch = 1;
  if (!options.source_offsets.empty())
    batch = static_cast<std::int64_t>(options.source_offsets.size()) - 1;
  else if (source_times.rank == 2)
    batch = source_times.shape[0];
  else if (!options.target_offsets.empty())
    batch = static_cast<std::int64_t>(options.target_offsets.size()) - 1;
  else if (!targets.grid && targets.times.rank == 2)
    batch = targets.times.shape[0];
  const auto rows = [&](bool packed, std::int64_t count) {
    return ConstTensorView{nullptr, DType::f32,
                           packed ? Layout::contiguous({count, 0}) : Layout::contiguous({batch, count, 0}),
                           source_times.device};
  };
  ResampleOptions of_times = options;
  of_times.channel_groups = {};
  Problem problem{resample::check_timeline(
      "resample_violations", "values", rows(!options.source_offsets.empty(), samples), "output",
      rows(!options.target_offsets.empty(), wanted), source_times, targets, of_times)};
  checks.dtype("counts", counts, {DType::i64});
  checks.shape("counts", counts, {kResampleViolations}, "(6)");
  checks.same_device("counts", counts, "source_times", source_times);
  checks.writable("counts", counts);
  if (counts.strides[0] != 1)
    checks.fail(ErrorCode::bad_strides, "counts", "a stride of " + std::to_string(counts.strides[0]), "1");
  checks.no_overlap("counts", counts, "source_times", source_times);
  if (!targets.grid) checks.no_overlap("counts", counts, "target_times", targets.times);
  return problem;
}

Arguments make_arguments(const Problem& problem, const ConstTensorView& source_times, const Targets& targets,
                         const TensorView& counts, const ResampleOptions& options) {
  Arguments arguments;
  arguments.offsets = resample::copy_offsets(options);
  arguments.timeline = resample::make_timeline(problem, source_times, targets, options, arguments.offsets.get());
  arguments.counts = static_cast<std::int64_t*>(counts.data);
  return arguments;
}

}  // namespace tmaops::ops::resample_violations
