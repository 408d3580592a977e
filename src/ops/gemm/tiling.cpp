#include "ops/gemm/tiling.hpp"

#include <algorithm>
#include <limits>

namespace tmaops::ops::gemm {
namespace {

constexpr std::int64_t kStep = 64;  // k of a step

/// Fitted to launches on an H200 (docs/findings/gemm.md, G1): operands in the L2 up to 1024, cold above.
constexpr Tiling kTilings[] = {
    {.variant = "wgmma_small", .tile = "64x32", .rows = 64, .columns = 32, .start = 1.4, .finish = 0.1, .step = 0.16},
    {.variant = "wgmma_small", .tile = "64x128", .rows = 64, .columns = 128, .start = 1.5, .finish = 0.5, .step = 0.19},
    // Cold, since K is long: 0.27 us is what the memory needs for 128 blocks. The exchange of sums costs 0.5 us.
    {.variant = "wgmma_small",
     .tile = "64x64k2",
     .rows = 64,
     .columns = 64,
     .splits = 2,
     .start = 1.5,
     .finish = 0.7,
     .step = 0.27,
     .least_k = 2048,
     .one_wave = true},
    // For rows that lie across lines: eight blocks take each eighth row of 1,024, and read whole lines.
    {.variant = "wgmma_small",
     .tile = "128x64r8",
     .rows = 128,
     .columns = 64,
     .row_step = 8,
     .start = 1.5,
     .finish = 0.6,
     .step = 0.245,
     .one_wave = true,
     .a_along_k = true,
     .b_along_k = true,
     .plain = true},
    // Fitted to bursts with rests between, as bench has: all clocks are level there, and cycles decide (4096: in turn
    // on 128 x 128 194 us, together on 128 x 256 196). A wide tile that has the power to itself needs less of it, so
    // its clock is higher (docs/findings/gemm_large.md, P2 and P8).
    {.variant = "wgmma_persistent",
     .tile = "128x256c2",
     .rows = 128,
     .columns = 256,
     .share = 2,
     .start = 2.9,
     .finish = 0.85,
     .step = 0.719},
    // Two tiles in turn: the tensor cores never wait, so it is what the last wave wastes that decides between widths.
    // Clusters cost 0.2 % at 4096; at 8192 128 x 192 loses 5 % without them.
    {.variant = "wgmma_persistent",
     .tile = "128x128",
     .rows = 128,
     .columns = 128,
     .start = 2.6,
     .finish = 0.05,
     .step = 0.3655},
    {.variant = "wgmma_persistent",
     .tile = "128x128c2",
     .rows = 128,
     .columns = 128,
     .share = 2,
     .start = 2.9,
     .finish = 0.05,
     .step = 0.365},
    {.variant = "wgmma_persistent",
     .tile = "128x176",
     .rows = 128,
     .columns = 176,
     .start = 2.6,
     .finish = 0.05,
     .step = 0.497,
     .b_along_k = true,
     .plain = true},
    {.variant = "wgmma_persistent",
     .tile = "128x176c2",
     .rows = 128,
     .columns = 176,
     .share = 2,
     .start = 2.9,
     .finish = 0.05,
     .step = 0.497,
     .b_along_k = true,
     .plain = true},
    {.variant = "wgmma_persistent",
     .tile = "128x192c2",
     .rows = 128,
     .columns = 192,
     .share = 2,
     .cuts = 3,
     .start = 2.9,
     .finish = 0.05,
     .step = 0.545,
     .b_along_n = true,
     .plain = true},
    {.variant = "wgmma_specialized",
     .tile = "128x128",
     .rows = 128,
     .columns = 128,
     .start = 1.5,
     .finish = 0.9,
     .step = 0.36},
    {.variant = "wgmma_specialized",
     .tile = "128x256",
     .rows = 128,
     .columns = 256,
     .start = 1.5,
     .finish = 1.5,
     .step = 0.72},
    // In one wave only: what other widths leave empty there decides. Where B is contiguous along N a tile should begin
    // at a multiple of 64 columns, or each of its rows lies in one line more (1536: 144 columns 15.9 us, 176 14.5).
    {.variant = "wgmma_specialized",
     .tile = "128x144",
     .rows = 128,
     .columns = 144,
     .start = 1.5,
     .finish = 1.0,
     .step = 0.42,
     .one_wave = true,
     .b_along_k = true},
    {.variant = "wgmma_specialized",
     .tile = "128x176",
     .rows = 128,
     .columns = 176,
     .start = 1.5,
     .finish = 1.15,
     .step = 0.50,
     .one_wave = true,
     .b_along_k = true},
    {.variant = "wgmma_specialized",
     .tile = "128x208",
     .rows = 128,
     .columns = 208,
     .start = 1.5,
     .finish = 1.3,
     .step = 0.58,
     .one_wave = true,
     .b_along_k = true},
    {.variant = "wgmma_specialized",
     .tile = "128x192",
     .rows = 128,
     .columns = 192,
     .start = 1.5,
     .finish = 1.2,
     .step = 0.53,
     .one_wave = true,
     .b_along_n = true},
    // Its step is what enters a multiprocessor from rows that lie in two lines, at 70 bytes a cycle.
    {.variant = "wgmma_specialized",
     .tile = "64x144c8",
     .rows = 64,
     .columns = 144,
     .share = 8,
     .start = 1.5,
     .finish = 0.8,
     .step = 0.28,
     .one_wave = true,
     .plain = true},
    {.variant = "wgmma_tma", .tile = "64x128", .rows = 64, .columns = 128, .start = 1.5, .finish = 0.5, .step = 0.28},
    {.variant = "wgmma_tma", .tile = "128x128", .rows = 128, .columns = 128, .start = 1.5, .finish = 1.0, .step = 0.37},
    {.variant = "wgmma_cp_async",
     .tile = "64x128",
     .rows = 64,
     .columns = 128,
     .start = 1.5,
     .finish = 0.4,
     .step = 0.28},
};

/// Lines of 128 bytes that the L2 gives to all multiprocessors together, per us. Measured at 1024 and 1000 with 64 x
/// 128 (92,000 to 102,000); TMA and cp.async alike.
constexpr double kL2Lines = 100e3;
/// What a last wave takes whose tiles of 192 columns are cut in three, of what a whole one takes: A is read as often.
constexpr double kCutWave = 0.5;
constexpr std::int64_t kLineElements = 64;  // of 16 bits, in 128 bytes

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t pieces(const Tiling& tiling, const Problem& problem) {
  const int together = tiling.share * tiling.row_step;
  const std::int64_t rows = ceil_div(problem.m, tiling.rows * together) * together;
  return rows * ceil_div(problem.n, tiling.columns) * problem.batch * tiling.splits;
}

/// Pieces that run at the same time. A cluster of more than two lies within one of the chip's parts, which have 14 to
/// 18 multiprocessors: 15 clusters of eight fit on an H200 of 132.
int pieces_at_once(const Tiling& tiling, int multiprocessors) {
  return tiling.share > 2 ? multiprocessors * 7 / 8 / tiling.share * tiling.share : multiprocessors;
}

/// Lines that a row of 64 elements of an operand touches: rows that do not start at multiples of 128 bytes lie in two.
int lines_per_row(const MatrixLayout& layout) {
  const bool aligned = layout.alignment % 128 == 0 && layout.leading_dimension() % kLineElements == 0;
  return aligned ? 1 : 2;
}

/// Whether D is the rounded product itself, in rows that TMA can write.
bool plain_rows(const Problem& problem) {
  constexpr std::int64_t most = std::int64_t{1} << 38;  // elements, as for every tensor map
  const MatrixLayout& d = problem.d;
  return problem.alpha == 1.0F && !problem.c && !problem.bias_dtype && problem.activation == Activation::none &&
         d.dtype != DType::f32 && d.order == Order::row && d.columns % 8 == 0 && d.alignment % 16 == 0 &&
         d.leading_dimension() % 8 == 0 && d.leading_dimension() >= d.columns && d.leading_dimension() < most &&
         d.batch_stride >= 0 && d.batch_stride < most;
}

/// Whether a product has 16 or 17 lines of k for every row, and rows of A and columns of B that start at each 16 bytes
/// of a line, at distances that 32 bits count. (Where they start at multiples of 64 bytes, K = 992, clusters of eight
/// take 5.7 us, whole lines 6.1.)
bool has_whole_lines(const Problem& problem) {
  constexpr std::int64_t most = std::int64_t{1} << 25;
  const auto fits = [](const MatrixLayout& layout) {
    const std::int64_t stride = layout.leading_dimension();
    return stride > 0 && stride < most && stride % 16 == 8 && layout.alignment % 16 == 0;
  };
  return problem.batch == 1 && problem.k >= 968 && problem.k <= 1024 && problem.k % 8 == 0 && problem.m < most &&
         problem.n < most && fits(problem.a) && fits(problem.b) && problem.d.leading_dimension() < most;
}

}  // namespace

std::span<const Tiling> tilings() { return kTilings; }

const Tiling* find_tiling(std::string_view variant, std::string_view tile) {
  for (const Tiling& tiling : kTilings)
    if (tiling.variant == variant && tiling.tile == tile) return &tiling;
  return nullptr;
}

std::string tile_names(std::string_view variant) {
  std::string names;
  for (const Tiling& tiling : kTilings)
    if (tiling.variant == variant) names += (names.empty() ? "" : ", ") + std::string(tiling.tile);
  return names;
}

Support made_for(const Tiling& tiling, const Problem& problem, int multiprocessors) {
  const std::string name = std::string(tiling.variant) + "/" + std::string(tiling.tile);
  if (problem.k < tiling.least_k) return Support::no(name + " needs K of at least " + std::to_string(tiling.least_k));
  if (const int most = pieces_at_once(tiling, multiprocessors); tiling.one_wave && pieces(tiling, problem) > most)
    return Support::no(name + " needs at most as many blocks as the multiprocessors run at the same time, " +
                       std::to_string(most));
  if (tiling.a_along_k && problem.a.order != Order::row) return Support::no(name + " needs A contiguous along K");
  if (tiling.b_along_k && problem.b.order != Order::column) return Support::no(name + " needs B contiguous along K");
  if (tiling.b_along_n && problem.b.order != Order::row) return Support::no(name + " needs B contiguous along N");
  if (tiling.row_step > 1 && !has_whole_lines(problem))
    return Support::no(
        name +
        " needs one batch, K a multiple of 8 from 968 to 1024, and leading dimensions that are odd multiples of 8");
  if (tiling.plain && !plain_rows(problem))
    return Support::no(name + " needs a D of 16 bits that is the product itself, its rows at multiples of 16 bytes");
  return Support::yes();
}

double microseconds(const Tiling& tiling, const Problem& problem, int multiprocessors) {
  const std::int64_t all = pieces(tiling, problem);
  const std::int64_t at_once = std::max(multiprocessors, 1);
  const std::int64_t rest = all % at_once;
  const bool cut = tiling.cuts > 1 && rest > 0 && rest * tiling.cuts <= at_once;
  const double waves = static_cast<double>(ceil_div(all, at_once)) - (cut ? 1 - kCutWave : 0);
  const auto steps = static_cast<double>(ceil_div(problem.k, kStep)) / tiling.splits;
  const bool whole = tiling.row_step > 1;
  const double lines = tiling.rows * (whole ? 1 : lines_per_row(problem.a)) +
                       static_cast<double>(tiling.columns) / tiling.share * (whole ? 1 : lines_per_row(problem.b));
  const double from_l2 = lines * static_cast<double>(std::min<std::int64_t>(all, multiprocessors)) / kL2Lines;
  return tiling.start + waves * (tiling.finish + steps * std::max(tiling.step, from_l2));
}

const Tiling& best_tiling(std::string_view variant, const Problem& problem, int multiprocessors) {
  const Tiling* best = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const Tiling& tiling : kTilings) {
    if (tiling.variant != variant || !made_for(tiling, problem, multiprocessors)) continue;
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

const Tiling& tiling_of(std::string_view variant, const Problem& problem, const Arguments& arguments) {
  if (arguments.tiling != nullptr) return *arguments.tiling;
  return best_tiling(variant, problem, device_info(problem.device).multiprocessors);
}

}  // namespace tmaops::ops::gemm
