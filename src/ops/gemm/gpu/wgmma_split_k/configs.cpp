// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_split_k {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  return supports_grid(problem, 64, 16);
}

namespace {

constexpr int kMostBlocks = 4;             // per multiprocessor: with more tiles wgmma_persistent has less to start
constexpr std::int64_t kShortK = 256;      // so few stages that several blocks fit on a multiprocessor
constexpr std::int64_t kFewestEach = 256;  // of k, per block of a cluster

/// The tiles for a product, as it is or as D^T = B^T A^T.
void add_tiles(std::vector<Config>& made, const Problem& product, const DeviceInfo& device, bool swapped) {
  const bool k_major = product.b.order != Order::row;
  const auto add = [&](int rows, int columns) {
    const int most = columns <= 64 ? 8 : columns <= 128 ? 4 : 3;
    for (const int splits : {1, 2, 3, 4, 8}) {
      const Config config{.rows = rows, .columns = columns, .splits = splits, .swapped = swapped};
      const std::int64_t blocks = tile_count(config, product);
      // Blocks that wait for others of their cluster should all run at once.
      const bool fits = splits == 1 ? product.k <= kShortK || blocks <= device.multiprocessors * kMostBlocks
                                    : blocks <= device.multiprocessors * (columns <= 32 ? 2 : 1);
      if (splits > most || !fits || (splits > 1 && product.k < kFewestEach * splits)) break;
      made.push_back(config);
    }
  };
  if (k_major && product.n <= 16) return add(64, 16);
  if (k_major && product.n <= 32) return add(64, 32);
  // Which tiles are ever the fastest differs: h100/gemm_choices.json.
  if (swapped) {
    add(64, 64);
    add(64, 128);
    if (k_major) add(128, 160);
  } else {
    add(128, 128);
    if (k_major) add(64, 96);
  }
  if (k_major) add(128, 96);
}

}  // namespace

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  const Problem row_major = row_major_form(problem);
  std::vector<Config> made;
  add_tiles(made, row_major, device, false);
  add_tiles(made, transposed(row_major), device, true);
  return made;
}

}  // namespace tmaops::ops::gemm::wgmma_split_k
