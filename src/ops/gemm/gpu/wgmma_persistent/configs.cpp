// What it takes, and its tiles.
#include <algorithm>

#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_persistent {

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_tensor_loads(problem); !support) return support;
  if (problem.batch > INT32_MAX / std::max<std::int64_t>(ceil_div(problem.m, 128) * ceil_div(problem.n, 128), 1))
    return Support::no("needs fewer than 2^31 tiles");
  return Support::yes();
}

std::vector<Config> configs(const Problem& problem, const DeviceInfo&) {
  const Problem row_major = row_major_form(problem);
  std::vector<Config> made{
      // Both warpgroups share a tile. Fitted with idle gaps between bursts, as bench has them: clocks are then equal,
      // so
      // cycles decide. Under a power limit a wide tile needs less power and clocks higher (docs/findings/gemm_large.md,
      // P2 and P8).
      {.rows = 128, .columns = 256, .cluster = 2, .cost = {.start = 2.9, .finish = 0.85, .step = 0.719}},
      // Ping-pong: the tensor cores never wait, so it is what the last wave wastes that decides between widths.
      {.rows = 128, .columns = 128, .cost = {.start = 2.6, .finish = 0.05, .step = 0.3655}},
      {.rows = 128, .columns = 128, .cluster = 2, .cost = {.start = 2.9, .finish = 0.05, .step = 0.365}}};
  // Wider tiles leave no registers for the general epilogue.
  if (!has_plain_rows(row_major)) return made;
  if (row_major.b.order == Order::column) {
    made.push_back({.rows = 128, .columns = 176, .cost = {.start = 2.6, .finish = 0.05, .step = 0.497}});
    made.push_back({.rows = 128, .columns = 176, .cluster = 2, .cost = {.start = 2.9, .finish = 0.05, .step = 0.497}});
  } else if (row_major.b.order == Order::row) {
    made.push_back(
        {.rows = 128, .columns = 192, .cluster = 2, .cost = {.start = 2.9, .finish = 0.05, .step = 0.545, .cuts = 3}});
  }
  return made;
}

}  // namespace tmaops::ops::gemm::wgmma_persistent
