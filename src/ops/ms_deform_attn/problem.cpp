// Argument checks of the forward operator, and of what both operators read.
#include "ops/ms_deform_attn/problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/checks.hpp"
#include "core/choice_cache.hpp"
#include "core/spelling.hpp"

namespace tmaops::ops::ms_deform_attn {
namespace {

std::string shape_text(const LevelShape& shape) {
  return std::to_string(shape.height) + "x" + std::to_string(shape.width);
}

std::string level_name(std::size_t level) { return "levels[" + std::to_string(level) + "]"; }

/// The pixels of a level in S: its own, and those of its border. False when they do not fit in 64 bits.
bool pixel_count(const LevelShape& shape, std::int64_t border, std::int64_t& pixels) {
  std::int64_t height = 0;
  std::int64_t width = 0;
  return !__builtin_add_overflow(shape.height, 2 * border, &height) &&
         !__builtin_add_overflow(shape.width, 2 * border, &width) && !__builtin_mul_overflow(height, width, &pixels);
}

/// Puts the levels where the caller says that they start.
void set_starts(const ArgumentChecks& checks, std::span<const std::int64_t> starts, Problem& problem) {
  const auto pixels = [&](const Level& level) { return (level.height + (problem.bordered ? 2 : 0)) * level.pitch; };
  if (starts.size() != problem.levels.size())
    checks.fail(ErrorCode::bad_level_start, "level_start_index", std::to_string(starts.size()) + " entries",
                std::to_string(problem.levels.size()) + ", one per level");
  for (std::size_t l = 0; l < starts.size(); ++l) {
    const std::int64_t area = pixels(problem.levels[l]);
    if (starts[l] < 0 || starts[l] > problem.length - area)
      checks.fail(ErrorCode::bad_level_start, "level_start_index[" + std::to_string(l) + "]",
                  std::to_string(starts[l]) + " for a level of " + std::to_string(area) + " pixels",
                  "0 to " + std::to_string(problem.length - area) +
                      ", so that the level lies inside S = " + std::to_string(problem.length));
    problem.levels[l].start = starts[l];
  }
  std::vector<std::size_t> order(starts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t l) { return starts[l]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::size_t before = order[i - 1];
    const std::int64_t end = starts[before] + pixels(problem.levels[before]);
    if (starts[order[i]] < end)
      checks.fail(ErrorCode::bad_level_start, "level_start_index[" + std::to_string(order[i]) + "]",
                  std::to_string(starts[order[i]]) + ", inside level " + std::to_string(before) + " which ends at " +
                      std::to_string(end),
                  "levels that do not overlap");
  }
}

/// Fills height, width, pitch and start of every level.
void set_levels(const ArgumentChecks& checks, std::span<const LevelShape> shapes, std::span<const std::int64_t> starts,
                Problem& problem) {
  const std::int64_t border = problem.bordered ? 1 : 0;
  if (shapes.empty()) checks.fail(ErrorCode::empty_level, "levels", "no levels", "at least one");
  std::int64_t total = 0;
  problem.levels.reserve(shapes.size());
  for (std::size_t l = 0; l < shapes.size(); ++l) {
    const LevelShape& shape = shapes[l];
    if (shape.height < 1 || shape.width < 1)
      checks.fail(ErrorCode::empty_level, level_name(l), "height x width = " + shape_text(shape), "at least 1x1");
    std::int64_t area = 0;
    if (!pixel_count(shape, border, area) || __builtin_add_overflow(total, area, &total))
      checks.fail(ErrorCode::size_overflow, level_name(l), "height x width = " + shape_text(shape),
                  "areas whose sum fits in 64 bits");
    problem.levels.push_back(
        {.height = shape.height, .width = shape.width, .pitch = shape.width + 2 * border, .start = total - area});
  }
  if (total != problem.length)
    checks.fail(ErrorCode::level_shapes_mismatch, "levels",
                joined(shapes, " + ", shape_text) + (problem.bordered ? ", each in a border of one pixel," : "") +
                    " = " + std::to_string(total),
                "S = " + std::to_string(problem.length) + ", the second dimension of value");
  if (!starts.empty()) set_starts(checks, starts, problem);
  // A level's start is that of its own pixels from here on.
  for (Level& level : problem.levels) level.start += border * (level.pitch + 1);
}

/// Levels that are given as tensors. Those on the host become `levels` and `starts`; of those on a GPU only the number
/// is known.
void take_level_views(const ArgumentChecks& checks, const ConstTensorView& value, const MsDeformAttnOptions& options,
                      Problem& problem, std::span<const LevelShape>& levels, std::span<const std::int64_t>& starts) {
  static_assert(sizeof(LevelShape) == 2 * sizeof(std::int64_t));
  const auto check = [&](std::string_view name, const ConstTensorView& view, std::string_view shape) {
    checks.dtype(name, view, {DType::i64});
    checks.same_device(name, view, "value", value);
    checks.memory(name, view);
    if (!view.is_contiguous())
      checks.fail(ErrorCode::bad_strides, name, "gaps between the elements", "a contiguous " + std::string(shape));
  };
  const ConstTensorView& shapes = options.spatial_shapes;
  if (!shapes.given())
    checks.fail(ErrorCode::bad_parameter, "level_starts", "given without spatial_shapes", "level_start_index");
  if (!levels.empty() || !starts.empty())
    checks.fail(ErrorCode::bad_parameter, "spatial_shapes", "given beside levels or level_start_index", "one of them");
  checks.rank("spatial_shapes", shapes, {2}, "(L, 2)");
  checks.shape("spatial_shapes", shapes, {-1, 2}, "(L, 2)");
  check("spatial_shapes", shapes, "(L, 2)");
  const std::int64_t count = shapes.shape[0];
  const ConstTensorView& own_starts = options.level_starts;
  if (own_starts.given()) {
    checks.rank("level_starts", own_starts, {1}, "(L)");
    checks.shape("level_starts", own_starts, {count}, "(L)");
    check("level_starts", own_starts, "(L)");
  }
  const auto size = static_cast<std::size_t>(count);
  problem.levels_on_device = value.device.type != DeviceType::cpu;
  if (problem.levels_on_device) {
    if (count == 0) checks.fail(ErrorCode::empty_level, "spatial_shapes", "no levels", "at least one");
    problem.levels.resize(size);
    return;
  }
  levels = {static_cast<const LevelShape*>(shapes.data), size};
  if (own_starts.given()) starts = {static_cast<const std::int64_t*>(own_starts.data), size};
}

/// Fills points and first_point of every level from the locations' shape.
void set_points(const ArgumentChecks& checks, const ConstTensorView& locations, std::span<const std::int32_t> ragged,
                Problem& problem) {
  const auto level_count = static_cast<std::int64_t>(problem.levels.size());
  problem.ragged = !ragged.empty();
  if (!problem.ragged) {
    checks.rank("sampling_locations", locations, {6}, "(N, Lq, M, L, P, 2)");
    checks.shape("sampling_locations", locations, {problem.batch, -1, problem.heads, level_count, -1, 2},
                 "(N, Lq, M, L, P, 2)");
    for (Level& level : problem.levels) level.points = locations.shape[4];
  } else {
    checks.rank("sampling_locations", locations, {5}, "(N, Lq, M, sum of points, 2)");
    if (static_cast<std::int64_t>(ragged.size()) != level_count)
      checks.fail(ErrorCode::points_mismatch, "points_per_level", std::to_string(ragged.size()) + " entries",
                  std::to_string(level_count) + ", one per level");
    std::int64_t sum = 0;
    for (std::size_t l = 0; l < ragged.size(); ++l) {
      if (ragged[l] < 0)
        checks.fail(ErrorCode::points_mismatch, "points_per_level[" + std::to_string(l) + "]",
                    std::to_string(ragged[l]), "0 or more");
      problem.levels[l].points = ragged[l];
      sum += ragged[l];
    }
    if (sum != locations.shape[3])
      checks.fail(ErrorCode::points_mismatch, "points_per_level", "a sum of " + std::to_string(sum),
                  std::to_string(locations.shape[3]) + ", the fourth dimension of sampling_locations");
    checks.shape("sampling_locations", locations, {problem.batch, -1, problem.heads, sum, 2},
                 "(N, Lq, M, sum of points, 2)");
  }
  for (Level& level : problem.levels) {
    level.first_point = problem.points;
    if (__builtin_add_overflow(problem.points, level.points, &problem.points))
      checks.fail(ErrorCode::size_overflow, "sampling_locations", locations.shape_text(), "points within 64 bits");
  }
  if (problem.points == 0)
    checks.fail(ErrorCode::empty_level, "sampling_locations", "no sampling points in " + locations.shape_text(),
                "P of at least 1");
  problem.queries = locations.shape[1];
}

/// Bytes from the first to the last element of one image and head; the largest number when that does not fit.
std::int64_t map_bytes(const ConstTensorView& value) {
  std::int64_t last = 0;
  for (const std::size_t k : {1, 3}) {
    std::int64_t reach = 0;
    if (value.shape[k] > 1 && (__builtin_mul_overflow(value.shape[k] - 1, std::abs(value.strides[k]), &reach) ||
                               __builtin_add_overflow(last, reach, &last)))
      return INT64_MAX;
  }
  const auto size = static_cast<std::int64_t>(size_of(value.dtype));
  return __builtin_mul_overflow(last + 1, size, &last) ? INT64_MAX : last;
}

/// The checks of the options that fuse other steps into the operator; fills their part of a problem whose other inputs
/// were checked.
void check_fusions(const ArgumentChecks& checks, const ConstTensorView& value, const MsDeformAttnOptions& options,
                   Problem& problem) {
  problem.softmax = options.softmax;
  if (const ConstTensorView& points = options.reference_points; points.given()) {
    const auto levels = static_cast<std::int64_t>(problem.levels.size());
    checks.rank("reference_points", points, {4}, "(N, Lq, L, 2) or (N, Lq, L, 4)");
    checks.shape("reference_points", points, {problem.batch, problem.queries, levels, points.shape[3] == 4 ? 4 : 2},
                 "(N, Lq, L, 2) or (N, Lq, L, 4)");
    checks.dtype("reference_points", points, {DType::f16, DType::bf16, DType::f32, DType::f64});
    checks.same_device("reference_points", points, "value", value);
    checks.memory("reference_points", points);
    problem.reference_components = static_cast<int>(points.shape[3]);
    problem.dense_references = points.dtype != DType::f64 && points.strides[3] == 1 &&
                               static_cast<std::size_t>(row_alignment(points)) % (2 * size_of(points.dtype)) == 0;
    if (!std::isfinite(options.offset_scale))
      checks.fail(ErrorCode::bad_parameter, "offset_scale", std::to_string(options.offset_scale), "a finite number");
  }
  if (const ConstTensorView& mask = options.padding_mask; mask.given()) {
    checks.rank("padding_mask", mask, {2}, "(N, S)");
    checks.shape("padding_mask", mask, {problem.batch, problem.length}, "(N, S)");
    checks.dtype("padding_mask", mask, {DType::u8});
    checks.same_device("padding_mask", mask, "value", value);
    checks.memory("padding_mask", mask);
    problem.masked = true;
  }
}

}  // namespace

std::size_t hash_of(const Problem& problem) {
  return hash_numbers(problem.batch, problem.length, problem.heads, problem.channels, problem.queries, problem.points,
                      problem.value_dtype, problem.location_dtype, problem.row_alignment);
}

Support supports_plain(const Problem& problem) {
  if (problem.softmax) return Support::no("takes weights, not logits (softmax)");
  if (problem.reference_components != 0) return Support::no("takes locations, not offsets from reference points");
  if (problem.masked) return Support::no("takes no padding mask");
  return supports_value_output(problem);
}

Support supports_value_output(const Problem& problem) {
  if (problem.output_dtype != problem.value_dtype)
    return Support::no("writes the value's type, the output is " + std::string(to_string(problem.output_dtype)));
  return Support::yes();
}

std::string Problem::text() const {
  const auto side_lengths = [](const Level& level) { return shape_text({level.height, level.width}); };
  const auto point_count = [](const Level& level) { return std::to_string(level.points); };
  const std::string level_text =
      levels_on_device ? std::to_string(levels.size()) + " on the device" : joined(levels, " ", side_lengths);
  const std::string points_text = ragged           ? "[" + joined(levels, ", ", point_count) + "]"
                                  : levels.empty() ? "0"
                                                   : point_count(levels.front());
  std::string text = "ms_deform_attn: {batch: " + std::to_string(batch) + ", queries: " + std::to_string(queries) +
                     ", heads: " + std::to_string(heads) + ", channels: " + std::to_string(channels) +
                     ", levels: " + level_text + ", points: " + points_text +
                     ", dtype: " + std::string(to_string(value_dtype));
  if (location_dtype != value_dtype) text += ", location_dtype: " + std::string(to_string(location_dtype));
  if (weight_dtype != value_dtype) text += ", weight_dtype: " + std::string(to_string(weight_dtype));
  if (output_dtype != value_dtype) text += ", output_dtype: " + std::string(to_string(output_dtype));
  if (sampling == Sampling::nearest) text += ", sampling: nearest";
  std::vector<std::string> fusions;
  if (softmax) fusions.emplace_back("softmax");
  if (reference_components != 0) fusions.push_back("reference" + std::to_string(reference_components));
  if (masked) fusions.emplace_back("mask");
  if (bordered) fusions.emplace_back("border");
  if (!fusions.empty()) text += ", fused: [" + joined(fusions) + "]";
  return text + "}";
}

std::string Config::text() const {
  if (groups == 0) return {};
  return std::to_string(groups) + (groups == 1 ? " group" : " groups");
}

Problem make_input_problem(std::string_view op, const ConstTensorView& value, std::span<const LevelShape> levels,
                           const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                           const MsDeformAttnOptions& options) {
  const ArgumentChecks checks(op);
  checks.views({{"value", value},
                {"sampling_locations", sampling_locations},
                {"attention_weights", attention_weights},
                {"reference_points", options.reference_points},
                {"padding_mask", options.padding_mask},
                {"spatial_shapes", options.spatial_shapes},
                {"level_starts", options.level_starts}});
  checks.list("levels", levels);
  checks.list("level_start_index", options.level_start_index);
  checks.list("points_per_level", options.points_per_level);
  checks.enumerator("sampling", options.sampling, {TMAOPS_WORDS_sampling(TMAOPS_TEXT)});
  checks.rank("value", value, {4}, "(N, S, M, D)");
  Problem problem;
  problem.batch = value.shape[0];
  problem.length = value.shape[1];
  problem.heads = value.shape[2];
  problem.channels = value.shape[3];
  problem.device = value.device;
  problem.value_dtype = problem.output_dtype = value.dtype;
  problem.location_dtype = sampling_locations.dtype;
  problem.weight_dtype = attention_weights.dtype;
  problem.sampling = options.sampling;
  problem.bordered = options.bordered_value;
  problem.dense_channels = value.strides[3] == 1 || problem.channels <= 1;
  problem.row_alignment = row_alignment(value);

  checks.dtype("value", value, {DType::f16, DType::bf16, DType::f32, DType::f64});
  checks.dtype("sampling_locations", sampling_locations, {DType::f16, DType::bf16, DType::f32, DType::f64});
  checks.dtype("attention_weights", attention_weights, {DType::f16, DType::bf16, DType::f32, DType::f64});
  checks.same_device("sampling_locations", sampling_locations, "value", value);
  checks.same_device("attention_weights", attention_weights, "value", value);

  std::span<const std::int64_t> starts = options.level_start_index;
  if (options.spatial_shapes.given() || options.level_starts.given())
    take_level_views(checks, value, options, problem, levels, starts);
  if (!problem.levels_on_device) set_levels(checks, levels, starts, problem);
  set_points(checks, sampling_locations, options.points_per_level, problem);
  if (problem.ragged) {
    checks.rank("attention_weights", attention_weights, {4}, "(N, Lq, M, sum of points)");
    checks.shape("attention_weights", attention_weights,
                 {problem.batch, problem.queries, problem.heads, problem.points}, "(N, Lq, M, sum of points)");
  } else {
    checks.rank("attention_weights", attention_weights, {5}, "(N, Lq, M, L, P)");
    checks.shape("attention_weights", attention_weights,
                 {problem.batch, problem.queries, problem.heads, static_cast<std::int64_t>(problem.levels.size()),
                  problem.levels.front().points},
                 "(N, Lq, M, L, P)");
  }
  problem.dense_pairs =
      sampling_locations.strides[static_cast<std::size_t>(sampling_locations.rank - 1)] == 1 &&
      static_cast<std::size_t>(row_alignment(sampling_locations)) % (2 * size_of(sampling_locations.dtype)) == 0;
  problem.map_bytes = map_bytes(value);
  for (const std::size_t k : {0, 1, 2, 3}) problem.positive_strides &= value.strides[k] > 0;
  check_fusions(checks, value, options, problem);
  checks.memory("value", value);
  checks.memory("sampling_locations", sampling_locations);
  checks.memory("attention_weights", attention_weights);
  if (problem.length > 1) problem.pixel_bytes = value.strides[1] * static_cast<std::int64_t>(size_of(value.dtype));
  return problem;
}

void check_rows(const ArgumentChecks& checks, std::string_view argument, const ConstTensorView& tensor,
                const ConstTensorView& value, Problem& problem) {
  std::int64_t width = 0;
  if (__builtin_mul_overflow(problem.heads, problem.channels, &width))
    checks.fail(ErrorCode::size_overflow, "value", value.shape_text(), "M * D within 64 bits");
  checks.rank(argument, tensor, {3}, "(N, Lq, M * D)");
  checks.shape(argument, tensor, {problem.batch, problem.queries, width}, "(N, Lq, M * D)");
  problem.dense_output = tensor.strides[2] == 1 || width <= 1;
  problem.dense_channels = problem.dense_channels && problem.dense_output;
  problem.row_alignment = std::min(problem.row_alignment, row_alignment(tensor));
}

Problem make_problem(const ConstTensorView& value, std::span<const LevelShape> levels,
                     const ConstTensorView& sampling_locations, const ConstTensorView& attention_weights,
                     const TensorView& output, const MsDeformAttnOptions& options) {
  const ArgumentChecks checks("ms_deform_attn");
  checks.view("output", output);
  Problem problem = make_input_problem("ms_deform_attn", value, levels, sampling_locations, attention_weights, options);
  check_rows(checks, "output", output, value, problem);
  if (output.dtype != DType::f32 || value.dtype == DType::f64) checks.same_dtype("output", output, "value", value);
  problem.output_dtype = output.dtype;
  checks.same_device("output", output, "value", value);
  checks.writable("output", output);
  checks.no_overlap("output", output, "value", value);
  checks.no_overlap("output", output, "sampling_locations", sampling_locations);
  checks.no_overlap("output", output, "attention_weights", attention_weights);
  if (problem.reference_components != 0)
    checks.no_overlap("output", output, "reference_points", options.reference_points);
  if (problem.masked) checks.no_overlap("output", output, "padding_mask", options.padding_mask);
  if (options.spatial_shapes.given()) checks.no_overlap("output", output, "spatial_shapes", options.spatial_shapes);
  if (options.level_starts.given()) checks.no_overlap("output", output, "level_starts", options.level_starts);
  return problem;
}

}  // namespace tmaops::ops::ms_deform_attn
