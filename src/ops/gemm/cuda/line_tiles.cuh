// Tiles that read whole lines of the L2 where rows do not start at multiples of 128 bytes. 64 k of such a row lie in
// two lines; asking for parts of lines costs twice the requests, and the L2 hardly combines what several
// multiprocessors ask for unless it is a whole line (docs/findings/gemm.md, G12). But rows 8 apart start at the same
// place in a line, for every leading dimension that is a multiple of 8. So a block takes 128 rows of D that are 8
// apart, fetches whole lines of A for them, and counts k from where these lines begin. B's columns begin at places of
// their own: they come in whole lines as well and pass through registers, since ldmatrix takes 16 bytes from anywhere.
//
// wgmma has the operand from registers on its left, so a block computes D^T, 64 columns of D by 128 rows. A product
// from registers waits for them where it is issued, so they are fetched two products ahead. (H200: 1000 6.0 us instead
// of 6.6 in clusters that share B; with dependent launch 5.6 to 5.8 instead of 6.0.)
#pragma once

#include "device/bulk_copy.cuh"
#include "device/cp_async.cuh"
#include "device/fence.cuh"
#include "device/matrix.cuh"
#include "device/vector.cuh"
#include "ops/gemm/cuda/whole_tiles.cuh"

namespace tmaops::ops::gemm::cuda {

inline constexpr int kLineRows = 128;  // of D in a block
inline constexpr int kLineColumns = 64;
inline constexpr int kLinePeriod = 8;  // rows this far apart start at the same place in a line
inline constexpr int kLineThreads = device::kWarpgroupThreads;
inline constexpr std::uint32_t kLineChunks = kRowBytes / 16;
/// Lines that a row of K from 968 to 1024 lies in: 16, or one more if it starts in the middle of one.
inline constexpr int kMostLines = 17;
inline constexpr int kLineStages = 6;
inline constexpr int kLinesAhead = kLineStages - 2;  // the product before may still be running

/// Strides in bytes from row to row of A and D, from column to column of B. `chunks`: 16 bytes of k. `a_bytes`,
/// `b_bytes`: of the whole operand, 0 where it has large gaps.
struct LineJob {
  const unsigned char* a = nullptr;
  const unsigned char* b = nullptr;
  unsigned char* d = nullptr;
  std::uint32_t a_stride = 0, b_stride = 0, d_stride = 0;
  std::uint32_t rows = 0, columns = 0, chunks = 0;
  std::uint32_t a_bytes = 0, b_bytes = 0;
};

struct LineStorage {
  alignas(1024) unsigned char a[kLineStages][kLineRows * kRowBytes];
  unsigned char b[kLineStages][kLineColumns * kRowBytes];
  std::uint32_t spare[kLineThreads];
};

/// The chunk of a line at which row or column `index` of an operand starts.
__device__ __forceinline__ std::uint32_t first_chunk(const unsigned char* data, std::uint32_t stride,
                                                     std::uint32_t index) {
  return (static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data) >> 4) + index * (stride >> 4)) %
         kLineChunks;
}

/// Sends for this block's share of an operand, so that the L2 has all of it soon: blocks ask for the same lines of k at
/// the same time, one after the other, which is slow where each comes from memory. Behind the first copies, which it
/// would hold up. (1000 cold: 7.32 to 6.68 us, with dependent launch 6.99 to 6.31; hot 6.07 to 6.15, 5.75 to 5.79.)
__device__ __forceinline__ void prefetch_share(const unsigned char* data, std::uint32_t bytes) {
  const std::uint32_t blocks = gridDim.x * gridDim.y;
  const std::uint32_t share = (bytes / blocks + kRowBytes - 1) / kRowBytes * kRowBytes;
  const std::uint32_t first = share * (blockIdx.y * gridDim.x + blockIdx.x);
  if (first < bytes) device::bulk_prefetch(data + first, min(share, bytes - first));
}

/// The block's 128 x 64 sums, which lie transposed, to D.
template <class T>
__device__ __forceinline__ void store_lines(const LineJob& job, const float (&sums)[kLineRows / 2],
                                            unsigned char* staging, std::uint32_t first_row, std::uint32_t column) {
  constexpr DType kType = std::is_same_v<T, __half> ? DType::f16 : DType::bf16;
  const std::uint32_t lane = threadIdx.x % device::kWarpThreads;
  const std::uint32_t warp = threadIdx.x / device::kWarpThreads;
  const std::uint32_t place = (lane / 16 * 8 + lane % 8) * kRowBytes + ((2 * warp + lane / 8 % 2) ^ lane % 8) * 16;
#pragma unroll
  for (int i = 0; i < kLineRows / 2; i += 8) {  // 16 rows of D by 16 columns
    std::uint32_t words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) words[j] = pack(sums[i + 2 * j], sums[i + 2 * j + 1], kType);
    device::store_matrices_transposed(staging + place + i / 4 * (8 * kRowBytes), words);
  }
  __syncthreads();
  const std::uint32_t chunk = threadIdx.x % kLineChunks;
  const std::uint32_t line = threadIdx.x / kLineChunks;
  if (column + 8 * chunk >= job.columns) return;
  const std::uint32_t row = first_row + kLinePeriod * line;
  unsigned char* const d = job.d + static_cast<std::int64_t>(row) * job.d_stride + 2 * column + 16 * chunk;
  const unsigned char* const from = staging + line * kRowBytes + (chunk ^ line % 8) * 16;
#pragma unroll
  for (std::uint32_t i = 0; i < kLineRows / 16; ++i)
    if (row + 16 * kLinePeriod * i < job.rows)
      device::store_16(d + static_cast<std::int64_t>(16 * kLinePeriod * i) * job.d_stride,
                       *reinterpret_cast<const uint4*>(from + i * (16 * kRowBytes)));
}

/// One thread's part of the copies of an operand's lines: chunk threadIdx.x % 8 of each 16th row.
template <int rows>
struct LineCopies {
  static constexpr int kCopies = rows / 16;
  const unsigned char* from[kCopies];
  std::uint32_t place;   // in a stage
  std::uint32_t before;  // start - chunk: what is subtracted to count chunks from k = 0

  /// Rows first + step * i, in whose first line k begins at chunk `start`. What lies outside of the matrix is read from
  /// rows inside that start at the same place, and its sums are not stored.
  __device__ __forceinline__ LineCopies(const unsigned char* data, std::uint32_t stride, std::uint32_t first,
                                        std::uint32_t step, std::uint32_t instead, std::uint32_t extent,
                                        std::uint32_t start, std::uint32_t swizzle) {
    const std::uint32_t chunk = threadIdx.x % kLineChunks;
    place = threadIdx.x / kLineChunks * kRowBytes + (chunk ^ swizzle) * 16;
    before = start - chunk;
    from[0] = data + static_cast<std::int64_t>(first < extent ? first : instead) * stride -
              static_cast<std::int64_t>(static_cast<std::int32_t>(before)) * 16;
#pragma unroll
    for (std::uint32_t i = 1; i < kCopies; ++i)
      from[i] = first + step * i < extent ? from[0] + static_cast<std::int64_t>(step * i) * stride : from[i - 1];
  }
  /// As WholeTile::be_ready(). (B's first address: 5.80 to 5.72 us with dependent launch, plain 6.10 to 6.11; all of
  /// both operands: 5.75 and 6.17.)
  __device__ __forceinline__ void be_ready(std::uint32_t& spare) const {
    const auto first = reinterpret_cast<std::uintptr_t>(from[0]);
    const auto low = static_cast<std::uint32_t>(first);
    const auto high = static_cast<std::uint32_t>(first >> 32);
    device::store_shared(device::shared_address(&spare), low ^ high ^ place ^ before);
  }
  __device__ __forceinline__ void fetch(unsigned char* stage, int line, std::uint32_t chunks) const {
    const std::uint32_t bytes = kLineChunks * static_cast<std::uint32_t>(line) - before < chunks ? 16 : 0;
#pragma unroll
    for (int i = 0; i < kCopies; ++i)
      device::copy_async_16(stage + place + i * (16 * kRowBytes), from[i] + line * kRowBytes, bytes);
  }
};

template <class T>
__global__ void __launch_bounds__(kLineThreads, 1) line_kernel(const __grid_constant__ LineJob job) {
  constexpr int kStages = kLineStages;
  auto& shared = device::dynamic_shared<LineStorage, wgmma_small::kSite.smem>();
  device::let_next_kernel_start();
  const std::uint32_t lane = threadIdx.x % device::kWarpThreads;
  const std::uint32_t warp = threadIdx.x / device::kWarpThreads;
  const std::uint32_t line_of_thread = threadIdx.x / kLineChunks;
  const std::uint32_t first_row = blockIdx.x % kLinePeriod + blockIdx.y * (kLinePeriod * kLineRows);
  const std::uint32_t column = blockIdx.x / kLinePeriod * kLineColumns;
  if (first_row >= job.rows) return;

  // k counts from the line in which the block's rows of A begin. A column of B that begins at an earlier chunk of its
  // line is said to begin in the next one, so that product i needs its lines i and i + 1.
  const std::uint32_t start = first_chunk(job.a, job.a_stride, first_row);
  const auto start_of_column = [&](std::uint32_t index) {
    const std::uint32_t chunk = first_chunk(job.b, job.b_stride, index);
    return chunk >= start ? chunk : chunk + kLineChunks;
  };
  const int lines = static_cast<int>((start + job.chunks + kLineChunks - 1) / kLineChunks);
  // Chunks of B stay where they are in their lines, so that those of a sector stay together. Eight columns start at
  // eight different chunks, so ldmatrix finds them in different banks.
  const LineCopies<kLineRows> a(job.a, job.a_stride, first_row + kLinePeriod * line_of_thread, 16 * kLinePeriod,
                                first_row, job.rows, start, line_of_thread % 8);
  const LineCopies<kLineColumns> b(job.b, job.b_stride, column + line_of_thread, 16, column + line_of_thread % 8,
                                   job.columns, start_of_column(line_of_thread % 8), 0);
  std::int32_t row[4], row_at_end[4];  // of this thread for ldmatrix; after the last stage comes the first
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t at = 2 * i + lane / 16 + start_of_column(lane % 8) - start;
    const std::uint32_t in_line = (16 * warp + lane % 16) * kRowBytes + at % kLineChunks * 16;
    const auto next = static_cast<std::int32_t>(at / kLineChunks * sizeof(shared.b[0]));
    row[i] = static_cast<std::int32_t>(in_line) + next;
    row_at_end[i] = static_cast<std::int32_t>(in_line) - (kStages - 1) * next;
  }
  std::uint32_t left[3][4][4];
  const auto load_left = [&](auto product) {
    constexpr int stage = decltype(product)::value % kStages;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      device::load_matrices(left[decltype(product)::value % 3][i],
                            shared.b[stage] + (stage + 1 < kStages ? row[i] : row_at_end[i]));
  };

  // Group g of the copies: line g of A and line g + 2 of B.
  b.be_ready(shared.spare[threadIdx.x]);
  device::wait_for_previous_kernel();
  b.fetch(shared.b[0], 0, job.chunks);
  b.fetch(shared.b[1], 1, job.chunks);
#pragma unroll
  for (int line = 0; line < kLinesAhead; ++line) {
    a.fetch(shared.a[line], line, job.chunks);
    b.fetch(shared.b[line + 2], line + 2, job.chunks);
    device::commit_copies();
  }
  if (threadIdx.x == 0) {
    prefetch_share(job.a, job.a_bytes);
    prefetch_share(job.b, job.b_bytes);
  }
  device::wait_copies<kLinesAhead - 1>();
  device::fence_async_shared();
  __syncthreads();
  load_left(std::integral_constant<int, 0>());
  load_left(std::integral_constant<int, 1>());

  // Half a line may lie before the first k, or behind the last one.
  const bool late_start = start >= kLineChunks / 2;
  const bool early_end = start + job.chunks <= kLineChunks * static_cast<std::uint32_t>(lines) - kLineChunks / 2;
  float sums[kLineRows / 2];
  for_each_index<kMostLines>([&](auto index) {
    constexpr int product = decltype(index)::value;
    constexpr int stage = product % kStages;
    constexpr int next = product + kLinesAhead;
    constexpr bool kMayBeLast = product + 2 >= kMostLines;
    if (kMayBeLast && product >= lines) return;
    const TileOperand<device::Major::k, kLineRows> right(shared.a[stage]);
    const auto multiply = [&](int i, bool accumulate) {
      device::Wgmma<T, kLineRows>::template multiply<device::Major::k>(sums, left[product % 3][i], right.at(i),
                                                                       accumulate);
    };
    const bool first_half = product > 0 || !late_start;
    device::wgmma_fence();
    if (first_half) {
      multiply(0, product > 0);
      multiply(1, true);
    }
    if (!kMayBeLast || product + 1 < lines || !early_end) {
      multiply(2, first_half);
      multiply(3, true);
    }
    device::wgmma_commit();
    device::wgmma_wait<1>();
    device::wait_copies<kLinesAhead - 2>();
    device::fence_async_shared();
    __syncthreads();  // A's next line and B's next but two are there, and the product before is done in every warp
    if constexpr (product + 2 < kMostLines) load_left(std::integral_constant<int, product + 2>());
    if constexpr (next < kMostLines) a.fetch(shared.a[next % kStages], next, job.chunks);
    if constexpr (next + 2 <= kMostLines) b.fetch(shared.b[(next + 2) % kStages], next + 2, job.chunks);
    device::commit_copies();  // also without copies, so that groups count lines
  });
  device::wgmma_wait<0>();
  device::pin_registers(sums);
  device::wait_copies<0>();
  __syncthreads();
  store_lines<T>(job, sums, shared.a[0], first_row, column);
}

/// For what has_whole_lines() in tiling.cpp takes.
inline LineJob make_line_job(const RowMajorCall& call) {
  const Problem& problem = call.problem;
  const auto bytes = [](std::int64_t elements) { return static_cast<std::uint32_t>(2 * elements); };
  const auto all = [&](std::int64_t lines, const MatrixLayout& layout) {
    return layout.leading_dimension() > 2 * problem.k ? 0 : bytes((lines - 1) * layout.leading_dimension() + problem.k);
  };
  return {.a = static_cast<const unsigned char*>(call.arguments.a),
          .b = static_cast<const unsigned char*>(call.arguments.b),
          .d = static_cast<unsigned char*>(call.arguments.d),
          .a_stride = bytes(problem.a.leading_dimension()),
          .b_stride = bytes(problem.b.leading_dimension()),
          .d_stride = bytes(problem.d.leading_dimension()),
          .rows = static_cast<std::uint32_t>(problem.m),
          .columns = static_cast<std::uint32_t>(problem.n),
          .chunks = static_cast<std::uint32_t>(problem.k / 8),
          .a_bytes = all(problem.m, problem.a),
          .b_bytes = all(problem.n, problem.b)};
}

inline dim3 line_grid(const LineJob& job) {
  return {kLinePeriod * ((job.columns + kLineColumns - 1) / kLineColumns),
          (job.rows + kLinePeriod * kLineRows - 1) / (kLinePeriod * kLineRows)};
}

}  // namespace tmaops::ops::gemm::cuda
