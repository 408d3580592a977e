// The arithmetic of the published kernels on the host, every step rounded to f16: for tests.
#pragma once

#include <bit>
#include <cmath>

#include "ops/ms_deform_attn/case.hpp"

namespace tmaops::test {

/// What an operation on f16 numbers rounds its exact result to. f64 holds products and sums of these exactly, but for
/// sums of very different sizes. On the way through f32 the last bit notes what was cut off, so that the second
/// rounding sees it.
inline double half(double exact) {
  auto between = static_cast<float>(exact);
  if (static_cast<double>(between) != exact) {
    if (std::abs(static_cast<double>(between)) > std::abs(exact)) between = std::nextafter(between, 0.0f);
    between = std::bit_cast<float>(std::bit_cast<std::uint32_t>(between) | 1u);
  }
  return static_cast<double>(static_cast<float>(float16(between)));
}

/// What a kernel that computes in f16 makes of a case with one head and finite numbers; `want` has its layout.
inline Buffer half_model(Case& c) {
  const Shape& shape = c.shape();
  const auto levels = static_cast<std::int64_t>(shape.levels.size());
  Buffer output = c.output();
  for (std::int64_t row = 0; row < shape.batch * shape.queries; ++row) {
    std::vector<double> sum(static_cast<std::size_t>(shape.channels), 0.0);
    std::int64_t start = row / shape.queries * shape.length();
    for (std::int64_t l = 0; l < levels; ++l) {
      const LevelShape& level = shape.levels[static_cast<std::size_t>(l)];
      for (std::int64_t p = 0; p < shape.points; ++p) {
        const std::int64_t point = (row * levels + l) * shape.points + p;
        const double x = half(c.locations().get(2 * point) * static_cast<double>(level.width) + 0.5);
        const double y = half(c.locations().get(2 * point + 1) * static_cast<double>(level.height) + 0.5);
        if (!(x > 0 && y > 0 && x < half(static_cast<double>(level.width + 1)) &&
              y < half(static_cast<double>(level.height + 1))))
          continue;
        const double right = x - std::floor(x);
        const double below = y - std::floor(y);
        const double sides[2] = {half(1 - right), right};
        const double rows[2] = {half(1 - below), below};
        for (int k = 0; k < 4; ++k) {
          const std::int64_t column = static_cast<std::int64_t>(x) - 1 + k % 2;
          const std::int64_t line = static_cast<std::int64_t>(y) - 1 + k / 2;
          if (column < 0 || line < 0 || column >= level.width || line >= level.height) continue;
          const double weight = half(half(sides[k % 2] * rows[k / 2]) * c.weights().get(point));
          for (std::int64_t d = 0; d < shape.channels; ++d) {
            double& one = sum[static_cast<std::size_t>(d)];
            one = half(weight * c.value().get((start + line * level.width + column) * shape.channels + d) + one);
          }
        }
      }
      start += level.height * level.width;
    }
    for (std::int64_t d = 0; d < shape.channels; ++d)
      output.set(row * shape.channels + d, sum[static_cast<std::size_t>(d)]);
  }
  return output;
}

/// The published workload in small: one head, 32 channels, four levels of eight points, f16.
inline Shape published_shape(std::int64_t batch, std::int64_t queries, std::vector<LevelShape> levels) {
  return {.batch = batch,
          .heads = 1,
          .channels = 32,
          .queries = queries,
          .levels = std::move(levels),
          .points = 8,
          .value_dtype = DType::f16,
          .location_dtype = DType::f16,
          .weight_dtype = DType::f16,
          .odd_locations = false};
}

}  // namespace tmaops::test
