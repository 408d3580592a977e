// Version 10: split-K over a cluster of up to eight blocks, for products with few tiles: few rows, or a long K. What is
// new against version 8: any power of two of blocks share a tile's K, tiles are 64 or 128 high and 16 to 128 wide, and
// a product of few rows is computed as D^T = B^T A^T, so that its weights fill the tensor cores' 64 rows and its rows
// cost a narrow tile. Each warpgroup's fragments of 8 columns are shared out among the blocks: a block receives those
// that it finishes from all others through distributed shared memory and adds them in the order of the blocks, so the
// bits are the same in every run. Values go to D from registers, by any epilogue.
#include <algorithm>

#include "device/cluster.cuh"
#include "ops/gemm/shared/deep_loads.cuh"
#include "ops/gemm/shared/epilogue.cuh"
#include "ops/gemm/shared/tile_position.cuh"

namespace tmaops::ops::gemm::wgmma_split_k {
namespace {

/// What follows from the extents of a tile.
template <int rows, int n>
struct Shape {
  static constexpr int groups = rows / 64;  // consumer warpgroups
  static constexpr int consumers = groups * device::kWarpgroupThreads;
  static constexpr int threads = consumers + device::kWarpThreads;
  static constexpr int halves = rows == 64 ? kHalves : 1;  // products of kDepth in a stage
  static constexpr int atoms = n / 8;                      // fragments of 8 columns, four sums a thread
  static constexpr int most_splits = n <= 64 ? 8 : 4;
  static constexpr int blocks = n <= 64 ? 2 : 1;  // per multiprocessor
};

/// Fragments that the block of a cluster of `splits` finishes at most.
__host__ __device__ constexpr int kept_atoms(int atoms, int splits) { return (atoms + splits - 1) / splits; }

/// Fragments that a block receives at most.
constexpr int most_received(int atoms, int most_splits) {
  int most = 1;
  for (int splits = 2; splits <= most_splits; splits *= 2)
    most = std::max(most, (splits - 1) * kept_atoms(atoms, splits));
  return most;
}

template <int rows, int n>
struct Storage {
  using Of = Shape<rows, n>;
  struct Stage {
    unsigned char a[Of::halves][rows * kRowBytes];
    unsigned char b[Of::halves][n * kRowBytes];
  };
  static constexpr int received = most_received(Of::atoms, Of::most_splits);
  static constexpr int received_bytes = received * Of::consumers * 16;
  static constexpr int room = (Of::blocks == 2 ? 112 << 10 : 224 << 10) - received_bytes;
  static constexpr int stages = std::min(8, room / static_cast<int>(sizeof(Stage)));
  static_assert(stages >= 3);
  alignas(1024) Stage stage[stages];
  uint4 from_others[received][Of::consumers];  // four sums each
  device::Ring<stages> ring;
  device::Barrier all_received;
};

struct Job {
  tma::TensorMap map_a;
  tma::TensorMap map_b;
  TensorOperand a;
  TensorOperand b;
  TileOrder order;
  int k_tiles = 0;                             // stages, at least one per block of a cluster
  int split_shift = 0;                         // log2 of the blocks of a cluster
  float a_evict_first = 0, b_evict_first = 0;  // parts
  Epilogue epilogue;
};

/// For which part of an operand to ask the L2 to evict it first. One that several blocks read stays, and one that half
/// of the L2 holds; of one that is read once, as much stays as fills a third of it, for the next call with the same
/// operand (docs/findings/gemm.md, G18).
float part_to_evict_first(const Problem& problem, const MatrixLayout& operand, int tiles_that_read) {
  const auto cache = static_cast<double>(device_info(problem.device).l2_bytes);
  const double bytes = 2.0 * static_cast<double>(operand.rows) * static_cast<double>(operand.columns) *
                       static_cast<double>(operand.batch_stride != 0 ? problem.batch : 1);
  if (tiles_that_read > 1 || bytes <= cache / 2) return 0.0F;
  return static_cast<float>(1 - cache / 3 / bytes);
}
__device__ __forceinline__ device::CacheHint hint_of(float evict_first) {
  return evict_first > 0 ? device::evict_first_of(evict_first) : device::CacheHint::evict_normal;
}

/// A stage's part of an operand, at (mn, k).
template <Major major, int extent, int halves>
__device__ __forceinline__ void load_part(unsigned char (&to)[halves][extent * kRowBytes], const tma::TensorMap& map,
                                          const TensorOperand& operand, int mn, int k, int batch, device::Barrier& full,
                                          device::CacheHint hint) {
  if constexpr (halves == kHalves)
    load_deep<major, extent>(to, map, operand, mn, k, batch, full, hint);
  else
    load_tile<major, extent>(to[0], map, operand, mn, k, batch, full, 0, hint);
}

/// Two sums, next to each other in a row of the tile, to D.
__device__ __forceinline__ void finish_pair(const Epilogue& epilogue, float first, float second, int row, int column,
                                            std::int64_t batch) {
  if (row >= epilogue.rows) return;
  float value[2] = {first, second};
  const int columns = min(2, epilogue.columns - column);
  if (!epilogue.plain) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (i >= columns) continue;
      value[i] *= epilogue.alpha;
      if (epilogue.c != nullptr)
        value[i] += epilogue.beta * load_float(epilogue.c, epilogue.c_dtype,
                                               batch * epilogue.c_batch_stride + row * epilogue.c_row_stride +
                                                   (column + i) * epilogue.c_column_stride);
      if (epilogue.bias != nullptr)
        value[i] += load_float(epilogue.bias, epilogue.bias_dtype,
                               row * epilogue.bias_row_stride + (column + i) * epilogue.bias_column_stride);
      value[i] = activate(epilogue.activation, value[i]);
    }
  }
  const std::int64_t at =
      batch * epilogue.d_batch_stride + row * epilogue.d_row_stride + column * epilogue.d_column_stride;
  if (epilogue.vectors && columns == 2 && epilogue.d_dtype != DType::f32) {
    *reinterpret_cast<std::uint32_t*>(static_cast<__half*>(epilogue.d) + at) =
        pack(value[0], value[1], epilogue.d_dtype);
    return;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i)
    if (i < columns) store_float(epilogue.d, epilogue.d_dtype, at + i * epilogue.d_column_stride, value[i]);
}

template <class T, int rows, int n, Major a_major, Major b_major>
__global__ void __launch_bounds__(Shape<rows, n>::threads, Shape<rows, n>::blocks)
    kernel(const __grid_constant__ Job job) {
  using Of = Shape<rows, n>;
  using Shared = Storage<rows, n>;
  constexpr int kStages = Shared::stages;
  constexpr int kStageDepth = Of::halves * kDepth;
  Shared& shared = device::dynamic_shared<Shared, kSite.smem>();
  device::let_next_kernel_start();
  const int splits = 1 << job.split_shift;
  const TilePosition tile(job.order, blockIdx.x >> job.split_shift);
  if (!tile.inside(job.order)) return;  // all blocks of the cluster
  const int rank = static_cast<int>(blockIdx.x) & (splits - 1);
  const int row = tile.row * rows;
  const int column = tile.column * n;
  const int batch = static_cast<int>(blockIdx.z);
  const int first = job.k_tiles * rank >> job.split_shift;
  const int last = job.k_tiles * (rank + 1) >> job.split_shift;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = device::warp_index();

  if (thread == Of::consumers) {
    device::prefetch_tensor_map(&job.map_a);
    device::prefetch_tensor_map(&job.map_b);
    shared.ring.init(1, Of::consumers / device::kWarpThreads);
    device::init_barrier(shared.all_received, 1);
    device::fence_barrier_init();
    const int kept = (Of::atoms - rank + splits - 1) >> job.split_shift;
    device::arrive_expect_bytes(shared.all_received, (splits - 1) * kept * Of::consumers * 16);
  }
  __syncthreads();
  if (splits > 1) device::cluster_arrive_relaxed();  // the barriers are ready
  device::wait_for_previous_kernel();

  if (thread >= Of::consumers) {
    if (device::elect_one()) {
      const device::CacheHint hint_a = hint_of(job.a_evict_first);
      const device::CacheHint hint_b = hint_of(job.b_evict_first);
      device::Producer<kStages> producer(shared.ring);
#pragma unroll 1
      for (int k_tile = first; k_tile < last; ++k_tile) {
        const int stage = producer.acquire();
        const int k = k_tile * kStageDepth;
        producer.expect(stage, sizeof(typename Shared::Stage));
        load_part<a_major, rows>(shared.stage[stage].a, job.map_a, job.a, row, k, batch, producer.full(stage), hint_a);
        load_part<b_major, n>(shared.stage[stage].b, job.map_b, job.b, column, k, batch, producer.full(stage), hint_b);
      }
    }
    __syncwarp();
    if (splits > 1) device::cluster_wait();
    return;
  }

  float accumulators[n / 2];
  device::Consumer<kStages> consumer(shared.ring);
  const int group = warp / 4;
  int previous = -1;
#pragma unroll 1
  for (int k_tile = first; k_tile < last; ++k_tile) {
    const int stage = consumer.acquire();
    __syncwarp();
#pragma unroll
    for (int half = 0; half < Of::halves; ++half)
      multiply_stage<T, n, a_major, b_major>(accumulators, shared.stage[stage].a[half] + group * kPanelBytes,
                                             shared.stage[stage].b[half], k_tile > first || half > 0);
    device::wgmma_wait<Of::halves>();
    if (previous >= 0 && device::lane_index() == 0) consumer.release(previous);
    previous = stage;
  }
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);

  if (splits > 1) {
    device::cluster_wait();
    // Barriers that count bytes, not those of the cluster: ordering by these flushes and empties the L1.
#pragma unroll
    for (int atom = 0; atom < Of::atoms; ++atom) {
      const int owner = atom & (splits - 1);
      if (owner == rank) continue;
      const int place = (rank - (rank > owner ? 1 : 0)) * kept_atoms(Of::atoms, splits) + (atom >> job.split_shift);
      const float* sums = accumulators + 4 * atom;
      device::store_async(&shared.from_others[place][thread],
                          make_uint4(__float_as_uint(sums[0]), __float_as_uint(sums[1]), __float_as_uint(sums[2]),
                                     __float_as_uint(sums[3])),
                          shared.all_received, static_cast<std::uint32_t>(owner));
    }
    if (rank < Of::atoms) device::wait(shared.all_received, 0, {"the other blocks' sums"});
  }
  const int lane = device::lane_index();
  const int own_row = row + warp * kStagedRows + lane / 4;
#pragma unroll 1
  for (int kept = 0; kept * splits + rank < Of::atoms; ++kept) {
    const int wanted = kept * splits + rank;
    float own[4] = {};
#pragma unroll
    for (int atom = 0; atom < Of::atoms; ++atom)
      if (atom == wanted) {
#pragma unroll
        for (int i = 0; i < 4; ++i) own[i] = accumulators[4 * atom + i];
      }
    float sums[4] = {};
    for (int from = 0; from < splits; ++from) {
      if (from == rank) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[i] += own[i];
      } else {
        const int place = (from - (from > rank ? 1 : 0)) * kept_atoms(Of::atoms, splits) + kept;
        const uint4 sent = shared.from_others[place][thread];
        sums[0] += __uint_as_float(sent.x);
        sums[1] += __uint_as_float(sent.y);
        sums[2] += __uint_as_float(sent.z);
        sums[3] += __uint_as_float(sent.w);
      }
    }
    const int at = column + 8 * wanted + lane % 4 * 2;
    if (at >= job.epilogue.columns) continue;
    finish_pair(job.epilogue, sums[0], sums[1], own_row, at, batch);
    finish_pair(job.epilogue, sums[2], sums[3], own_row + 8, at, batch);
  }
}

/// Calls fn.template operator()<T, rows, n, major of A, major of B>().
template <class Fn>
void with_kernel(const RowMajorCall& call, const Config& config, const Fn& fn) {
  const auto is = [&](int rows, int columns) { return config.rows == rows && config.columns == columns; };
  with_kernel_types(call, [&]<class T, Major a, Major b>() {
    if constexpr (b == Major::k) {
      if (is(64, 16)) return fn.template operator()<T, 64, 16, a, b>();
      if (is(64, 32)) return fn.template operator()<T, 64, 32, a, b>();
      if (is(128, 96)) return fn.template operator()<T, 128, 96, a, b>();
    }
    if (is(64, 64)) return fn.template operator()<T, 64, 64, a, b>();
    if (is(64, 128)) return fn.template operator()<T, 64, 128, a, b>();
    fn.template operator()<T, 128, 128, a, b>();
  });
}

}  // namespace

Work plan(const Problem& given, const Arguments& arguments, const Config& config) {
  const RowMajorCall row_major(given, arguments);
  const RowMajorCall call = config.swapped ? row_major.swapped() : row_major;
  const Problem& problem = call.problem;
  Work work(kSite, problem.device);
  with_kernel(call, config, [&]<class T, int rows, int n, Major a_major, Major b_major>() {
    using Of = Shape<rows, n>;
    MappedOperand a = Of::halves == kHalves ? map_deep_a(call) : map_a(call, rows);
    MappedOperand b = Of::halves == kHalves ? map_deep_b(call, n) : map_b(call, n);
    a.spec.l2_promotion = b.spec.l2_promotion = tma::L2Promotion::b128;
    const TileOrder order(problem, rows, n);
    const Job job{.map_a = tma::encode_valid(a.spec, problem.device.index),
                  .map_b = tma::encode_valid(b.spec, problem.device.index),
                  .a = a.operand,
                  .b = b.operand,
                  .order = order,
                  .k_tiles = call.k_tiles(Of::halves * kDepth),
                  .split_shift = config.splits == 8 ? 3 : config.splits / 2,
                  .a_evict_first = part_to_evict_first(problem, problem.a, order.tile_columns),
                  .b_evict_first = part_to_evict_first(problem, problem.b, order.tile_rows),
                  .epilogue = call.epilogue()};
    LaunchShape shape{.grid = order.grid(problem.batch),
                      .block = Of::threads,
                      .shared_bytes = sizeof(Storage<rows, n>),
                      .cluster = static_cast<unsigned>(config.splits),
                      .dependent = arguments.dependent_launch};
    shape.grid.x *= shape.cluster;
    work.add(kernel<T, rows, n, a_major, b_major>, shape, job);
  });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_split_k
