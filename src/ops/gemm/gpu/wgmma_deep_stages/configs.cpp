// What it takes, and its tile.
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_deep_stages {

constexpr Config kTile{.rows = 64, .columns = 64, .splits = 2};

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  const bool whole = problem.m % kTile.rows == 0 && problem.n % kTile.columns == 0 && problem.k >= 2048;
  if (whole && problem.batch <= kMostGridRows && is_one_wave(kTile, row_major_form(problem), device))
    return Support::yes();
  return Support::no("needs whole tiles of 64 x 64 in one wave, and K of at least 2048");
}

std::vector<Config> configs(const Problem&, const DeviceInfo&) { return {kTile}; }

}  // namespace tmaops::ops::gemm::wgmma_deep_stages
