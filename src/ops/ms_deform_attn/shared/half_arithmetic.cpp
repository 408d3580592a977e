#include "ops/ms_deform_attn/shared/half_arithmetic.hpp"

#include <algorithm>
#include <cmath>

namespace tmaops::ops::ms_deform_attn {
namespace {

constexpr double kUnit = 0x1p-11;  // largest relative error of rounding to f16

/// Half of the distance between neighbouring f16 numbers at the last pixel of a side: what rounding moves a sample by,
/// in pixels, at most.
double most_shift(std::int64_t side) { return kUnit * std::exp2(std::floor(std::log2(static_cast<double>(side + 1)))); }

}  // namespace

bool computes_in_f16(std::string_view variant) {
  return std::ranges::any_of(variants(), [&](const auto& one) { return one.name == variant && one.attributes.half; });
}

double half_arithmetic_error(const Problem& problem) {
  // Bilinear interpolation between independent pixels of variance 1 has the mean square (2/3)^2, its slope along an
  // axis 2 * 2/3: three times as much. A rounding error that is uniform up to `shift` has the mean square shift^2 / 3.
  // So the relative error that a coordinate leaves has the mean square shift^2.
  double coordinates = 0;
  for (const Level& level : problem.levels) {
    const double rows = most_shift(level.height), columns = most_shift(level.width);
    coordinates = std::max(coordinates, std::sqrt(rows * rows + columns * columns));  // hypot would ask for glibc 2.35
  }
  // Each term is rounded once when it is added, and errors of either sign add up like their root. Its weight is a
  // product of three factors.
  const double terms = 4 * static_cast<double>(problem.points);
  return coordinates + kUnit * (std::sqrt(terms) + 3);
}

}  // namespace tmaops::ops::ms_deform_attn
