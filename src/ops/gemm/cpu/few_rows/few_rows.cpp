// GEMM of few rows, or of few columns as D^T = B^T A^T. There every element of the large matrix counts a few times
// only, so it is read once, where it lies, and nothing of it is packed. The order in which an element of D
// is summed depends on the problem alone.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/clones.hpp"
#include "core/convert_rows.hpp"
#include "core/parallel.hpp"
#include "ops/gemm/problem.hpp"
#include "ops/gemm/shared/host_epilogue.hpp"

namespace tmaops::ops::gemm::few_rows {
namespace {

constexpr std::int64_t kMostRows = 8;
constexpr std::int64_t kGroup = 4;      // rows that share a load of B
constexpr std::int64_t kColumns = 256;  // of a task
constexpr std::int64_t kSlab = 2048;    // part of K that is in work at a time
constexpr std::int64_t kLines = 4;      // rows of B that are added at a time
constexpr double kElement = 0.25e-3;    // microseconds that one thread takes to read an element of B, about

using Vector __attribute__((vector_size(8 * sizeof(float)))) = float;
constexpr auto kLanes = static_cast<std::int64_t>(sizeof(Vector) / sizeof(float));

/// Eight neighbouring elements wherever they lie.
using Unaligned __attribute__((vector_size(sizeof(Vector)), aligned(alignof(float)), may_alias)) = float;
const Unaligned& at(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
Unaligned& at(float* to) { return *reinterpret_cast<Unaligned*>(to); }

/// sums[i * kColumns] += row i of A (they lie kSlab apart) times b: `depth` products each.
template <std::int64_t rows, std::int64_t chains>
[[gnu::always_inline]] inline void add_dots(const float* a, const float* b, std::int64_t depth, float* sums) {
  Vector partial[rows][chains] = {};
  std::int64_t k = 0;
  for (; k + chains * kLanes <= depth; k += chains * kLanes)
    for (std::int64_t c = 0; c < chains; ++c) {
      const Vector column = at(b + k + c * kLanes);
      for (std::int64_t i = 0; i < rows; ++i) partial[i][c] += at(a + i * kSlab + k + c * kLanes) * column;
    }
  for (std::int64_t i = 0; i < rows; ++i) {
    float sum = 0.0F;
    for (std::int64_t rest = k; rest < depth; ++rest) sum += a[i * kSlab + rest] * b[rest];
    for (std::int64_t c = 1; c < chains; ++c) partial[i][0] += partial[i][c];
    for (std::int64_t lane = 0; lane < kLanes; ++lane) sum += partial[i][0][lane];
    sums[i * kColumns] += sum;
  }
}

TMAOPS_CLONES void add_dots(std::int64_t rows, const float* a, const float* b, std::int64_t depth, float* sums) {
  if (rows == 1) return add_dots<1, 4>(a, b, depth, sums);
  for (std::int64_t i = 0; i < rows; i += kGroup) add_dots<kGroup, 2>(a + i * kSlab, b, depth, sums + i * kColumns);
}

/// sums (rows kColumns apart) += `lines` columns of A times as many rows of B, which lie `pitch` apart.
template <std::int64_t rows, std::int64_t lines>
[[gnu::always_inline]] inline void add_lines(const float* a, const float* b, std::int64_t pitch, std::int64_t columns,
                                             float* sums) {
  std::int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) {
    Vector sum[rows];
    for (std::int64_t i = 0; i < rows; ++i) sum[i] = at(sums + i * kColumns + j);
    for (std::int64_t k = 0; k < lines; ++k) {
      const Vector line = at(b + k * pitch + j);
      for (std::int64_t i = 0; i < rows; ++i) sum[i] += a[i * kSlab + k] * line;
    }
    for (std::int64_t i = 0; i < rows; ++i) at(sums + i * kColumns + j) = sum[i];
  }
  for (; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t k = 0; k < lines; ++k) sums[i * kColumns + j] += a[i * kSlab + k] * b[k * pitch + j];
}

TMAOPS_CLONES void add_lines(std::int64_t rows, std::int64_t lines, const float* a, const float* b, std::int64_t pitch,
                             std::int64_t columns, float* sums) {
  if (rows == 1 && lines == kLines) return add_lines<1, kLines>(a, b, pitch, columns, sums);
  for (std::int64_t i = 0; i < rows; i += kGroup)
    if (lines == kLines)
      add_lines<kGroup, kLines>(a + i * kSlab, b, pitch, columns, sums + i * kColumns);
    else
      for (std::int64_t k = 0; k < lines; ++k)
        add_lines<kGroup, 1>(a + i * kSlab + k, b + k * pitch, pitch, columns, sums + i * kColumns);
}

struct Workspace {
  std::vector<float> a = std::vector<float>(kMostRows * kSlab);  // a slab of A
  std::vector<float> lines = std::vector<float>(std::max(kSlab, kLines* kColumns));
};

/// B is read along K, column by column. Otherwise along N.
bool along_k(const MatrixLayout& b) { return b.row_stride == 1 || b.column_stride != 1; }

/// f32 elements that lie next to one another are used where they lie.
bool in_place(const MatrixLayout& b) { return b.dtype == DType::f32 && (b.row_stride == 1 || b.column_stride == 1); }

/// `count` elements of B along K or N: where they lie, or copied to `to`.
const float* line_of(const Problem& problem, const Arguments& arguments, std::int64_t offset, std::int64_t count,
                     float* to) {
  const MatrixLayout& b = problem.b;
  if (in_place(b)) return static_cast<const float*>(arguments.b) + offset;
  load_f32(arguments.b, b.dtype, offset, along_k(b) ? b.row_stride : b.column_stride, count, to);
  return to;
}

void compute(const Problem& problem, const Arguments& arguments, std::int64_t batch, std::int64_t column,
             std::int64_t columns, Workspace& work) {
  const MatrixLayout& b = problem.b;
  const std::int64_t rows = problem.m == 1 ? 1 : (problem.m + kGroup - 1) / kGroup * kGroup;
  float* const a = work.a.data();
  float* const lines = work.lines.data();
  float sums[kMostRows * kColumns] = {};
  for (std::int64_t k = 0; k < problem.k; k += kSlab) {
    const std::int64_t depth = std::min(kSlab, problem.k - k);
    for (std::int64_t i = 0; i < problem.m; ++i)
      load_f32(arguments.a, problem.a.dtype, problem.a.offset(batch, i, k), problem.a.column_stride, depth,
               a + i * kSlab);
    if (along_k(b)) {
      for (std::int64_t j = 0; j < columns; ++j)
        add_dots(rows, a, line_of(problem, arguments, b.offset(batch, k, column + j), depth, lines), depth, sums + j);
      continue;
    }
    for (std::int64_t first = 0; first < depth; first += kLines) {
      const std::int64_t count = std::min(kLines, depth - first);
      const float* from = nullptr;
      for (std::int64_t line = count; line-- > 0;)
        from = line_of(problem, arguments, b.offset(batch, k + first + line, column), columns, lines + line * kColumns);
      add_lines(rows, count, a + first, from, in_place(b) ? b.row_stride : kColumns, columns, sums);
    }
  }
  store_tile(problem, arguments, batch, 0, column, problem.m, columns, sums, kColumns);
}

void run(const Problem& problem, const Arguments& arguments) {
  const std::int64_t step = along_k(problem.b) ? kColumns / 16 : kColumns;
  const std::int64_t tiles = (problem.n - 1) / step + 1;
  const int threads = threads_for(kElement * static_cast<double>(problem.batch) * static_cast<double>(problem.n) *
                                  static_cast<double>(problem.k));
  parallel_for(problem.batch * tiles, 1, threads, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Workspace work;
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t column = tile % tiles * step;
      compute(problem, arguments, tile / tiles, column, std::min(step, problem.n - column), work);
    }
  });
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (std::min(problem.m, problem.n) > kMostRows) return Support::no("needs at most 8 rows or 8 columns");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  if (problem.m <= kMostRows) return cpu_work(run, problem, arguments);
  Arguments swapped = arguments;
  std::swap(swapped.a, swapped.b);
  return cpu_work(run, transposed(problem), swapped);
}

}  // namespace tmaops::ops::gemm::few_rows
