// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_split_k {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  return supports_grid(problem, 64, 16);
}

namespace {

constexpr int kMostBlocks = 4;  // per multiprocessor: with more tiles wgmma_persistent has less to start

/// The tiles for a product, as it is or as D^T = B^T A^T.
void add_tiles(std::vector<Config>& made, const Problem& product, const DeviceInfo& device, bool swapped) {
  const bool k_major = product.b.order != Order::row;
  const auto add = [&](int rows, int columns) {
    for (int splits = 1; splits <= (columns <= 64 ? 8 : 4); splits *= 2) {
      const Config config{.rows = rows, .columns = columns, .splits = splits, .swapped = swapped};
      const std::int64_t blocks = tile_count(config, product);
      if (splits > 1 && (blocks > device.multiprocessors * 2 || product.k < 256 * splits)) break;
      if (blocks <= device.multiprocessors * kMostBlocks) made.push_back(config);
    }
  };
  if (k_major) {
    if (product.n <= 16) return add(64, 16);
    if (product.n <= 32) return add(64, 32);
    add(128, 96);
  }
  add(64, 64);
  add(64, 128);
  add(128, 128);
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
