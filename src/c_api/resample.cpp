#include "tmaops/resample.hpp"

#include <vector>

#include "c_api/option_fields.hpp"
#include "c_api/plan.hpp"

namespace tmaops::c_api {
namespace {

constexpr std::string_view kResample = "resample";
constexpr std::string_view kResampleBackward = "resample_backward";
constexpr std::string_view kResampleViolations = "resample_violations";

/// Options and what their span of groups points to.
struct ResampleArguments {
  std::vector<ChannelGroup> groups;
  ResampleOptions options;
};

ResampleArguments resample_options(const Arguments& read, const tmaops_resample_options* given, Stream stream) {
  const auto options = read.options<tmaops_resample_options>(given, TMAOPS_RESAMPLE_OPTIONS);
  ResampleArguments all;
  ResampleOptions& made = all.options;
  made.stream = stream;
  TMAOPS_RESAMPLE_OPTION_LIST(TMAOPS_READ)
  for (const auto& [first, count, interpolation] :
       read.list("channel_groups", options.channel_groups, options.channel_group_count)) {
    const std::string argument = "channel_groups[" + std::to_string(all.groups.size()) + "].interpolation";
    all.groups.push_back({first, count, read.enumerator<Interpolation>(argument, interpolation)});
  }
  made.channel_groups = all.groups;
  made.source_offsets = read.list("source_offsets", options.source_offsets, options.source_offset_count);
  made.target_offsets = read.list("target_offsets", options.target_offsets, options.target_offset_count);
  return all;
}

/// The target times or the grid, whichever is given.
ResampleTargets targets_of(const Arguments& read, const tmaops_tensor* target_times, const tmaops_uniform_grid* grid) {
  if (grid == nullptr) return read.tensor("target_times", target_times);
  if (target_times != nullptr)
    read.checks().fail(ErrorCode::bad_parameter, "target_times", "target times and a grid",
                       "one of them, the other null");
  return UniformGrid{.start = read.time("grid.start", grid->start),
                     .period = read.time("grid.period", grid->period),
                     .count = grid->count};
}

}  // namespace
}  // namespace tmaops::c_api

using namespace tmaops::c_api;  // NOLINT(google-build-using-namespace): this file is a part of it

int tmaops_resample(const tmaops_tensor* values, const tmaops_tensor* source_times, const tmaops_tensor* target_times,
                    const tmaops_uniform_grid* grid, const tmaops_tensor* output,
                    const tmaops_resample_options* options, tmaops_stream stream) {
  return status_of_call(kResample, [&](const Arguments& read) {
    tmaops::resample(read.tensor("values", values), read.tensor("source_times", source_times),
                     targets_of(read, target_times, grid), read.tensor("output", output),
                     resample_options(read, options, stream).options);
  });
}

int tmaops_plan_resample(const tmaops_tensor* values, const tmaops_tensor* source_times,
                         const tmaops_tensor* target_times, const tmaops_uniform_grid* grid,
                         const tmaops_tensor* output, const tmaops_resample_options* options, tmaops_plan** plan) {
  return status_of_plan(kResample, plan, [&](const Arguments& read) {
    return tmaops::plan_resample(read.tensor("values", values), read.tensor("source_times", source_times),
                                 targets_of(read, target_times, grid), read.tensor("output", output),
                                 resample_options(read, options, nullptr).options);
  });
}

int tmaops_resample_workspace(const tmaops_tensor* values, const tmaops_tensor* source_times,
                              const tmaops_tensor* target_times, const tmaops_uniform_grid* grid,
                              const tmaops_tensor* output, const tmaops_resample_options* options, size_t* bytes) {
  return status_of_workspace(kResample, bytes, [&](const Arguments& read) {
    return tmaops::resample_workspace(read.tensor("values", values), read.tensor("source_times", source_times),
                                      targets_of(read, target_times, grid), read.tensor("output", output),
                                      resample_options(read, options, nullptr).options);
  });
}

int tmaops_resample_backward(const tmaops_tensor* source_times, const tmaops_tensor* target_times,
                             const tmaops_uniform_grid* grid, const tmaops_tensor* grad_output,
                             const tmaops_tensor* grad_values, const tmaops_resample_options* options,
                             tmaops_stream stream) {
  return status_of_call(kResampleBackward, [&](const Arguments& read) {
    tmaops::resample_backward(read.tensor("source_times", source_times), targets_of(read, target_times, grid),
                              read.tensor("grad_output", grad_output), read.tensor("grad_values", grad_values),
                              resample_options(read, options, stream).options);
  });
}

int tmaops_plan_resample_backward(const tmaops_tensor* source_times, const tmaops_tensor* target_times,
                                  const tmaops_uniform_grid* grid, const tmaops_tensor* grad_output,
                                  const tmaops_tensor* grad_values, const tmaops_resample_options* options,
                                  tmaops_plan** plan) {
  return status_of_plan(kResampleBackward, plan, [&](const Arguments& read) {
    return tmaops::plan_resample_backward(read.tensor("source_times", source_times),
                                          targets_of(read, target_times, grid), read.tensor("grad_output", grad_output),
                                          read.tensor("grad_values", grad_values),
                                          resample_options(read, options, nullptr).options);
  });
}

int tmaops_resample_backward_workspace(const tmaops_tensor* source_times, const tmaops_tensor* target_times,
                                       const tmaops_uniform_grid* grid, const tmaops_tensor* grad_output,
                                       const tmaops_tensor* grad_values, const tmaops_resample_options* options,
                                       size_t* bytes) {
  return status_of_workspace(kResampleBackward, bytes, [&](const Arguments& read) {
    return tmaops::resample_backward_workspace(
        read.tensor("source_times", source_times), targets_of(read, target_times, grid),
        read.tensor("grad_output", grad_output), read.tensor("grad_values", grad_values),
        resample_options(read, options, nullptr).options);
  });
}

int tmaops_resample_violations(const tmaops_tensor* source_times, const tmaops_tensor* target_times,
                               const tmaops_uniform_grid* grid, const tmaops_tensor* counts,
                               const tmaops_resample_options* options, tmaops_stream stream) {
  return status_of_call(kResampleViolations, [&](const Arguments& read) {
    tmaops::resample_violations(read.tensor("source_times", source_times), targets_of(read, target_times, grid),
                                read.tensor("counts", counts), resample_options(read, options, stream).options);
  });
}
