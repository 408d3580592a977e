// What it takes, and its tiles.
#include "ops/gemm/shared/unrolled_problem.hpp"

namespace tmaops::ops::gemm::wgmma_unrolled_tma {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  if (Support support = supports_plain_rows(problem); !support) return support;
  if (cuts_whole(row_major_form(problem), 128, 1024)) return Support::yes();
  return Support::no("needs one batch, K of 1024, D of the type of A, M a multiple of 256 and N of 128");
}

std::vector<Config> configs(const Problem&, const DeviceInfo&) { return {{.rows = 64, .columns = 128}}; }

}  // namespace tmaops::ops::gemm::wgmma_unrolled_tma
