// What the unrolled kernels share: products that are cut into whole tiles, with a K that the compiler knows. A block
// lives for a microsecond or two, so what it waits for is the length of its code and the constants it reads: no edges,
// no batches, no epilogue but rounding, 36 bytes of parameters, strides in 32 bits, and every k-tile with its own copy
// of the code, so that stages are immediate addresses; a K-major B's columns in the order in which wgmma's accumulators
// are neighbours in D (docs/findings/gemm.md, G4 and G5).
#pragma once

#include <type_traits>
#include <utility>

#include "device/cp_async.cuh"
#include "device/fence.cuh"
#include "ops/gemm/shared/direct_epilogue.cuh"
#include "ops/gemm/shared/multiply.cuh"
#include "ops/gemm/shared/tile_order.hpp"
#include "ops/gemm/shared/unrolled_problem.hpp"

namespace tmaops::ops::gemm {

inline constexpr int kUnrolledThreads = device::kWarpgroupThreads;  // that multiply

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

/// Where a block's tile of D begins.
struct UnrolledPosition {
  std::uint32_t row;
  std::uint32_t column;
};
template <int columns, int k_tiles>
__device__ __forceinline__ UnrolledPosition unrolled_position() {
  constexpr std::uint32_t group = unrolled_group(k_tiles * kDepth);
  return {(blockIdx.y * group + blockIdx.x % group) * kUnrolledRows, blockIdx.x / group * columns};
}

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
inline constexpr ColumnOrder kColumnOrder = b_major == Major::k ? ColumnOrder::as_in_rows : ColumnOrder::as_in_memory;
/// What is left to exchange at the end, where B is not contiguous along K `otherwise`.
template <Major b_major, Exchange otherwise>
inline constexpr Exchange kExchange = b_major == Major::k ? Exchange::none : otherwise;

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

}  // namespace tmaops::ops::gemm
