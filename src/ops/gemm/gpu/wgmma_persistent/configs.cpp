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

/// The tiles for a product, as it is or as D^T = B^T A^T, of which most are for a `plain` one.
void add_tiles(std::vector<Config>& made, const Problem& product, bool plain, bool swapped) {
  const bool k_major = product.b.order == Order::column;
  for (const int columns : {256, 128, 144, 160, 176, 192}) {
    // 256: both warpgroups share a tile. Other tiles wider than 128 leave no registers for an epilogue, and rows
    // along N come in panels of 64.
    if (columns != 256 && columns != 128 && !(plain && (k_major || columns == 192))) continue;
    // Clusters gain next to nothing elsewhere (docs/findings/gemm_large.md, P12).
    for (int cluster = 1; cluster <= (columns == 192 ? 2 : 1); ++cluster)
      made.push_back(
          {.rows = 128, .columns = columns, .cluster = cluster, .swapped = swapped, .cuts = columns == 192 ? 3 : 1});
  }
}

}  // namespace

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  const Problem row_major = row_major_form(problem);
  std::vector<Config> made;
  const bool plain = has_plain_rows(row_major);
  add_tiles(made, row_major, plain, false);
  // D^T is written by TMA alone, and its C would be read in columns.
  if (has_fused_rows(row_major) && !row_major.c) add_tiles(made, transposed(row_major), plain, true);
  return made;
}

}  // namespace tmaops::ops::gemm::wgmma_persistent
