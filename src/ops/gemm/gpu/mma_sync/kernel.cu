// Version 0: mma.sync fed by the threads themselves, on every GPU since compute capability 8.0. Four warps compute 64 x
// 64 of D each from a ring of three stages, which all threads fill by cp.async two stages ahead of the product. Large
// parts per warp keep the reads of shared memory below the rate of the tensor cores. It takes every problem: any
// strides, any alignment, K = 0.
#include "device/matrix.cuh"
#include "device/mma.cuh"
#include "ops/gemm/shared/epilogue.cuh"
#include "ops/gemm/shared/thread_loads.cuh"
#include "ops/gemm/shared/tile_position.cuh"

namespace tmaops::ops::gemm::mma_sync {
namespace {

constexpr int kTile = 128;     // rows and columns of D
constexpr int kWarpTile = 64;  // rows and columns of a warp
constexpr int kWarps = 4;
constexpr int kThreads = kWarps * device::kWarpThreads;
constexpr int kStages = 3;
constexpr int kAhead = kStages - 1;
constexpr int kBlocks = kWarpTile / 16;  // of 16 rows or columns of a warp's part
constexpr int kBlockBytes = 16 * kRowBytes;
constexpr int kBlockSums = 16 * kWarpTile / device::kWarpThreads;  // a thread's, of 16 rows

struct Stage {
  unsigned char a[kTile * kRowBytes];
  unsigned char b[kTile * kRowBytes];
};
union Storage {
  alignas(1024) Stage stage[kStages];
  WarpStaging staging[kWarps];
};

struct Job {
  ThreadOperand a;
  ThreadOperand b;
  Epilogue epilogue;
  TileOrder order;
  int k_tiles = 0;
  int batch = 0;
};

/// A warp's 64 rows of A or columns of B in a stage. Thread l reads row l % 8 of matrix l / 8 of a fragment, the
/// matrices in the order of multiply_add(). Each 16 bytes lie where the swizzle of 128 bytes puts them: one number of
/// a fragment moves by whole lines, the other exchanges chunks within them.
template <Major major>
class Fragments {
 public:
  __device__ __forceinline__ explicit Fragments(int part) {
    const int lane = device::lane_index();
    const int outer = lane / 16, inner = lane / 8 % 2;
    const int line = lane % 8 + 8 * (major == Major::k ? inner : outer);
    const int chunk = (major == Major::k ? outer : inner) ^ (lane % 8);
    at_ = static_cast<std::uint32_t>(part * kPanelBytes + line * kRowBytes + chunk * 16);
  }
  /// Rows or columns 16 block to 16 block + 15, and 16 of k from 16 step on.
  __device__ __forceinline__ void load(std::uint32_t (&to)[4], const unsigned char* tile, int block, int step) const {
    const auto exchanged = static_cast<std::uint32_t>(major == Major::k ? step : block) * 32;
    const auto moved = static_cast<std::uint32_t>(major == Major::k ? block : step) * kBlockBytes;
    const std::uint32_t from = device::shared_address(tile) + (at_ ^ exchanged) + moved;
    if constexpr (major == Major::k)
      device::load_matrices(to, from);
    else
      device::load_matrices_transposed(to, from);
  }

 private:
  std::uint32_t at_;
};

template <class T, Major a_major, Major b_major>
__global__ void __launch_bounds__(kThreads, 2) kernel(const __grid_constant__ Job job) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  const TilePosition tile(job.order);
  if (!tile.inside(job.order)) return;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = device::warp_index();
  const Fragments<a_major> rows(warp / 2);
  const Fragments<b_major> columns(warp % 2);
  device::wait_for_previous_kernel();

  for (int p = static_cast<int>(blockIdx.z); p < job.batch; p += static_cast<int>(gridDim.z)) {
    // Fetch.
    ThreadTile<a_major, kTile, kThreads> a(job.a, job.a.data + p * job.a.batch_stride, tile.row * kTile, thread);
    ThreadTile<b_major, kTile, kThreads> b(job.b, job.b.data + p * job.b.batch_stride, tile.column * kTile, thread);
    const auto fetch = [&](int k_tile) {  // in order
      if (k_tile < job.k_tiles) {
        a.fetch(shared.stage[k_tile % kStages].a);
        b.fetch(shared.stage[k_tile % kStages].b);
      }
      device::commit_copies();  // also without copies, so that groups count tiles
    };
#pragma unroll 1
    for (int k_tile = 0; k_tile < kAhead; ++k_tile) fetch(k_tile);

    // Multiply.
    float sums[kBlocks * kBlockSums] = {};
#pragma unroll 1
    for (int k_tile = 0; k_tile < job.k_tiles; ++k_tile) {
      device::wait_copies<kAhead - 1>();
      __syncthreads();  // the stage is there, and every warp has read the one before it
      fetch(k_tile + kAhead);
      const Stage& stage = shared.stage[k_tile % kStages];
#pragma unroll
      for (int step = 0; step < kDepth / 16; ++step) {
        std::uint32_t left[kBlocks][4], right[kBlocks][4];
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) {
          rows.load(left[i], stage.a, i, step);
          columns.load(right[i], stage.b, i, step);
        }
#pragma unroll
        for (int i = 0; i < kBlocks; ++i)
#pragma unroll
          for (int j = 0; j < 2 * kBlocks; ++j)
            device::multiply_add<T>(sums + i * kBlockSums + 4 * j, left[i],
                                    {right[j / 2][j % 2], right[j / 2][j % 2 + 2]});
      }
    }
    device::wait_copies();
    __syncthreads();  // the stages become staging

    // Epilogue.
    const int row = tile.row * kTile + warp / 2 * kWarpTile;
    const int column = tile.column * kTile + warp % 2 * kWarpTile;
#pragma unroll 1
    for (int i = 0; i < kBlocks; ++i)
      write_chunk<kBlocks * kWarpTile>(job.epilogue, sums, shared.staging[warp], i, row + 16 * i, column, kWarpTile, p);
    __syncthreads();  // staging becomes the next batch's stages
  }
}

}  // namespace

Work plan(const Problem& given, const Arguments& given_arguments, const Config&) {
  const RowMajorCall call(given, given_arguments);
  Job job;
  job.a = thread_a(call);
  job.b = thread_b(call);
  job.epilogue = call.epilogue();
  job.order = TileOrder(call.problem, kTile, kTile);
  job.k_tiles = call.k_tiles();
  job.batch = static_cast<int>(call.problem.batch);
  const LaunchShape shape{.grid = job.order.grid(call.problem.batch),
                          .block = kThreads,
                          .shared_bytes = static_cast<int>(sizeof(Storage)),
                          .dependent = call.arguments.dependent_launch};
  Work work(kSite, call.problem.device);
  with_kernel_types(call, [&]<class T, Major a, Major b>() { work.add(kernel<T, a, b>, shape, job); });
  return work;
}

}  // namespace tmaops::ops::gemm::mma_sync
