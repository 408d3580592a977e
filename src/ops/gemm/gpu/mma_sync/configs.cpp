// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"

namespace tmaops::ops::gemm::mma_sync {

Support supports(const Problem& problem, const DeviceInfo&) { return supports_any_batch(problem); }

/// The costs are not fitted to launches: they are above that of wgmma_cp_async for every problem, so that this variant
/// is chosen only where there is no wgmma.
std::vector<Config> configs(const Problem&, const DeviceInfo&) {
  return {{.rows = 128, .columns = 128, .cost = {.start = 1.6, .finish = 1.0, .step = 1.1}},
          {.rows = 64, .columns = 128, .cost = {.start = 1.6, .finish = 0.6, .step = 0.75}}};
}

}  // namespace tmaops::ops::gemm::mma_sync
