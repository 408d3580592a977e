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
// So a pixel of bilinear weight 0 contributes nothing even when it is infinite or NaN.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel.hpp"
#include "ops/ms_deform_attn/elements.hpp"

namespace tmaops::ops::ms_deform_attn::reference {
namespace {

void add_pixel(const Problem& problem, const Arguments& arguments, std::int64_t at, double weight,
               std::vector<double>& sum) {
  for (std::int64_t d = 0; d < problem.channels; ++d)
    sum[static_cast<std::size_t>(d)] += weight * read(arguments.value, at + d * arguments.value.strides[3]);
}

/// Adds weight * sample_l(x, y) to the sum of every channel.
void add_sample(const Problem& problem, const Arguments& arguments, const Level& level, std::int64_t n, std::int64_t m,
                double x, double y, double weight, std::vector<double>& sum) {
  const auto pixel = [&](std::int64_t row, std::int64_t column) {
    return value_offset(arguments.value, n, level.start + row * level.width + column, m);
  };
  const auto width = static_cast<double>(level.width);
  const auto height = static_cast<double>(level.height);
  if (problem.sampling == Sampling::nearest) {
    const double column = std::clamp(std::floor(x * width + 0.5), 0.0, width - 1);
    const double row = std::clamp(std::floor(y * height + 0.5), 0.0, height - 1);
    add_pixel(problem, arguments, pixel(static_cast<std::int64_t>(row), static_cast<std::int64_t>(column)), weight,
              sum);
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
      add_pixel(problem, arguments, pixel(i, j), weight * bilinear, sum);
    }
}

void one_query(const Problem& problem, const Arguments& arguments, std::int64_t n, std::int64_t q) {
  const ConstTensorView& locations = arguments.sampling_locations;
  const ConstTensorView& weights = arguments.attention_weights;
  std::vector<double> sum(static_cast<std::size_t>(problem.channels));
  for (std::int64_t m = 0; m < problem.heads; ++m) {
    sum.assign(sum.size(), 0.0);
    for (const Level& level : problem.levels)
      for (std::int64_t p = 0; p < level.points; ++p) {
        const std::int64_t at = head_offset(locations, n, q, m) + point_offset(problem, level, p, locations);
        const double x = read_coordinate(problem, locations, at);
        const double y = read_coordinate(problem, locations, at + xy_stride(locations));
        if (!std::isfinite(x) || !std::isfinite(y)) continue;
        const double weight = read(weights, head_offset(weights, n, q, m) + point_offset(problem, level, p, weights));
        add_sample(problem, arguments, level, n, m, x, y, weight, sum);
      }
    const std::int64_t out = output_offset(problem, arguments.output, n, q, m);
    for (std::int64_t d = 0; d < problem.channels; ++d)
      write(arguments.output, out + d * arguments.output.strides[2], sum[static_cast<std::size_t>(d)]);
  }
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

void launch(const Problem& problem, const Arguments& arguments, Stream) {
  if (problem.batch == 0) return;
  parallel_for(problem.batch * problem.queries, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) one_query(problem, arguments, i / problem.queries, i % problem.queries);
  });
}

}  // namespace tmaops::ops::ms_deform_attn::reference
