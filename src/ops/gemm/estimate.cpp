#include "ops/gemm/estimate.hpp"

#include <algorithm>
#include <string>
#include <tuple>

#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm {
namespace {

constexpr std::int64_t kStep = 64;  // k of a step
/// Lines of 128 bytes that the L2 gives to all multiprocessors together in a microsecond, to TMA and to cp.async.
constexpr double kL2Lines = 150e3;
/// What a last wave takes whose tiles are cut, of what a whole one takes: A is read as often.
constexpr double kCutWave = 0.5;
constexpr std::int64_t kElementBytes = 2, kLineBytes = 128;
/// Part of the L2 that a call finds filled with its inputs when they are larger than half of it.
constexpr double kKeptPart = 0.45;
/// Microseconds that a bias, an activation or a residual takes on each column of a tile. A block finishes its tile
/// while others multiply, so a last wave counts by its share of the blocks.
constexpr double kFinishColumn = 0.03;
/// Part of the shorter of products and reads from memory that does not overlap with the longer one.
constexpr double kOverlapLoss = 0.15;

/// Bytes that the memory gives in a microsecond.
double memory_rate(const DeviceInfo& device) { return device.name.starts_with("NVIDIA H200") ? 4.3e6 : 3.1e6; }

/// Time to read what a call with the same inputs as the last one does not find in the L2.
double memory_time(const Problem& problem, const DeviceInfo& device) {
  const auto cache = static_cast<double>(device.l2_bytes);
  const auto [m, n, k] =
      std::tuple{static_cast<double>(problem.m), static_cast<double>(problem.n), static_cast<double>(problem.k)};
  const double bytes = 2 * static_cast<double>(problem.batch) * (m * k + k * n + m * n);
  return bytes > cache / 2 ? std::max(0.0, bytes - kKeptPart * cache) / memory_rate(device) : 0;
}

/// Lines that a row of 64 elements of an operand touches in the mean: where it begins between two it lies in both.
double lines_per_row(const MatrixLayout& layout) {
  const std::int64_t begins = layout.leading_dimension() * kElementBytes | layout.alignment | kLineBytes;
  return 2 - static_cast<double>(begins & -begins) / kLineBytes;
}

/// A line of costs.inc.
struct KnownCost {
  std::string_view tile;  // "split_k/64x16k2t"
  TileCost cost;
};
constexpr KnownCost kKnownCosts[] = {
#include "ops/gemm/costs.inc"
};

}  // namespace

std::optional<TileCost> cost_of(std::string_view variant, const Config& config) {
  Config known = config;
  known.parts = std::min(known.parts, 2);  // costs.inc has one for every number of parts
  const std::string tile = std::string(variant.substr(variant.starts_with("wgmma_") ? 6 : 0)) + "/" + known.text();
  for (const KnownCost& one : kKnownCosts)
    if (one.tile == tile) return one.cost;
  return std::nullopt;
}

std::optional<double> estimate(std::string_view variant, const Config& config, const Problem& given,
                               const DeviceInfo& device) {
  const std::optional<TileCost> cost = cost_of(variant, config);
  if (!cost) return std::nullopt;
  const Problem problem = config.swapped ? transposed(given) : given;
  const std::int64_t all = tile_count(config, problem);
  const std::int64_t at_once = blocks_at_once(config, device);
  const std::int64_t rest = all % at_once;
  const bool cut = config.cuts > 1 && rest > 0 && rest * config.cuts <= at_once;
  const double waves = static_cast<double>(ceil_div(all, at_once)) - (cut ? 1 - kCutWave : 0);
  const auto steps = static_cast<double>(ceil_div(ceil_div(problem.k, kStep), config.parts)) / config.splits;
  const double lines = config.rows * lines_per_row(problem.a) +
                       static_cast<double>(config.columns) / config.cluster * lines_per_row(problem.b);
  const double from_l2 = lines * static_cast<double>(std::min(all, at_once)) / kL2Lines;
  const bool edges = problem.m % config.rows != 0 || problem.n % config.columns != 0;
  const double share = std::max(static_cast<double>(all) / static_cast<double>(at_once), 1.0);
  const double finished = is_plain_product(problem) ? 0 : kFinishColumn * config.columns * share;
  const double work = (waves - 1) * cost->finish + waves * steps * std::max(cost->step, from_l2) + finished;
  const double memory = cost->stream * memory_time(problem, device);
  return cost->start + (edges ? cost->edge : 0) + std::max(work, memory) + kOverlapLoss * std::min(work, memory);
}

}  // namespace tmaops::ops::gemm
