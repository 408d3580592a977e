// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"

namespace tmaops::ops::gemm::wgmma_latency {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  return supports_grid(problem, 64, 32);
}

std::vector<Config> configs(const Problem&, const DeviceInfo&) { return {{.rows = 64, .columns = 32}}; }

}  // namespace tmaops::ops::gemm::wgmma_latency
