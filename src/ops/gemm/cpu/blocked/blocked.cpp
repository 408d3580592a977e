// GEMM without any library. Each tile of D is one task: it packs slabs of A and B to f32 panels, multiplies them with a
// register-blocked micro-kernel that the compiler vectorises, and keeps its f32 accumulators until K is done. Tiles
// depend on the problem alone and every element sums over K in order, so the bits do not depend on the threads.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/clones.hpp"
#include "core/convert_rows.hpp"
#include "core/parallel.hpp"
#include "ops/gemm/shared/host_epilogue.hpp"

namespace tmaops::ops::gemm::blocked {
namespace {

constexpr std::int64_t kPanelRows = 6;      // 6 x 16 accumulators: 12 of the 16 AVX2 registers
constexpr std::int64_t kPanelColumns = 16;  // one AVX-512 vector, two of AVX2, four of SSE
// A tile of D: its accumulators and slabs (192, 192 and 256 KiB) fit in an L2 of 1 MiB. B is packed anew for every
// tile, so tiles of fewer rows pack it more often.
constexpr std::int64_t kTileRows = 192;
constexpr std::int64_t kTileColumns = 256;
constexpr std::int64_t kSlab = 256;  // part of K that is packed at a time

static_assert(kTileRows % kPanelRows == 0 && kTileColumns % kPanelColumns == 0);

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Per-thread buffers of one tile.
struct Workspace {
  std::vector<float> a, b, accumulators, line;
};

/// Copies lines x depth elements into panels of `width` lines: panel[p][k][w] = element (p * width + w, k), zeros past
/// the last line. Reads along the index in which the operand is contiguous.
void pack(const void* data, DType dtype, std::int64_t offset, std::int64_t line_stride, std::int64_t depth_stride,
          std::int64_t lines, std::int64_t depth, std::int64_t width, float* panels, float* line) {
  for (std::int64_t p = 0; p < lines; p += width, panels += width * depth) {
    const std::int64_t used = std::min(width, lines - p);
    if (used < width) std::fill_n(panels, width * depth, 0.0F);
    if (line_stride == 1) {
      for (std::int64_t k = 0; k < depth; ++k)
        load_f32(data, dtype, offset + p + k * depth_stride, 1, used, panels + k * width);
      continue;
    }
    for (std::int64_t w = 0; w < used; ++w) {
      load_f32(data, dtype, offset + (p + w) * line_stride, depth_stride, depth, line);
      for (std::int64_t k = 0; k < depth; ++k) panels[k * width + w] = line[k];
    }
  }
}

/// c (6 rows `pitch` apart, kVectors of kLanes columns) += panel of A (depth x 6) times panels of B (depth x 16).
/// Vectors as wide as a register: GCC 12 keeps sums of wider ones on the stack, which takes several times as long.
template <std::int64_t kLanes, std::int64_t kVectors>
[[gnu::always_inline]] inline void multiply_panels(const float* a, const float* b, std::int64_t depth, float* c,
                                                   std::int64_t pitch) {
  using Vector __attribute__((vector_size(kLanes * sizeof(float)))) = float;
  Vector sum[kPanelRows][kVectors];
  for (std::int64_t i = 0; i < kPanelRows; ++i) std::memcpy(sum[i], c + i * pitch, sizeof(sum[i]));
  for (std::int64_t k = 0; k < depth; ++k) {
    Vector row[kVectors];
    for (std::int64_t v = 0; v < kVectors; ++v) {
      const std::int64_t panel = v * kLanes / kPanelColumns;
      std::memcpy(&row[v], b + (panel * depth + k) * kPanelColumns + v * kLanes % kPanelColumns, sizeof(Vector));
    }
    for (std::int64_t i = 0; i < kPanelRows; ++i)
      for (std::int64_t v = 0; v < kVectors; ++v) sum[i][v] += a[k * kPanelRows + i] * row[v];
  }
  for (std::int64_t i = 0; i < kPanelRows; ++i) std::memcpy(c + i * pitch, sum[i], sizeof(sum[i]));
}

TMAOPS_CLONES void multiply_panel(const float* a, const float* b, std::int64_t depth, float* c, std::int64_t pitch) {
  multiply_panels<8, 2>(a, b, depth, c, pitch);
}

#ifdef TMAOPS_V4
/// Two panels: twelve sums for the 32 registers of AVX-512, which six sums leave waiting for one another.
TMAOPS_V4 void multiply_two_panels(const float* a, const float* b, std::int64_t depth, float* c, std::int64_t pitch) {
  multiply_panels<16, 2>(a, b, depth, c, pitch);
}
#endif

using Multiply = void (*)(const float* a, const float* b, std::int64_t depth, float* c, std::int64_t pitch);

/// The micro-kernel for the next of `columns` columns, and how many it takes.
Multiply multiply_at(std::int64_t columns, std::int64_t& step) {
  step = kPanelColumns;
#ifdef TMAOPS_V4
  static const bool two = has_v4();
  if (two && columns >= 2 * kPanelColumns) {
    step = 2 * kPanelColumns;
    return multiply_two_panels;
  }
#else
  (void)columns;
#endif
  return multiply_panel;
}

void compute_tile(const Problem& problem, const Arguments& arguments, std::int64_t batch, std::int64_t row,
                  std::int64_t column, Workspace& work) {
  const std::int64_t rows = std::min(kTileRows, problem.m - row);
  const std::int64_t columns = std::min(kTileColumns, problem.n - column);
  const std::int64_t padded_rows = round_up(rows, kPanelRows);
  const std::int64_t padded_columns = round_up(columns, kPanelColumns);
  const std::int64_t slab = std::min(kSlab, problem.k);
  work.a.resize(static_cast<std::size_t>(padded_rows * slab));
  work.b.resize(static_cast<std::size_t>(padded_columns * slab));
  work.line.resize(static_cast<std::size_t>(slab));
  work.accumulators.assign(static_cast<std::size_t>(padded_rows * padded_columns), 0.0F);

  for (std::int64_t k = 0; k < problem.k; k += kSlab) {
    const std::int64_t depth = std::min(kSlab, problem.k - k);
    pack(arguments.a, problem.a.dtype, problem.a.offset(batch, row, k), problem.a.row_stride, problem.a.column_stride,
         rows, depth, kPanelRows, work.a.data(), work.line.data());
    pack(arguments.b, problem.b.dtype, problem.b.offset(batch, k, column), problem.b.column_stride,
         problem.b.row_stride, columns, depth, kPanelColumns, work.b.data(), work.line.data());
    std::int64_t step = 0;
    for (std::int64_t j = 0; j < padded_columns; j += step) {
      const Multiply multiply = multiply_at(padded_columns - j, step);
      for (std::int64_t i = 0; i < padded_rows; i += kPanelRows)
        multiply(&work.a[static_cast<std::size_t>(i * depth)], &work.b[static_cast<std::size_t>(j * depth)], depth,
                 &work.accumulators[static_cast<std::size_t>(i * padded_columns + j)], padded_columns);
    }
  }
  store_tile(problem, arguments, batch, row, column, rows, columns, work.accumulators.data(), padded_columns);
}

void run(const Problem& problem, const Arguments& arguments) {
  const std::int64_t tile_rows = (problem.m - 1) / kTileRows + 1;
  const std::int64_t tile_columns = (problem.n - 1) / kTileColumns + 1;
  const int threads = call_threads(problem);
  parallel_for(problem.batch * tile_rows * tile_columns, 1, threads, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Workspace work;  // kept between calls: at most 0.7 MiB a thread
    for (std::int64_t tile = begin; tile < end; ++tile)
      compute_tile(problem, arguments, tile / (tile_rows * tile_columns), tile / tile_columns % tile_rows * kTileRows,
                   tile % tile_columns * kTileColumns, work);
  });
}

}  // namespace

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

Work plan(const Problem& given, const Arguments& given_arguments, const Config&) {
  const RowMajorForm call(given, given_arguments);
  return cpu_work(run, call.problem, call.arguments);
}

}  // namespace tmaops::ops::gemm::blocked
