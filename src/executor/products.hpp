// Products of the tensor cores (PTX ISA "wgmma.mma_async") that a warp has issued.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "executor/cells.hpp"

namespace tmaops::executor {

/// Accumulators of a warp that products are still adding to.
struct Accumulators {
  std::array<float*, 32> registers{};
  std::size_t each = 0;  // per lane
  std::vector<float> values;
  int products = 0;  // that have not ended
};

/// wgmma by one of the four warps.
struct Product {
  int columns = 0;
  bool bf16 = false;
  std::uint64_t a = 0, b = 0;
  bool a_mn_major = false, b_mn_major = false, accumulate = false;
  Agent slot = 0;
  Clock clock = 0;
  const void* place = nullptr;
  std::shared_ptr<Accumulators> sums;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> reads;  // address and bytes
};

}  // namespace tmaops::executor
