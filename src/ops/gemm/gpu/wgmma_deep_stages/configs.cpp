// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_deep_stages {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  return supports_grid(problem, 64, 64);
}

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  std::vector<Config> made{{.rows = 64, .columns = 128, .cost = {.start = 1.5, .finish = 0.5, .step = 0.19}}};
  // For a long K, and so for cold operands: the step is what the memory needs for a wave of blocks, and the exchange of
  // the accumulators is in `finish`.
  constexpr std::int64_t kLeastK = 2048;
  const Config split{.rows = 64, .columns = 64, .splits = 2, .cost = {.start = 1.5, .finish = 0.7, .step = 0.27}};
  if (problem.k >= kLeastK && is_one_wave(split, row_major_form(problem), device)) made.push_back(split);
  return made;
}

}  // namespace tmaops::ops::gemm::wgmma_deep_stages
