// Bank conflicts of one shared-memory instruction of a warp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tma/tile.hpp"

namespace tmaops::tma {

inline constexpr int kBanks = 32;  // 4 bytes wide each (CUDA Programming Guide, shared memory)
inline constexpr std::uint32_t kInactiveLane = 0xFFFFFFFFU;  // an address that stands for a lane that does nothing

/// How the hardware serves a warp's access. A wavefront delivers at most one 4-byte word of every bank. Lanes that want
/// the same word share it.
struct BankUse {
  int phases = 0;      // groups of lanes that are always served one after the other
  int wavefronts = 0;  // sum over the phases of the most distinct words wanted of one bank
  int conflicts() const { return wavefronts - phases; }
};

/// Bank conflicts of one load or store of `bytes` (1, 2, 4, 8 or 16) per lane; `addresses` has at most 32 entries, each
/// a multiple of `bytes`. Throws Error bad_parameter otherwise.
///
/// The model: up to 4 bytes per lane the whole warp is one phase. 8-byte accesses are served in 2 phases of 16 lanes,
/// 16-byte accesses in 4 phases of 8 lanes, the quarter-warps of the CUDA Programming Guide. Phases without an active
/// lane do not count.
BankUse bank_use(std::span<const std::uint32_t> addresses, int bytes);

/// Addresses of a warp whose lane i reads `bytes` at byte `column` of tile row `first_row + i`; lanes past the last row
/// are inactive. With 16 bytes and 8 lanes this is what one ldmatrix tile does.
std::vector<std::uint32_t> column_access(const TensorMapSpec& spec, const TileLoad& load, std::int64_t first_row,
                                         std::int64_t column, int lanes = 32);

}  // namespace tmaops::tma
