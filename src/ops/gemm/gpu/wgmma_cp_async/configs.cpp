// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"

namespace tmaops::ops::gemm::wgmma_cp_async {

Support supports(const Problem& problem, const DeviceInfo&) { return supports_any_batch(problem); }

std::vector<Config> configs(const Problem&, const DeviceInfo&) { return {{.rows = 64, .columns = 128}}; }

}  // namespace tmaops::ops::gemm::wgmma_cp_async
