// The definition, in f64:
//
//   output[n, q, m D + d] = sum over levels l, points p of  w[n, q, m, l, p] * sample_l(x, y)
//
// with (x, y) = sampling_locations[n, q, m, l, p, :], rounded to f32 unless the value is f64. A point whose x or y is
// not finite is skipped. v[i, j] = value[n, start_l + i * width_l + j, m, d] is pixel (row i, column j) of the level.
//
//   bilinear: sample = sum over pixels with |u - j| < 1 and |t - i| < 1 of (1 - |u - j|) (1 - |t - i|) v[i, j]
//             with u = x * width - 1/2, t = y * height - 1/2; a point that no pixel is near to is skipped
//   nearest:  sample = v[i, j], j = floor(x * width + 1/2) and i = floor(y * height + 1/2), clamped to the level
//
// So a pixel of bilinear weight 0 contributes nothing even when it is infinite or NaN, nor does one that the padding
// mask names. Where asked for, the weights of a query and head are the softmax of what is given, and the locations are
//
//   reference[n, q, l, :] + offset / (width_l, height_l)                            reference points
//   reference[n, q, l, :2] + offset / P_l * reference[n, q, l, 2:] * offset_scale   reference boxes
//
// rounded to f32 as a whole. With a border v[i, j] = value[n, start_l + (i + 1) * (width_l + 2) + j + 1, m, d].
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "ops/ms_deform_attn/shared/elements.hpp"

namespace tmaops::ops::ms_deform_attn::reference {
namespace {

/// A location, of which `at` is the offset of the given x.
std::pair<double, double> location(const Problem& problem, const Arguments& arguments, const Level& level,
                                   std::int64_t n, std::int64_t q, std::int64_t at) {
  const ConstTensorView& locations = arguments.sampling_locations;
  if (problem.reference_components == 0)
    return {read_coordinate(problem, locations, at), read_coordinate(problem, locations, at + xy_stride(locations))};
  const ConstTensorView& reference = arguments.reference_points;
  const std::int64_t row = head_offset(reference, n, q, &level - problem.levels.data());
  const auto coordinate = [&](int axis, std::int64_t side) {
    const double offset = read(locations, at + axis * xy_stride(locations));
    const double step = problem.reference_components == 2
                            ? 1 / static_cast<double>(side)
                            : read(reference, row + (axis + 2) * reference.strides[3]) * arguments.offset_scale /
                                  static_cast<double>(level.points);
    const double sum = read(reference, row + axis * reference.strides[3]) + offset * step;
    return problem.value_dtype == DType::f64 ? sum : static_cast<double>(static_cast<float>(sum));
  };
  return {coordinate(0, level.width), coordinate(1, level.height)};
}

/// The weights of a query and head, all points.
void read_weights(const Problem& problem, const ConstTensorView& tensor, std::int64_t at,
                  std::vector<double>& weights) {
  weights.clear();
  for (const Level& level : problem.levels)
    for (std::int64_t p = 0; p < level.points; ++p)
      weights.push_back(read(tensor, at + point_offset(problem, level, p, tensor)));
  if (!problem.softmax) return;
  double largest = -std::numeric_limits<double>::infinity();
  for (const double logit : weights) largest = logit > largest ? logit : largest;
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  for (double& weight : weights) weight /= sum;
}

/// Adds weight * sample_l(x, y) to the sum of every channel.
void add_sample(const Problem& problem, const Arguments& arguments, const Level& level, std::int64_t n, std::int64_t m,
                double x, double y, double weight, std::vector<double>& sum) {
  const auto add = [&](std::int64_t row, std::int64_t column, double factor) {
    const std::int64_t pixel = level.start + row * level.pitch + column;
    if (masked(problem, arguments, n, pixel)) return;
    const ConstTensorView& value = arguments.value;
    const std::int64_t at = value_offset(value, n, pixel, m);
    for (std::int64_t d = 0; d < problem.channels; ++d)
      sum[static_cast<std::size_t>(d)] += factor * read(value, at + d * value.strides[3]);
  };
  const auto width = static_cast<double>(level.width);
  const auto height = static_cast<double>(level.height);
  if (problem.sampling == Sampling::nearest) {
    const double column = std::clamp(std::floor(x * width + 0.5), 0.0, width - 1);
    const double row = std::clamp(std::floor(y * height + 0.5), 0.0, height - 1);
    add(static_cast<std::int64_t>(row), static_cast<std::int64_t>(column), weight);
    return;
  }
  const double u = x * width - 0.5;
  const double t = y * height - 0.5;
  if (!(u > -1 && u < width && t > -1 && t < height)) return;
  const auto left = static_cast<std::int64_t>(std::floor(u));
  const auto top = static_cast<std::int64_t>(std::floor(t));
  for (std::int64_t i = top; i <= top + 1; ++i)
    for (std::int64_t j = left; j <= left + 1; ++j) {
      const double bilinear = (1 - std::abs(u - static_cast<double>(j))) * (1 - std::abs(t - static_cast<double>(i)));
      if (i < 0 || i >= level.height || j < 0 || j >= level.width || bilinear == 0) continue;
      add(i, j, weight * bilinear);
    }
}

void one_query(const Problem& problem, const Arguments& arguments, std::int64_t n, std::int64_t q) {
  const ConstTensorView& locations = arguments.sampling_locations;
  std::vector<double> sum(static_cast<std::size_t>(problem.channels));
  std::vector<double> weights;
  for (std::int64_t m = 0; m < problem.heads; ++m) {
    sum.assign(sum.size(), 0.0);
    read_weights(problem, arguments.attention_weights, head_offset(arguments.attention_weights, n, q, m), weights);
    for (const Level& level : problem.levels)
      for (std::int64_t p = 0; p < level.points; ++p) {
        const std::int64_t at = head_offset(locations, n, q, m) + point_offset(problem, level, p, locations);
        const auto [x, y] = location(problem, arguments, level, n, q, at);
        if (!std::isfinite(x) || !std::isfinite(y)) continue;
        add_sample(problem, arguments, level, n, m, x, y, weights[static_cast<std::size_t>(level.first_point + p)],
                   sum);
      }
    const std::int64_t out = output_offset(problem, arguments.output, n, q, m);
    for (std::int64_t d = 0; d < problem.channels; ++d)
      write(arguments.output, out + d * arguments.output.strides[2], sum[static_cast<std::size_t>(d)]);
  }
}

void run(const Problem& problem, const Arguments& arguments) {
  parallel_for(problem.batch * problem.queries, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) one_query(problem, arguments, i / problem.queries, i % problem.queries);
  });
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::ms_deform_attn::reference
