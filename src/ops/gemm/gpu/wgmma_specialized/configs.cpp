// What it takes, and its tiles.
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_specialized {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  if (Support support = supports_plain_rows(problem); !support) return support;
  return supports_grid(problem, 128, 128);
}

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  std::vector<Config> made{{.rows = 128, .columns = 128}, {.rows = 128, .columns = 256}};
  const Problem row_major = row_major_form(problem);
  // Widths between them in one wave only: what the others leave empty there decides.
  const auto add = [&](const Config& config) {
    if (is_one_wave(config, row_major, device)) made.push_back(config);
  };
  if (row_major.b.order == Order::column) {
    add({.rows = 128, .columns = 176});
    add({.rows = 128, .columns = 208});
  }
  return made;
}

}  // namespace tmaops::ops::gemm::wgmma_specialized
