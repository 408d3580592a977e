// Version 6: a K that the compiler knows, for products of 256 or 512 that are cut into whole tiles. What is new against
// version 1: every k-tile has its own stage and its own copy of the code, so that stages are immediate addresses. A
// block lives for a microsecond or two, so what it waits for is the length of its code and the constants it reads: no
// edges, no batches, no epilogue but rounding, 36 bytes of parameters, strides in 32 bits; a K-major B's columns in the
// order in which wgmma's accumulators are neighbours in D (docs/findings/gemm.md, G4 and G5). Tiles of 64 x 16 where
// they are one wave: less enters a multiprocessor.
#include <type_traits>
#include <utility>

#include "device/cp_async.cuh"
#include "device/fence.cuh"
#include "ops/gemm/shared/direct_epilogue.cuh"
#include "ops/gemm/shared/multiply.cuh"
#include "ops/gemm/shared/tile_order.hpp"

namespace tmaops::ops::gemm::wgmma_unrolled_k {
namespace {

constexpr int kUnrolledRows = 64;  // of a tile
constexpr int kUnrolledThreads = device::kWarpgroupThreads;
/// Tile rows that neighbouring blocks share a tile column in, for the L2. With K = 256 grouping gains nothing.
constexpr unsigned group_of(int k) { return k <= 256 ? 1 : 4; }

/// Strides in bytes, from one line of an operand to the next. Unsigned, as all that addresses are made of here: a sign
/// costs an instruction at every step from 32 to 64 bits and at every division.
struct UnrolledJob {
  const unsigned char* a = nullptr;
  const unsigned char* b = nullptr;
  unsigned char* d = nullptr;
  std::uint32_t a_stride = 0;
  std::uint32_t b_stride = 0;
  std::uint32_t d_stride = 0;

  UnrolledJob() = default;
  explicit UnrolledJob(const RowMajorCall& call)
      : a(static_cast<const unsigned char*>(call.arguments.a)),
        b(static_cast<const unsigned char*>(call.arguments.b)),
        d(static_cast<unsigned char*>(call.arguments.d)),
        a_stride(static_cast<std::uint32_t>(2 * call.problem.a.leading_dimension())),
        b_stride(static_cast<std::uint32_t>(2 * call.problem.b.leading_dimension())),
        d_stride(static_cast<std::uint32_t>(2 * call.problem.d.row_stride)) {}
};

/// The column of B's tile that goes into row `i` of a K-major tile. A thread's accumulators of a row of D are pairs 8
/// columns apart as wgmma counts them; in this order they are neighbours in D, which a thread writes without asking
/// others: row 8 j + 2 q + e, which thread q of four holds, is column (columns / 4) q + 2 j + e, for each 32 columns or
/// for all 16.
template <std::uint32_t columns>
__host__ __device__ constexpr std::uint32_t column_in_row(std::uint32_t i) {
  if (columns == 16) return (i & ~0xeu) | (i & 6) << 1 | (i >> 2 & 2);  // two bits change places with what is above
  return (i & ~0x1eu) | (i & 6) << 2 | (i >> 2 & 6);
}

/// In which order columns of B come into a tile: as in memory, or in that of column_in_row().
enum class ColumnOrder : std::uint8_t { as_in_memory, as_in_rows };
template <Major b_major>
constexpr ColumnOrder kColumnOrder = b_major == Major::k ? ColumnOrder::as_in_rows : ColumnOrder::as_in_memory;
/// One thread's part of the copies of an operand's tiles.
template <Major major, int extent, ColumnOrder order>
class WholeTile {
  static constexpr std::uint32_t kLine = kTileRowBytes<major, extent>;
  static constexpr std::uint32_t kChunks = kLine / 16;
  static constexpr std::uint32_t kLinesAtOnce = kUnrolledThreads / kChunks;
  static constexpr std::uint32_t kPanelLines = major == Major::k ? extent : kDepth;
  static constexpr std::uint32_t kPanels = extent * kRowBytes / kLine / kPanelLines;
  static_assert(kLinesAtOnce % 8 == 0, "a thread's lines have the same place in the swizzle");
  static_assert(kPanelLines % kLinesAtOnce == 0);

 public:
  __device__ __forceinline__ WholeTile(const unsigned char* data, std::uint32_t stride, std::uint32_t mn,
                                       std::uint32_t thread) {
    stride_ = stride;
    const std::uint32_t chunk = thread % kChunks;
    const std::uint32_t line = thread / kChunks;
    place_ = device::swizzled<kTileSwizzle<major, extent>>(line * kLine + chunk * 16);
    from_ = data + (chunk * 16 + (major == Major::k ? (mn + source(line)) * stride : line * stride + 2 * mn));
  }
  /// Forces the computation of the first address before griddepcontrol.wait, by a use that nobody reads: ptxas would
  /// move it behind the wait, and with dependent launch the copies would start later (docs/findings/gemm.md, G9).
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
        device::copy_async_16(
            tile + place_ + (panel * kPanelLines + line) * kLine,  // two additions: the last is an immediate
            from_ + source(line) * stride_ + (major == Major::k ? k_tile * kRowBytes : panel * kLine));
    if (major == Major::mn) from_ += kDepth * stride_;
  }

 private:
  /// Of a thread's first line plus a multiple of kLinesAtOnce: the sum of both sources.
  static __device__ __forceinline__ std::uint32_t source(std::uint32_t line) {
    return order == ColumnOrder::as_in_rows ? column_in_row<extent>(line) : line;
  }

  const unsigned char* from_;
  std::uint32_t stride_, place_;
};

/// Calls step(std::integral_constant<int, i>()) for i from 0 to count - 1.
template <int count, class Step>
__device__ __forceinline__ void for_each_index(const Step& step) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (step(std::integral_constant<int, i>()), ...);
  }(std::make_integer_sequence<int, count>());
}

/// The 64 x n accumulators of a warpgroup, which lie inside D, to D, whose elements are of type T. `stride`: bytes from
/// row to row.
template <class T, int n, Exchange exchange>
__device__ __forceinline__ void store_whole(unsigned char* d, std::uint32_t stride, const float (&accumulators)[n / 2],
                                            std::uint32_t row, std::uint32_t column) {
  const std::uint32_t lane = threadIdx.x % device::kWarpThreads;
  const std::uint32_t warp = threadIdx.x / device::kWarpThreads;
  d += (row + warp * kStagedRows + lane / 4) * stride + 2 * column;
  if constexpr (n == 16) {
    std::uint32_t word[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) word[i] = device::pack<T>(accumulators[2 * i], accumulators[2 * i + 1]);
    if constexpr (exchange == Exchange::none) {
      d += 8 * (lane % 4);
      *reinterpret_cast<uint2*>(d) = make_uint2(word[0], word[2]);
      *reinterpret_cast<uint2*>(d + 8 * stride) = make_uint2(word[1], word[3]);
    } else {  // the four threads take two pieces of two rows
      exchange_in_four(word, static_cast<int>(lane % 4));
      device::store_16(d + lane % 2 * 8 * stride + lane % 4 / 2 * 16, make_uint4(word[0], word[1], word[2], word[3]));
    }
  } else if constexpr (exchange == Exchange::in_pairs) {
    const bool odd = lane % 2 != 0;
    d += 8 * (lane % 4 / 2) + 16 * (lane % 2);
#pragma unroll
    for (int pair = 0; pair < n / 16; ++pair)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* from = accumulators + 8 * pair + 2 * half;
        std::uint32_t word[2] = {device::pack<T>(from[0], from[1]), device::pack<T>(from[4], from[5])};
        const std::uint32_t got = __shfl_xor_sync(0xffffffffu, odd ? word[0] : word[1], 1);
        (odd ? word[0] : word[1]) = got;
        *reinterpret_cast<uint2*>(d + static_cast<std::uint32_t>(half) * 8 * stride + 32 * pair) =
            make_uint2(word[0], word[1]);
      }
  } else {
    d += 16 * (lane % 4);
    store_in_fours<n, exchange>(
        accumulators, [](float low, float high) { return device::pack<T>(low, high); },
        [&](int half, int group, const uint4& words) {
          device::store_16(d + static_cast<std::uint32_t>(half) * 8 * stride + 64 * group, words);
        });
  }
}

/// All k-tiles at once.
template <int columns, int k_tiles>
struct Storage {
  struct Stage {
    unsigned char a[kUnrolledRows * kRowBytes];
    unsigned char b[columns * kRowBytes];
  };
  alignas(1024) Stage stage[k_tiles];
  std::uint32_t spare[kUnrolledThreads];
  /// More than half of the multiprocessor's, so that dependent launches do not pair up.
  static constexpr int bytes = kMoreThanHalf;
  static_assert(k_tiles * sizeof(Stage) + sizeof(spare) <= bytes);
};

template <class T, int columns, int k_tiles, Major a_major, Major b_major>
__global__ void __launch_bounds__(kUnrolledThreads, 1) kernel(const __grid_constant__ UnrolledJob job) {
  using Shared = Storage<columns, k_tiles>;
  Shared& shared = device::dynamic_shared<Shared, kSite.smem>();
  device::let_next_kernel_start();
  constexpr std::uint32_t group = group_of(k_tiles * kDepth);
  const std::uint32_t row = (blockIdx.y * group + blockIdx.x % group) * kUnrolledRows;
  const std::uint32_t column = blockIdx.x / group * columns;
  WholeTile<a_major, kUnrolledRows, ColumnOrder::as_in_memory> a(job.a, job.a_stride, row, threadIdx.x);
  WholeTile<b_major, columns, kColumnOrder<b_major>> b(job.b, job.b_stride, column, threadIdx.x);
  a.be_ready(shared.spare[threadIdx.x]);
  device::wait_for_previous_kernel();
#pragma unroll
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    a.fetch(shared.stage[k_tile].a, k_tile);
    b.fetch(shared.stage[k_tile].b, k_tile);
    device::commit_copies();
  }

  float accumulators[columns / 2];
  for_each_index<k_tiles>([&](auto index) {
    constexpr int k_tile = decltype(index)::value;
    device::wait_copies<k_tiles - k_tile - 1>();
    device::fence_async_shared();
    __syncthreads();
    multiply_stage<T, columns, a_major, b_major>(accumulators, shared.stage[k_tile].a, shared.stage[k_tile].b,
                                                 k_tile > 0);
  });
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);
  constexpr Exchange kExchange = b_major == Major::k ? Exchange::none
                                 : k_tiles == 4      ? Exchange::in_pairs
                                                     : Exchange::in_fours;
  store_whole<T, columns, kExchange>(job.d, job.d_stride, accumulators, row, column);
}

}  // namespace

Work plan(const Problem& given, const Arguments& arguments, const Config& config) {
  const RowMajorCall call(given, arguments);
  const unsigned group = group_of(static_cast<int>(given.k));
  const LaunchShape shape{.grid = {static_cast<unsigned>(call.problem.n / config.columns) * group,
                                   static_cast<unsigned>(call.problem.m / (kUnrolledRows * group))},
                          .block = kUnrolledThreads,
                          .shared_bytes = kMoreThanHalf,
                          .dependent = arguments.dependent_launch};
  Work work(kSite, given.device);
  with_kernel_types(call, [&]<class T, Major a, Major b>() {
    const UnrolledJob job(call);
    if (given.k == 8 * kDepth)
      work.add(kernel<T, 32, 8, a, b>, shape, job);
    else if (config.columns == 32)
      work.add(kernel<T, 32, 4, a, b>, shape, job);
    else
      work.add(kernel<T, 16, 4, a, b>, shape, job);
  });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_unrolled_k
