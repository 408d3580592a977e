// Products that are cut into whole tiles, with a K that the compiler knows: what the hot sizes below 2048 get. A block
// lives for a microsecond or two, so what it waits for is the length of its code and the constants it reads: no edges,
// no batches, no epilogue but rounding, 36 bytes of parameters, strides in 32 bits, and every product with its own copy
// of the code, so that stages are immediate addresses; a K-major B's columns in the order in which wgmma's sums are
// neighbours in D. (H200: 256 1.7 instead of 2.3 us with the general kernel of the same tile, 1.6 with 64 x 16 and 1.53
// in that order, 512 2.13 instead of 3.4.) K = 1024: mapped_tiles.cuh.
#pragma once

#include <type_traits>
#include <utility>

#include "device/cp_async.cuh"
#include "device/fence.cuh"
#include "ops/gemm/cuda/direct_epilogue.cuh"
#include "ops/gemm/cuda/multiply.cuh"
#include "ops/gemm/cuda/tile_order.cuh"

namespace tmaops::ops::gemm::cuda {

inline constexpr int kWholeRows = 64;
inline constexpr int kWholeThreads = device::kWarpgroupThreads;

/// Strides in bytes, from one line of an operand to the next. Unsigned, as all that addresses are made of here: a sign
/// costs an instruction at every step from 32 to 64 bits and at every division.
struct WholeJob {
  const unsigned char* a = nullptr;
  const unsigned char* b = nullptr;
  unsigned char* d = nullptr;
  std::uint32_t a_stride = 0;
  std::uint32_t b_stride = 0;
  std::uint32_t d_stride = 0;
};

/// All k-tiles at once.
template <int columns, int k_tiles>
struct WholeStorage {
  struct Stage {
    unsigned char a[kWholeRows * kRowBytes];
    unsigned char b[columns * kRowBytes];
  };
  alignas(1024) Stage stage[k_tiles];
  std::uint32_t spare[kWholeThreads];
  /// More than half of the multiprocessor's, so that dependent launches do not pair up.
  static constexpr int bytes = kMoreThanHalf;
  static_assert(k_tiles * sizeof(Stage) + sizeof(spare) <= bytes);
};

/// Tile rows that neighbouring blocks share a tile column in, for the L2. (512: 4 2.21 us, 1 2.27, 8 2.29; transposed
/// operands 2.30, 2.34, 2.36; 256: no gain.)
template <int k_tiles>
inline constexpr std::uint32_t kWholeGroup = k_tiles == 4 ? 1 : 4;

/// Where a block's tile of D begins.
struct WholePosition {
  std::uint32_t row;
  std::uint32_t column;
};
template <int columns, int k_tiles>
__device__ __forceinline__ WholePosition whole_position() {
  constexpr std::uint32_t group = kWholeGroup<k_tiles>;
  return {(blockIdx.y * group + blockIdx.x % group) * kWholeRows, blockIdx.x / group * columns};
}

/// The column of B's tile that goes into row `i` of a K-major tile. A thread's sums of a row of D are pairs 8 columns
/// apart as wgmma counts them; in this order they are neighbours in D, which a thread writes without asking others: row
/// 8 j + 2 q + e, which thread q of four holds, is column (columns / 4) q + 2 j + e, for each 32 columns or for all 16.
template <std::uint32_t columns>
__host__ __device__ constexpr std::uint32_t column_in_row(std::uint32_t i) {
  if (columns == 16) return (i & ~0xeu) | (i & 6) << 1 | (i >> 2 & 2);  // two bits change places with what is above
  return (i & ~0x1eu) | (i & 6) << 2 | (i >> 2 & 6);
}

/// One thread's part of the copies of an operand's tiles. `known_stride`: the bytes from line to line where the
/// compiler is to know them, else 0. `permuted`: a K-major tile's lines are in the order of column_in_row().
template <Major major, int extent, std::uint32_t known_stride, bool permuted>
class WholeTile {
  static constexpr std::uint32_t kLine = kTileRowBytes<major, extent>;
  static constexpr std::uint32_t kChunks = kLine / 16;
  static constexpr std::uint32_t kLinesAtOnce = kWholeThreads / kChunks;
  static constexpr std::uint32_t kPanelLines = major == Major::k ? extent : kDepth;
  static constexpr std::uint32_t kPanels = extent * kRowBytes / kLine / kPanelLines;
  static_assert(kLinesAtOnce % 8 == 0, "a thread's lines have the same place in the swizzle");
  static_assert(kPanelLines % kLinesAtOnce == 0);

 public:
  __device__ __forceinline__ WholeTile(const unsigned char* data, std::uint32_t stride, std::uint32_t mn,
                                       std::uint32_t thread) {
    if (known_stride != 0) stride = known_stride;
    stride_ = stride;
    const std::uint32_t chunk = thread % kChunks;
    const std::uint32_t line = thread / kChunks;
    place_ = device::swizzled<kTileSwizzle<major, extent>>(line * kLine + chunk * 16);
    from_ = data + (chunk * 16 + (major == Major::k ? (mn + source(line)) * stride : line * stride + 2 * mn));
  }
  /// Writes to `spare` something made of the first address and place. ptxas moves what nothing needs in front of
  /// griddepcontrol.wait behind it, and with dependent launch the copies then start 25 instructions later. (CR
  /// 1024 4.54 to 4.45 us, RC 4.44 to 4.38, 512 2.02 to 2.00 and 1.81 to 1.78, 256 1.31 to 1.29 and 1.175 to 1.158;
  /// plain launches level, but with B's addresses as well 0.01 to 0.04 slower.)
  __device__ __forceinline__ void be_ready(std::uint32_t& spare) const {
    const auto from = reinterpret_cast<std::uintptr_t>(from_);
    const auto low = static_cast<std::uint32_t>(from);
    const auto high = static_cast<std::uint32_t>(from >> 32);
    device::store_shared(device::shared_address(&spare), low ^ high ^ place_);
  }
  /// Fetches tile after tile; `k_tile` counts them and is known to the compiler.
  __device__ __forceinline__ void fetch(unsigned char* tile, std::uint32_t k_tile) {
#pragma unroll
    for (std::uint32_t line = 0; line < kPanelLines; line += kLinesAtOnce)
#pragma unroll
      for (std::uint32_t panel = 0; panel < kPanels; ++panel)
        device::copy_async_16(tile + place_ + (panel * kPanelLines + line) * kLine,  // two sums: the last is immediate
                              from_ + source(line) * stride() +
                                  (major == Major::k ? k_tile * kRowBytes : panel * kLine) +
                                  (major == Major::mn ? k_tile * kDepth * known_stride : 0));
    if (major == Major::mn && known_stride == 0) from_ += kDepth * stride_;
  }

 private:
  /// Of a thread's first line plus a multiple of kLinesAtOnce: the sum of both sources.
  static __device__ __forceinline__ std::uint32_t source(std::uint32_t line) {
    return permuted ? column_in_row<extent>(line) : line;
  }
  __device__ __forceinline__ std::uint32_t stride() const { return known_stride != 0 ? known_stride : stride_; }

  const unsigned char* from_;
  std::uint32_t stride_, place_;
};

/// Calls step(std::integral_constant<int, i>()) for i from 0 to count - 1.
template <int count, class Step>
__device__ __forceinline__ void for_each_index(const Step& step) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (step(std::integral_constant<int, i>()), ...); }
  (std::make_integer_sequence<int, count>());
}

/// `square`: M = N = K and no gaps, so that every stride is known.
template <class T, int columns, int k_tiles, bool square, Major a_major, Major b_major>
__global__ void __launch_bounds__(kWholeThreads, 1) whole_kernel(const __grid_constant__ WholeJob job) {
  using Storage = WholeStorage<columns, k_tiles>;
  Storage& shared = device::dynamic_shared<Storage, wgmma_small::kSite.smem>();
  device::let_next_kernel_start();
  const auto [row, column] = whole_position<columns, k_tiles>();
  constexpr std::uint32_t kStride = square ? k_tiles * kRowBytes : 0;
  WholeTile<a_major, kWholeRows, kStride, false> a(job.a, job.a_stride, row, threadIdx.x);
  constexpr bool kPermuted = b_major == Major::k;
  WholeTile<b_major, columns, kStride, kPermuted> b(job.b, job.b_stride, column, threadIdx.x);
  a.be_ready(shared.spare[threadIdx.x]);
  device::wait_for_previous_kernel();
#pragma unroll
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    a.fetch(shared.stage[k_tile].a, k_tile);
    b.fetch(shared.stage[k_tile].b, k_tile);
    device::commit_copies();
  }

  float sums[columns / 2];
  for_each_index<k_tiles>([&](auto index) {
    constexpr int k_tile = decltype(index)::value;
    device::wait_copies<k_tiles - k_tile - 1>();
    device::fence_async_shared();
    __syncthreads();
    multiply_stage<T, columns, a_major, b_major>(sums, shared.stage[k_tile].a, shared.stage[k_tile].b, k_tile > 0);
  });
  device::wgmma_wait<0>();
  device::pin_registers(sums);
  store_whole<T, columns, kPermuted, k_tiles == 4>(job.d, square ? kStride : job.d_stride, sums, row, column);
}

/// Whether a product is cut into whole tiles and its strides fit.
template <int columns, int k_tiles>
bool cuts_whole(const RowMajorCall& call) {
  const Problem& problem = call.problem;
  const Epilogue epilogue = call.epilogue();
  const auto fits = [](std::int64_t lines, std::int64_t stride) {
    return stride >= 0 && 2 * lines * stride <= INT32_MAX;
  };
  const auto operand_fits = [&](const MatrixLayout& layout) {
    const bool row_major = layout.order == Order::row;
    return fits(row_major ? layout.rows : layout.columns, layout.leading_dimension());
  };
  return stores_directly(epilogue) && problem.d.dtype == problem.a.dtype && problem.batch == 1 &&
         problem.m % (kWholeRows * kWholeGroup<k_tiles>) == 0 && problem.n % columns == 0 &&
         problem.k == k_tiles * kDepth && operand_fits(problem.a) && operand_fits(problem.b) &&
         fits(problem.m, problem.d.row_stride);
}

/// M = N = K and no gaps between rows or columns.
inline bool is_square(const Problem& problem) {
  return problem.m == problem.k && problem.n == problem.k && problem.a.leading_dimension() == problem.k &&
         problem.b.leading_dimension() == problem.k && problem.d.row_stride == problem.k;
}

/// m and n of the form in which D is row-major.
template <int columns, int k_tiles>
dim3 whole_grid(std::int64_t m, std::int64_t n) {
  constexpr std::uint32_t group = kWholeGroup<k_tiles>;
  return {static_cast<unsigned>(n / columns * group), static_cast<unsigned>(m / (kWholeRows * group))};
}

inline WholeJob make_whole_job(const RowMajorCall& call) {
  const Problem& problem = call.problem;
  const auto stride = [](std::int64_t elements) { return static_cast<std::uint32_t>(2 * elements); };
  return {.a = static_cast<const unsigned char*>(call.arguments.a),
          .b = static_cast<const unsigned char*>(call.arguments.b),
          .d = static_cast<unsigned char*>(call.arguments.d),
          .a_stride = stride(problem.a.leading_dimension()),
          .b_stride = stride(problem.b.leading_dimension()),
          .d_stride = stride(problem.d.row_stride)};
}

}  // namespace tmaops::ops::gemm::cuda
