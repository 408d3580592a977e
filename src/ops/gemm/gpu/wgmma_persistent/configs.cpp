// What it takes, and its tiles.
#include <algorithm>

#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_persistent {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  if (problem.batch > INT32_MAX / std::max<std::int64_t>(ceil_div(problem.m, 128) * ceil_div(problem.n, 128), 1))
    return Support::no("needs fewer than 2^31 tiles");
  return Support::yes();
}

namespace {

constexpr std::int64_t kFewestOfPart = 256;  // of k

/// The tiles for a product, as it is or as D^T = B^T A^T. `fused`: its D has_fused_rows().
void add_tiles(std::vector<Config>& made, const Problem& product, bool fused, bool swapped) {
  const bool plain = fused && is_plain_product(product);
  const bool k_major = product.b.order == Order::column;
  const auto takes = [&](int columns) {
    // 256 columns, and 168 of 256 rows: both warpgroups share a tile. Others wider than 128 leave few registers: up to
    // 160 for an epilogue of fragments, above for none. Rows along N come in panels of 64.
    if (columns == 256 || columns == 128) return true;
    return (columns > 160 ? plain : fused) && (columns == 192 || k_major);
  };
  for (const int columns : {256, 128, 144, 160, 168, 176, 192})
    if (takes(columns))
      made.push_back(
          {.rows = columns == 168 ? 256 : 128, .columns = columns, .swapped = swapped, .cuts = columns == 192 ? 3 : 1});
}

}  // namespace

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  const Problem row_major = row_major_form(problem);
  std::vector<Config> made;
  const bool fused = has_fused_rows(row_major);
  add_tiles(made, row_major, fused, false);
  // A part of K for each multiprocessor that tiles leave without one.
  Config tile{.rows = 128, .columns = 128};
  const std::int64_t room = device.multiprocessors / std::max<std::int64_t>(tile_count(tile, row_major), 1);
  if (problem.batch == 1 && room > 1 && row_major.k >= kFewestOfPart * room) {
    const std::int64_t steps = ceil_div(row_major.k, 64), of_part = ceil_div(steps, room);
    tile.parts = static_cast<int>(ceil_div(steps, of_part));
    made.push_back(tile);
  }
  // D^T is written by TMA alone, and its C would be read in columns.
  if (fused && !row_major.c) add_tiles(made, transposed(row_major), fused, true);
  return made;
}

}  // namespace tmaops::ops::gemm::wgmma_persistent
