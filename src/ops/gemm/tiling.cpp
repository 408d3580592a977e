#include "ops/gemm/tiling.hpp"

#include <algorithm>
#include <limits>

namespace tmaops::ops::gemm {
namespace {

constexpr std::int64_t kStep = 64;  // k of a step

/// Fitted to launches on an H200 (docs/findings/gemm_gpu.md): operands in the L2 up to 1024, cold above.
constexpr Tiling kTilings[] = {
    {"wgmma_persistent", 128, 256, 2.90, 0.90, 0.700},
    {"wgmma_specialized", 128, 128, 1.50, 0.90, 0.360},
    {"wgmma_specialized", 128, 256, 1.50, 1.40, 0.720},
    {"wgmma_tma", 128, 128, 1.50, 1.30, 0.385},
    {"wgmma_cp_async", 64, 128, 1.50, 0.40, 0.380},
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t pieces(const Tiling& tiling, const Problem& problem) {
  return ceil_div(problem.m, tiling.rows) * ceil_div(problem.n, tiling.columns) * problem.batch;
}

}  // namespace

double microseconds(const Tiling& tiling, const Problem& problem, int multiprocessors) {
  const auto waves = static_cast<double>(ceil_div(pieces(tiling, problem), std::max(multiprocessors, 1)));
  const auto steps = static_cast<double>(ceil_div(problem.k, kStep));
  return tiling.start + waves * (tiling.finish + steps * tiling.step);
}

const Tiling& best_tiling(std::string_view variant, const Problem& problem, int multiprocessors) {
  const Tiling* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Tiling& tiling : kTilings) {
    if (tiling.variant != variant) continue;
    const double time = microseconds(tiling, problem, multiprocessors);
    if (best != nullptr && time >= least) continue;
    best = &tiling;
    least = time;
  }
  if (best == nullptr)
    throw Error(ErrorCode::internal,
                {.where = "gemm: tiling", .got = std::string(variant), .needed = "a variant with a tiling"});
  return *best;
}

}  // namespace tmaops::ops::gemm
