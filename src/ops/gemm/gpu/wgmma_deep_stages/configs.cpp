// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_deep_stages {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  return supports_grid(problem, 64, 64);
}

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  std::vector<Config> made{{.rows = 64, .columns = 128}};
  // For a long K and whole tiles: at an edge each element of the first stage is copied by itself.
  constexpr std::int64_t kLeastK = 2048;
  const Config split{.rows = 64, .columns = 64, .splits = 2};
  const bool whole = problem.m % split.rows == 0 && problem.n % split.columns == 0;
  if (whole && problem.k >= kLeastK && is_one_wave(split, row_major_form(problem), device)) made.push_back(split);
  return made;
}

}  // namespace tmaops::ops::gemm::wgmma_deep_stages
