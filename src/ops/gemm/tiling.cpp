#include "ops/gemm/tiling.hpp"

#include <algorithm>
#include <limits>

namespace tmaops::ops::gemm {
namespace {

constexpr std::int64_t kStep = 64;  // k of a step

/// Fitted to launches on an H200 (docs/findings/gemm_gpu.md): operands in the L2 up to 1024, cold above.
constexpr Tiling kTilings[] = {
    {.variant = "wgmma_small", .rows = 64, .columns = 32, .start = 1.4, .finish = 0.1, .step = 0.16},
    {.variant = "wgmma_small", .rows = 64, .columns = 128, .start = 1.5, .finish = 0.5, .step = 0.19},
    // Cold, since K is long: 0.27 us is what the memory needs for 128 blocks. The exchange of sums costs 0.5 us.
    {.variant = "wgmma_small",
     .rows = 64,
     .columns = 64,
     .splits = 2,
     .start = 1.5,
     .finish = 0.7,
     .step = 0.27,
     .least_k = 2048,
     .one_wave = true},
    {.variant = "wgmma_persistent", .rows = 128, .columns = 256, .share = 2, .start = 2.9, .finish = 0.9, .step = 0.70},
    {.variant = "wgmma_specialized", .rows = 128, .columns = 128, .start = 1.5, .finish = 0.9, .step = 0.36},
    {.variant = "wgmma_specialized", .rows = 128, .columns = 256, .start = 1.5, .finish = 1.4, .step = 0.72},
    {.variant = "wgmma_tma", .rows = 128, .columns = 128, .start = 1.5, .finish = 1.3, .step = 0.385},
    {.variant = "wgmma_cp_async", .rows = 64, .columns = 128, .start = 1.5, .finish = 0.4, .step = 0.38},
};

/// Lines of 128 bytes that the L2 gives to all multiprocessors together, per us. Measured at 1024 and 1000 with 64 x
/// 128 (92,000 to 102,000); TMA and cp.async alike.
constexpr double kL2Lines = 100e3;
constexpr std::int64_t kLineElements = 64;  // of 16 bits, in 128 bytes

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t pieces(const Tiling& tiling, const Problem& problem) {
  return ceil_div(problem.m, tiling.rows) * ceil_div(problem.n, tiling.columns) * problem.batch * tiling.splits;
}

/// Lines that a row of 64 elements of an operand touches: rows that do not start at multiples of 128 bytes lie in two.
int lines_per_row(const MatrixLayout& layout) {
  const bool aligned = layout.alignment % 128 == 0 && layout.leading_dimension() % kLineElements == 0;
  return aligned ? 1 : 2;
}

bool applies(const Tiling& tiling, const Problem& problem, int multiprocessors) {
  return problem.k >= tiling.least_k && (!tiling.one_wave || pieces(tiling, problem) <= multiprocessors);
}

}  // namespace

double microseconds(const Tiling& tiling, const Problem& problem, int multiprocessors) {
  const std::int64_t all = pieces(tiling, problem);
  const auto waves = static_cast<double>(ceil_div(all, std::max(multiprocessors, 1)));
  const auto steps = static_cast<double>(ceil_div(problem.k, kStep)) / tiling.splits;
  const double lines = tiling.rows * lines_per_row(problem.a) +
                       static_cast<double>(tiling.columns) / tiling.share * lines_per_row(problem.b);
  const double from_l2 = lines * static_cast<double>(std::min<std::int64_t>(all, multiprocessors)) / kL2Lines;
  return tiling.start + waves * (tiling.finish + steps * std::max(tiling.step, from_l2));
}

const Tiling& best_tiling(std::string_view variant, const Problem& problem, int multiprocessors) {
  const Tiling* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Tiling& tiling : kTilings) {
    if (tiling.variant != variant || !applies(tiling, problem, multiprocessors)) continue;
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
