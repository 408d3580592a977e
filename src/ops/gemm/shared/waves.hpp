// How many tiles a product has, and whether they all run at the same time. Problems here are in the form in which D is
// row-major.
#pragma once

#include <cstdint>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// Blocks, or tiles of persistent blocks, that a product is cut into.
std::int64_t tile_count(const Config& config, const Problem& problem);

/// Whether all tiles run at the same time.
bool is_one_wave(const Config& config, const Problem& problem, const DeviceInfo& device);

}  // namespace tmaops::ops::gemm
