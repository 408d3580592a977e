#include "ops/gemm/estimate.hpp"

#include <algorithm>

#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm {
namespace {

constexpr std::int64_t kStep = 64;  // k of a step
/// Lines of 128 bytes that the L2 gives to all multiprocessors together in a microsecond, to TMA and to cp.async.
constexpr double kL2Lines = 100e3;
/// What a last wave takes whose tiles are cut, of what a whole one takes: A is read as often.
constexpr double kCutWave = 0.5;
constexpr std::int64_t kLineElements = 64;  // of 16 bits, in 128 bytes

/// Lines that a row of 64 elements of an operand touches: rows that do not start at multiples of 128 bytes lie in two.
int lines_per_row(const MatrixLayout& layout) {
  const bool aligned = layout.alignment % 128 == 0 && layout.leading_dimension() % kLineElements == 0;
  return aligned ? 1 : 2;
}

}  // namespace

std::optional<double> estimate(const Config& config, const Problem& problem, const DeviceInfo& device) {
  const TileCost& cost = config.cost;
  if (cost.step <= 0) return std::nullopt;
  const std::int64_t all = tile_count(config, problem);
  const std::int64_t at_once = std::max(device.multiprocessors, 1);
  const std::int64_t rest = all % at_once;
  const bool cut = cost.cuts > 1 && rest > 0 && rest * cost.cuts <= at_once;
  const double waves = static_cast<double>(ceil_div(all, at_once)) - (cut ? 1 - kCutWave : 0);
  const auto steps = static_cast<double>(ceil_div(problem.k, kStep)) / config.splits;
  const double lines = config.rows * lines_per_row(problem.a) +
                       static_cast<double>(config.columns) / config.cluster * lines_per_row(problem.b);
  const double from_l2 = lines * static_cast<double>(std::min(all, at_once)) / kL2Lines;
  return cost.start + waves * (cost.finish + steps * std::max(cost.step, from_l2));
}

}  // namespace tmaops::ops::gemm
