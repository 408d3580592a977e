// Version 0: mma.sync fed by the threads themselves, on every GPU since compute capability 8.0. Each of four warps
// computes a quarter of the tile of D. All threads fill a ring of stages by cp.async, ahead of the product. A warp
// reads the operands of its next products before it issues those at hand. It takes every problem: any strides, any
// alignment, K = 0.
#include <utility>

#include "device/matrix.cuh"
#include "device/mma.cuh"
#include "ops/gemm/shared/epilogue.cuh"
#include "ops/gemm/shared/thread_loads.cuh"
#include "ops/gemm/shared/tile_position.cuh"

namespace tmaops::ops::gemm::mma_sync {
namespace {

constexpr int kColumns = 128;
constexpr int kWarpColumns = 64;
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * device::kWarpThreads;
constexpr int kSteps = kDepth / 16;  // products of a stage, 16 deep
constexpr int kBlockBytes = 16 * kRowBytes;
constexpr int kBlockSums = 16 * kWarpColumns / device::kWarpThreads;  // a thread's, of 16 rows
constexpr int kColumnBlocks = kWarpColumns / 16;

template <int rows>
struct Stage {
  unsigned char a[rows * kRowBytes];
  unsigned char b[kColumns * kRowBytes];
};
/// As many as 96 KiB hold, which every GPU since 8.0 gives to a block.
template <int rows>
constexpr int kStages = 96 * 1024 / static_cast<int>(sizeof(Stage<rows>));
template <int rows>
union Storage {
  alignas(1024) Stage<rows> stage[kStages<rows>];
  WarpStaging staging[kWarps];
};

struct Job : ThreadJob {
  int whole_rows = 0;  // tiles of which nothing lies outside of A and B, where chunks
  int whole_columns = 0;
};

enum class Operand { a, b };

/// A warp's rows of A or columns of B in a stage: `extent` of them, 64 or 32. Thread l reads row l % 8 of matrix l / 8
/// of a fragment. The matrices come in the order in which multiply_add() takes its registers: of A the two halves of
/// the rows first, of B the two halves of k. Each 16 bytes lie where the swizzle of 128 bytes puts them: one number of
/// a fragment moves by whole lines, the other exchanges chunks within them.
template <Operand operand, Major major, int extent>
class Fragments {
 public:
  static constexpr int kBlocks = extent / 16;
  __device__ __forceinline__ explicit Fragments(int part) {
    const int lane = device::lane_index();
    const int k_half = operand == Operand::a ? lane / 16 : lane / 8 % 2;
    const int half = operand == Operand::a ? lane / 8 % 2 : lane / 16;  // of 16 rows or columns
    const int line = lane % 8 + 8 * (major == Major::k ? half : k_half);
    const int chunk = (major == Major::k ? k_half : half) ^ (lane % 8);
    at_ = static_cast<std::uint32_t>(line * kRowBytes + chunk * 16);
    if constexpr (major == Major::mn && extent < 64)
      at_ ^= static_cast<std::uint32_t>(part * extent * 2);
    else
      at_ += static_cast<std::uint32_t>(part * extent * kRowBytes);
  }
  /// All rows or columns, and 16 of k from 16 step on.
  __device__ __forceinline__ void load(std::uint32_t (&to)[kBlocks][4], const unsigned char* tile, int step) const {
    const std::uint32_t from = device::shared_address(tile);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const auto exchanged = static_cast<std::uint32_t>(major == Major::k ? step : block) * 32;
      const auto moved = static_cast<std::uint32_t>(major == Major::k ? block : step) * kBlockBytes;
      const std::uint32_t at = from + (at_ ^ exchanged) + moved;
      if constexpr (major == Major::k)
        device::load_matrices(to[block], at);
      else
        device::load_matrices_transposed(to[block], at);
    }
  }

 private:
  std::uint32_t at_;
};

/// How the operands come: element by element or in pieces of 2 to 16 bytes; all in pieces of 16; and nothing of the
/// tile lies outside.
enum class Copies { any, chunks, whole };

/// The product over all k.
template <class T, Major a_major, Major b_major, int rows, Copies copies>
__device__ __forceinline__ void multiply_tiles(float (&sums)[rows / 32 * kBlockSums], Storage<rows>& shared,
                                               ThreadTile<a_major, rows, kThreads> a,
                                               ThreadTile<b_major, kColumns, kThreads> b, int k_tiles) {
  constexpr int kAhead = kStages<rows> - 1;
  constexpr int kRowBlocks = rows / 32;
  const Fragments<Operand::a, a_major, rows / 2> warp_rows(device::warp_index() / 2);
  const Fragments<Operand::b, b_major, kWarpColumns> warp_columns(device::warp_index() % 2);
  const auto fetch_part = [&]<int part>(Stage<rows>& to) {  // a quarter of a stage; the parts in order
    const auto fetch = [](auto& operand, unsigned char* tile) {
      constexpr int kHalf = part % 2;
      if constexpr (copies != Copies::any)
        operand.template fetch_half<kHalf, copies == Copies::whole>(tile);
      else if constexpr (kHalf == 0)
        operand.fetch(tile);
    };
    if constexpr (part < 2)
      fetch(a, to.a);
    else
      fetch(b, to.b);
  };
  const auto for_steps = [](const auto& body) {
    [&]<int... steps>(std::integer_sequence<int, steps...>) {
      (body.template operator()<steps>(), ...);
    }(std::make_integer_sequence<int, kSteps>());
  };
#pragma unroll 1
  for (int k_tile = 0; k_tile < kAhead; ++k_tile) {
    if (k_tile < k_tiles) for_steps([&]<int part>() { fetch_part.template operator()<part>(shared.stage[k_tile]); });
    device::commit_copies();  // also without copies, so that groups count tiles
  }
  device::wait_copies<kAhead - 1>();
  __syncthreads();

  std::uint32_t left[2][kRowBlocks][4], right[2][kColumnBlocks][4];
  warp_rows.load(left[0], shared.stage[0].a, 0);
  warp_columns.load(right[0], shared.stage[0].b, 0);
  int at = 0, free = kAhead;  // stages: what is multiplied, what is fetched next
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    const bool more = k_tile + kAhead < k_tiles;
    const int next = at + 1 == kStages<rows> ? 0 : at + 1;
    for_steps([&]<int step>() {
      constexpr bool kLast = step + 1 == kSteps;
      constexpr int kNow = step % 2;
      if constexpr (kLast) {
        if (more) fetch_part.template operator()<step>(shared.stage[free]);
        device::commit_copies();
        device::wait_copies<kAhead - 1>();
        __syncthreads();  // the next stage is there, and every warp has read this one
      }
      const device::UnwrittenReads of_no_tile(kLast && k_tile + 1 == k_tiles);  // nothing multiplies what they bring
      const Stage<rows>& from = shared.stage[kLast ? next : at];
      warp_rows.load(left[1 - kNow], from.a, kLast ? 0 : step + 1);
      warp_columns.load(right[1 - kNow], from.b, kLast ? 0 : step + 1);
      if constexpr (!kLast)
        if (more) fetch_part.template operator()<step>(shared.stage[free]);
#pragma unroll
      for (int i = 0; i < kRowBlocks; ++i)
#pragma unroll
        for (int j = 0; j < 2 * kColumnBlocks; ++j)
          device::multiply_add<T>(sums + i * kBlockSums + 4 * j, left[kNow][i],
                                  {right[kNow][j / 2][j % 2 * 2], right[kNow][j / 2][j % 2 * 2 + 1]});
    });
    free = at;
    at = next;
  }
  device::wait_copies();
  __syncthreads();  // the stages become staging
}

template <class T, Major a_major, Major b_major, int rows>
__global__ void __launch_bounds__(kThreads, 2) kernel(const __grid_constant__ Job job) {
  Storage<rows>& shared = device::dynamic_shared<Storage<rows>, kSite.smem>();
  device::let_next_kernel_start();
  const TilePosition tile(job.order);
  if (!tile.inside(job.order)) return;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = device::warp_index();
  const bool whole = tile.row < job.whole_rows && tile.column < job.whole_columns;
  device::wait_for_previous_kernel();

  for (int p = static_cast<int>(blockIdx.z); p < job.batch; p += static_cast<int>(gridDim.z)) {
    const ThreadTile<a_major, rows, kThreads> a(job.a, job.a.data + p * job.a.batch_stride, tile.row * rows, thread);
    const ThreadTile<b_major, kColumns, kThreads> b(job.b, job.b.data + p * job.b.batch_stride, tile.column * kColumns,
                                                    thread);
    float sums[rows / 32 * kBlockSums] = {};
    if (whole)
      multiply_tiles<T, a_major, b_major, rows, Copies::whole>(sums, shared, a, b, job.k_tiles);
    else if (job.chunks)
      multiply_tiles<T, a_major, b_major, rows, Copies::chunks>(sums, shared, a, b, job.k_tiles);
    else
      multiply_tiles<T, a_major, b_major, rows, Copies::any>(sums, shared, a, b, job.k_tiles);

    const int row = tile.row * rows + warp / 2 * (rows / 2);
    const int column = tile.column * kColumns + warp % 2 * kWarpColumns;
#pragma unroll 1
    for (int i = 0; i < rows / 32; ++i)
      write_chunk<rows / 32 * kWarpColumns>(job.epilogue, sums, shared.staging[warp], i, row + 16 * i, column,
                                            kWarpColumns, p);
    __syncthreads();  // staging becomes the next batch's stages
  }
}

template <int rows>
Work plan_rows(const RowMajorCall& call) {
  const Problem& problem = call.problem;
  Job job{ThreadJob(call, rows, kColumns)};
  if (job.chunks && problem.k % kDepth == 0) {
    job.whole_rows = static_cast<int>(problem.m / rows);
    job.whole_columns = static_cast<int>(problem.n / kColumns);
  }
  const LaunchShape shape{.grid = job.order.grid(problem.batch),
                          .block = kThreads,
                          .shared_bytes = static_cast<int>(sizeof(Storage<rows>)),
                          .dependent = call.arguments.dependent_launch};
  Work work(kSite, problem.device);
  with_kernel_types(call, [&]<class T, Major a, Major b>() { work.add(kernel<T, a, b, rows>, shape, job); });
  return work;
}

}  // namespace

Work plan(const Problem& given, const Arguments& given_arguments, const Config& config) {
  const RowMajorCall call(given, given_arguments);
  return config.rows == 64 ? plan_rows<64>(call) : plan_rows<128>(call);
}

}  // namespace tmaops::ops::gemm::mma_sync
