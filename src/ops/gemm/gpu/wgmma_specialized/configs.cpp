// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"

namespace tmaops::ops::gemm::wgmma_specialized {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  if (Support support = supports_plain_rows(problem); !support) return support;
  return supports_grid(problem, 128, 128);
}

std::vector<Config> configs(const Problem&, const DeviceInfo&) {
  return {{.rows = 128, .columns = 128}, {.rows = 128, .columns = 256}};
}

}  // namespace tmaops::ops::gemm::wgmma_specialized
