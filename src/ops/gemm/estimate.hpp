// What a product, in the form in which D is row-major, costs on a GPU with each tile: what select() compares where
// nothing was measured. scripts/fit_gemm.py fits the costs of the tiles (costs.inc) to times with inputs in the L2.
#pragma once

#include <optional>
#include <string_view>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// What a tile costs, in microseconds.
struct TileCost {
  double start = 0;   // before the first product and after the last one, per launch
  double finish = 0;  // between two waves, while the tensor cores stand still
  double step = 0;    // per 64 of k of a tile
  double edge = 0;    // per launch, where tiles reach beyond D
  double stream = 1;  // how many times as long as the memory needs it takes to read from there
};

/// Of a variant's tile; nothing where it was never measured.
std::optional<TileCost> cost_of(std::string_view variant, const Config& config);

/// Time of a launch in microseconds at the clock of small products; nothing where the tile's cost is not known. What
/// slows all tiles down alike, such as the power limit, is left out.
std::optional<double> estimate(std::string_view variant, const Config& config, const Problem& problem,
                               const DeviceInfo& device);

}  // namespace tmaops::ops::gemm
