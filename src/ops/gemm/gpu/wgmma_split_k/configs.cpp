// What it takes, and its tiles.
#include <algorithm>
#include <span>

#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_split_k {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  return supports_grid(problem, 64, 16);
}

namespace {

constexpr int kMostWaves = 2;              // more are for wgmma_persistent, but where one column of tiles covers N
constexpr std::int64_t kShortK = 256;      // so few stages that several blocks fit on a multiprocessor
constexpr std::int64_t kFewestEach = 256;  // of k, per block of a cluster

struct Tile {
  int rows, columns;
  int most_splits = 0;  // 0: none, and in whole chunks (has_whole_chunks) alone
};
constexpr Tile kTiles[] = {{64, 64, 4}, {64, 128, 4}, {128, 128, 1}, {192, 96}};
/// Where B runs along K, so many widths that some tile nearly fills one wave: one tile more would double the time.
constexpr Tile kAlongK[] = {{64, 32, 4}, {64, 48},      {64, 80},   {64, 96},   {64, 112}, {64, 144},
                            {64, 160},   {64, 176},     {64, 208},  {64, 256},  {128, 80}, {128, 96, 4},
                            {128, 144},  {128, 160, 1}, {192, 72},  {192, 80},  {192, 88}, {192, 104},
                            {192, 128},  {192, 136},    {192, 144}, {192, 152}, {256, 80}};
constexpr Tile kAlongN[] = {{64, 192}};

/// Tiles with as many columns were the fastest for such products, or within 4 % (docs/findings/gemm_models.md, L13).
bool has_few_columns(const Problem& product) { return product.b.order != Order::row && product.n <= 32; }

/// The tiles for a product, as it is or as D^T = B^T A^T.
void add_tiles(std::vector<Config>& made, const Problem& product, const DeviceInfo& device, bool swapped,
               bool whole_chunks) {
  const bool k_major = product.b.order != Order::row;
  const auto add = [&](const Tile& tile) {
    for (const int splits : {1, 2, 4, 8}) {
      const Config config{.rows = tile.rows, .columns = tile.columns, .splits = splits, .swapped = swapped};
      const std::int64_t blocks = tile_count(config, product);
      const int at_once = device.multiprocessors * (tile.columns <= 32 ? 2 : 1);
      const bool few = product.k <= kShortK || product.n <= tile.columns || blocks <= at_once * kMostWaves;
      // Blocks that wait for others of their cluster should all run at once.
      if (!(splits == 1 ? few : blocks <= at_once && product.k >= kFewestEach * splits)) break;
      if (splits > std::max(tile.most_splits, 1)) break;
      if (splits == 2 && tile.columns == 64 && product.m % 64 == 0 && product.n % 64 == 0 && product.k >= 2048)
        continue;  // wgmma_deep_stages has this tile
      made.push_back(config);
    }
  };
  if (has_few_columns(product)) return add(product.n <= 16 ? Tile{64, 16, 8} : Tile{64, 32, 4});
  using Tiles = std::span<const Tile>;
  for (const Tiles tiles : {Tiles(kTiles), k_major ? Tiles(kAlongK) : Tiles(kAlongN)})
    for (const Tile& tile : tiles)
      if (whole_chunks || tile.most_splits > 0) add(tile);
}

}  // namespace

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  const Problem row_major = row_major_form(problem);
  std::vector<Config> made;
  const bool whole_chunks = has_whole_chunks(row_major);
  const bool swaps = !row_major.c || !has_fused_rows(row_major);  // else the C of D^T would be read in columns
  if (!swaps || has_few_columns(row_major) || !has_few_columns(transposed(row_major)))
    add_tiles(made, row_major, device, false, whole_chunks);
  if (swaps && !has_few_columns(row_major)) add_tiles(made, transposed(row_major), device, true, whole_chunks);
  return made;
}

}  // namespace tmaops::ops::gemm::wgmma_split_k
