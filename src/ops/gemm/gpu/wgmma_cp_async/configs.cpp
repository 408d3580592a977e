// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/tile_order.hpp"

namespace tmaops::ops::gemm::wgmma_cp_async {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_extents(problem); !support) return support;
  if (!TileOrder(row_major_form(problem), 64, 128).fits() || problem.batch > INT32_MAX)
    return Support::no("needs fewer than 2^31 tiles");
  return Support::yes();
}

std::vector<Config> configs(const Problem&, const DeviceInfo&) {
  return {{.rows = 64, .columns = 128, .cost = {.start = 1.5, .finish = 0.4, .step = 0.28}}};
}

}  // namespace tmaops::ops::gemm::wgmma_cp_async
