// What a product costs on a GPU with each tile: what select() compares. The variants' costs stand with their tiles in
// gpu/<variant>/configs.cpp, fitted to launches on an H200 (docs/findings/gemm.md, G1): operands in the L2 up to 1024,
// cold above. Problems here are in the form in which D is row-major.
#pragma once

#include <optional>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// Time of a launch in microseconds; nothing where the tile's cost is not known.
std::optional<double> estimate(const Config& config, const Problem& problem, const DeviceInfo& device);

}  // namespace tmaops::ops::gemm
