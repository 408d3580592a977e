// The checks of a resampling's arguments, and the same arguments as addresses.
#include "ops/resample/problem.hpp"

#include <algorithm>
#include <cmath>

#include "core/choice_cache.hpp"
#include "ops/resample/options.hpp"

namespace tmaops::ops::resample {
namespace {

bool unit_stride(const Layout& layout, int dimension) {
  const auto k = static_cast<std::size_t>(dimension);
  return layout.shape[k] <= 1 || layout.strides[k] == 1;
}

/// The last two dimensions are contiguous.
bool has_dense_rows(const Layout& layout) {
  const auto k = static_cast<std::size_t>(layout.rank - 2);
  return Layout::strided({layout.shape[k], layout.shape[k + 1]}, {layout.strides[k], layout.strides[k + 1]})
      .is_contiguous();
}

/// The largest power of two up to 16 that divides the address of the first element.
int address_alignment(const ConstTensorView& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  return address % 16 == 0 ? 16 : static_cast<int>(address & -address);
}

}  // namespace

std::string Config::text() const {
  if (chunks > 0) return std::to_string(chunks) + (chunks == 1 ? " chunk" : " chunks");
  if (trajectories > 0) return std::to_string(trajectories) + (trajectories == 1 ? " trajectory" : " trajectories");
  if (threads > 0) return std::to_string(threads) + " threads";
  if (blocks > 0) return std::to_string(blocks);
  return {};
}

std::string Problem::text() const {
  const std::string batch_text = std::to_string(batch);
  std::string line = std::string(op) + ": {shape: \"" + batch_text + "," + std::to_string(source) + "->" +
                     std::to_string(target) + "," + std::to_string(channels) +
                     "\", dtype: " + std::string(to_string(values)) + ", times: " + std::string(to_string(times));
  if (groups.size() == 1) line += ", interpolation: " + std::string(name_of(groups[0].interpolation));
  if (groups.size() > 1) {
    line += ", interpolation: [";
    for (std::size_t i = 0; i < groups.size(); ++i)
      line += (i ? ", " : "") + std::string(name_of(groups[i].interpolation)) + " " + std::to_string(groups[i].count);
    line += "]";
  }
  if (output != values) line += ", grad_output: " + std::string(to_string(output));
  if (packed_source) line += ", packed_source: true";
  if (packed_target) line += ", packed_target: true";
  if (shared_source_times) line += ", shared_source_times: true";
  if (shared_target_times) line += ", shared_target_times: true";
  if (uniform_grid) line += ", uniform_grid: true";
  if (outside != Outside::hold) line += ", outside: " + std::string(name_of(outside));
  if (duplicates == Duplicates::last) line += ", duplicates: last";
  if (max_gap) line += ", max_gap: true";
  if (valid_mask) line += ", valid: true";
  if (!unit_channel_stride) line += ", strided_channels: true";
  if (!unit_time_stride) line += ", strided_times: true";
  return line + "}";
}

bool has_intervals(const Problem& problem) {
  return std::ranges::any_of(problem.groups,
                             [](const ChannelGroup& group) { return over_interval(group.interpolation); });
}

std::size_t hash_of(const Problem& problem) {
  return hash_numbers(problem.batch, problem.source, problem.target, problem.longest_source, problem.channels,
                      problem.values, problem.times, problem.row_alignment, problem.values_alignment,
                      problem.output_alignment, problem.source_times_alignment, problem.target_times_alignment);
}

Problem check_timeline(std::string_view op, std::string_view rows_name, const ConstTensorView& rows,
                       std::string_view made_name, const ConstTensorView& made, const ConstTensorView& source_times,
                       const Targets& targets, const ResampleOptions& options) {
  const ArgumentChecks checks(op);
  checks.views({{rows_name, rows}, {made_name, made}, {"source_times", source_times}, {"target_times", targets.times}});
  check_offset_tensors(checks, options, rows_name, rows);
  checks.list("channel_groups", options.channel_groups);
  const PackedOffsets source_offsets = source_offsets_of(options);
  const PackedOffsets target_offsets = target_offsets_of(options);
  const auto name = [](const ConstTensorView& tensor, std::string_view tensor_name, std::string_view list_name) {
    return tensor.given() ? tensor_name : list_name;
  };
  Problem problem;
  problem.op = op;
  problem.packed_source = source_offsets.given;
  problem.packed_target = target_offsets.given;
  problem.source_offsets_on_device = source_offsets.on_device;
  problem.target_offsets_on_device = target_offsets.on_device;
  problem.uniform_grid = targets.grid.has_value();

  checks.rank(rows_name, rows, {problem.packed_source ? 2 : 3}, problem.packed_source ? "(rows, D)" : "(B, S, D)");
  checks.rank(made_name, made, {problem.packed_target ? 2 : 3}, problem.packed_target ? "(rows, D)" : "(B, T, D)");
  checks.dtype("source_times", source_times, {DType::f32, DType::f64, DType::i64});
  problem.times = source_times.dtype;
  checks.memory("source_times", source_times);

  problem.source = rows.shape[problem.packed_source ? 0 : 1];
  problem.channels = rows.shape[problem.packed_source ? 1 : 2];
  if (problem.packed_source) {
    problem.batch = source_offsets.trajectories;
    check_offsets(checks, name(options.source_offset_tensor, "source_offset_tensor", "source_offsets"), source_offsets,
                  problem.source);
    checks.shape("source_times", source_times, {problem.source}, "(rows)");
    if (source_offsets.on_device) problem.longest_source = problem.source;
    for (std::size_t i = 1; i < source_offsets.known.size(); ++i)
      problem.longest_source = std::max(problem.longest_source, source_offsets.known[i] - source_offsets.known[i - 1]);
  } else {
    problem.batch = rows.shape[0];
    problem.longest_source = problem.source;
    problem.shared_source_times = source_times.rank == 1;
    checks.rank("source_times", source_times, {1, 2}, "(B, S) or (S)");
    if (problem.shared_source_times)
      checks.shape("source_times", source_times, {problem.source}, "(S)");
    else
      checks.shape("source_times", source_times, {problem.batch, problem.source}, "(B, S)");
  }

  if (problem.packed_target) {
    const std::string_view argument = name(options.target_offset_tensor, "target_offset_tensor", "target_offsets");
    if (problem.uniform_grid)
      checks.fail(ErrorCode::bad_parameter, argument, "offsets together with a uniform grid",
                  "a grid is the same for every trajectory: leave the offsets out, or give target_times");
    problem.target = made.shape[0];
    if (target_offsets.trajectories != problem.batch)
      checks.fail(ErrorCode::bad_offsets, argument, std::to_string(target_offsets.trajectories + 1) + " offsets",
                  std::to_string(problem.batch + 1) + " for " + std::to_string(problem.batch) + " trajectories");
    check_offsets(checks, argument, target_offsets, problem.target);
    checks.shape(made_name, made, {problem.target, problem.channels}, "(rows, D)");
  } else {
    if (problem.uniform_grid) check_grid(checks, problem.times, *targets.grid);
    problem.target = problem.uniform_grid ? targets.grid->count : made.shape[1];
    checks.shape(made_name, made, {problem.batch, problem.target, problem.channels}, "(B, T, D)");
  }
  if (!problem.uniform_grid) {
    checks.same_dtype("target_times", targets.times, "source_times", source_times);
    checks.memory("target_times", targets.times);
    if (problem.packed_target) {
      checks.shape("target_times", targets.times, {problem.target}, "(rows)");
    } else {
      checks.rank("target_times", targets.times, {1, 2}, "(B, T) or (T)");
      problem.shared_target_times = targets.times.rank == 1;
      if (problem.shared_target_times)
        checks.shape("target_times", targets.times, {problem.target}, "(T)");
      else
        checks.shape("target_times", targets.times, {problem.batch, problem.target}, "(B, T)");
    }
    checks.same_device("target_times", targets.times, rows_name, rows);
  }
  checks.same_device("source_times", source_times, rows_name, rows);
  checks.same_device(made_name, made, rows_name, rows);

  check_policies(checks, problem.times, options);
  problem.groups = checked_groups(checks, problem.channels, options);
  problem.values = rows.dtype;
  problem.output = made.dtype;
  problem.outside = options.outside;
  problem.duplicates = options.duplicates;
  problem.max_gap = as_double(options.max_gap) > 0 && !std::isinf(as_double(options.max_gap));
  problem.unit_channel_stride = unit_stride(rows, rows.rank - 1) && unit_stride(made, made.rank - 1);
  problem.unit_time_stride = unit_stride(source_times, source_times.rank - 1) &&
                             (problem.uniform_grid || unit_stride(targets.times, targets.times.rank - 1));
  problem.dense_rows = has_dense_rows(rows) && has_dense_rows(made);
  problem.dense_batches = rows.is_contiguous() && made.is_contiguous() && source_times.is_contiguous() &&
                          (problem.uniform_grid || targets.times.is_contiguous());
  problem.row_alignment = std::min(row_alignment(rows), row_alignment(made));
  problem.source_times_alignment = address_alignment(source_times);
  problem.target_times_alignment = problem.uniform_grid ? 16 : address_alignment(targets.times);
  problem.values_alignment = address_alignment(rows);
  problem.output_alignment = address_alignment(made);
  problem.source_times_stride = source_times.rank == 2 ? source_times.strides[0] : 0;
  problem.target_times_stride = targets.times.rank == 2 ? targets.times.strides[0] : 0;
  problem.values_stride = rows.rank == 3 ? rows.strides[0] : 0;
  problem.output_stride = made.rank == 3 ? made.strides[0] : 0;
  problem.dependent_launch = options.dependent_launch;
  problem.device = rows.device;
  return problem;
}

Rows make_rows(const ConstTensorView& tensor, const std::int64_t* offsets) {
  if (offsets) return {tensor.data, 0, tensor.strides[0], tensor.rank > 1 ? tensor.strides[1] : 0, offsets};
  return {tensor.data, tensor.strides[0], tensor.strides[1], tensor.rank > 2 ? tensor.strides[2] : 0, nullptr};
}

void check_apart_from_times(const ArgumentChecks& checks, std::string_view written, const ConstTensorView& tensor,
                            const ConstTensorView& source_times, const Targets& targets,
                            const ResampleOptions& options) {
  for (const auto& [name, other] : {std::pair<std::string_view, const ConstTensorView&>{"source_times", source_times},
                                    {"target_times", targets.times},
                                    {"source_offset_tensor", options.source_offset_tensor},
                                    {"target_offset_tensor", options.target_offset_tensor}})
    if (other.given()) checks.no_overlap(written, tensor, name, other);
}

TimeArguments time_arguments(const Problem& problem, const ConstTensorView& source_times, const Targets& targets,
                             const ResampleOptions& options) {
  TimeArguments arguments;
  arguments.dependent_launch = options.dependent_launch;
  const std::span<const std::int64_t> source = source_offsets_of(options).known;
  const std::span<const std::int64_t> target = target_offsets_of(options).known;
  if (!source.empty() || !target.empty())
    arguments.offsets =
        std::make_shared<const Offsets>(Offsets{{source.begin(), source.end()}, {target.begin(), target.end()}});
  Timeline& line = arguments.timeline;
  line.dtype = problem.times;
  line.batch = problem.batch;
  line.source_rows = problem.source;
  line.target_rows = problem.target;
  const auto first_of = [](bool packed, bool on_device, const ConstTensorView& tensor, const auto& known) {
    if (!packed) return static_cast<const std::int64_t*>(nullptr);
    return on_device ? static_cast<const std::int64_t*>(tensor.data) : known();
  };
  line.source_offsets = first_of(problem.packed_source, problem.source_offsets_on_device, options.source_offset_tensor,
                                 [&] { return arguments.offsets->source.data(); });
  line.target_offsets = first_of(problem.packed_target, problem.target_offsets_on_device, options.target_offset_tensor,
                                 [&] { return arguments.offsets->target.data(); });
  line.source = problem.shared_source_times ? Rows{source_times.data, 0, source_times.strides[0], 0, nullptr}
                                            : make_rows(source_times, line.source_offsets);
  line.uniform_grid = problem.uniform_grid;
  if (problem.uniform_grid) {
    line.grid_start = as_double(targets.grid->start);
    line.grid_period = as_double(targets.grid->period);
    line.grid_start_ns = as_nanoseconds(targets.grid->start);
    line.grid_period_ns = as_nanoseconds(targets.grid->period);
  } else {
    line.target = problem.shared_target_times ? Rows{targets.times.data, 0, targets.times.strides[0], 0, nullptr}
                                              : make_rows(targets.times, line.target_offsets);
  }
  line.outside = problem.outside;
  line.duplicates = problem.duplicates;
  if (problem.max_gap) {
    line.max_gap = as_double(options.max_gap);
    line.max_gap_ns = as_nanoseconds(options.max_gap);
  }
  return arguments;
}

Problem make_problem(const ConstTensorView& values, const ConstTensorView& source_times, const Targets& targets,
                     const TensorView& output, const ResampleOptions& options) {
  const ArgumentChecks checks("resample");
  checks.views({{"values", values}, {"output", output}, {"valid", options.valid}});
  checks.dtype("values", values, {DType::f16, DType::bf16, DType::f32, DType::f64});
  Problem problem = check_timeline("resample", "values", values, "output", output, source_times, targets, options);
  checks.same_dtype("output", output, "values", values);
  checks.memory("values", values);
  checks.writable("output", output);
  checks.no_overlap("output", output, "values", values);
  check_apart_from_times(checks, "output", output, source_times, targets, options);
  if (const ConstTensorView valid = options.valid; valid.given()) {
    problem.valid_mask = true;
    checks.dtype("valid", valid, {DType::u8});
    if (problem.packed_target)
      checks.shape("valid", valid, {problem.target}, "(rows)");
    else
      checks.shape("valid", valid, {problem.batch, problem.target}, "(B, T)");
    checks.same_device("valid", valid, "values", values);
    checks.writable("valid", valid);
    checks.no_overlap("valid", valid, "output", output);
    checks.no_overlap("valid", valid, "values", values);
    check_apart_from_times(checks, "valid", valid, source_times, targets, options);
  }
  return problem;
}

Arguments make_arguments(const Problem& problem, const ConstTensorView& values, const ConstTensorView& source_times,
                         const Targets& targets, const TensorView& output, const ResampleOptions& options) {
  Arguments arguments{time_arguments(problem, source_times, targets, options)};
  arguments.values = make_rows(values, arguments.timeline.source_offsets);
  arguments.output = make_rows(output, arguments.timeline.target_offsets);
  if (problem.valid_mask) arguments.valid = make_rows(options.valid, arguments.timeline.target_offsets);
  return arguments;
}

}  // namespace tmaops::ops::resample
