// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_cluster8 {

namespace {

/// Its step is what enters a multiprocessor from rows that lie in two lines.
constexpr Config kTile{.rows = 64, .columns = 144, .cluster = 8};

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  if (Support support = supports_plain_rows(problem); !support) return support;
  if (!is_one_wave(kTile, row_major_form(problem), device))
    return Support::no("needs at most as many tiles as clusters of eight run at the same time");
  return supports_grid(problem, 64, 128);
}

std::vector<Config> configs(const Problem&, const DeviceInfo&) { return {kTile}; }

}  // namespace tmaops::ops::gemm::wgmma_cluster8
