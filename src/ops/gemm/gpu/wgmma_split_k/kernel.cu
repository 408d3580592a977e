// Version 10: split-K over a cluster of up to eight blocks, for products with few tiles: few rows, or a long K. What is
// new against version 8: two, three, four or eight blocks share a tile's K, tiles are 64 or 128 high and 16 to 192
// wide, a short K asks for few stages, so that several blocks fit on a multiprocessor, and a product of few rows is
// computed as D^T = B^T A^T, so that its weights fill the tensor cores' 64 rows and its rows cost a narrow tile. Each
// warpgroup's fragments of 8 columns are shared out among the blocks: a block receives those that it finishes from all
// others through distributed shared memory and adds them to its own in their order, so the bits are the same in every
// run. A plain D is stored by unrolled code, a plain D^T by way of shared memory (docs/findings/gemm.md, G22).
#include <algorithm>

#include "device/cluster.cuh"
#include "device/matrix.cuh"
#include "ops/gemm/shared/deep_loads.cuh"
#include "ops/gemm/shared/direct_epilogue.cuh"
#include "ops/gemm/shared/tile_position.cuh"
#include "ops/gemm/shared/waves.hpp"

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
  static constexpr int most_splits = n <= 64 ? 8 : n <= 128 ? 4 : 3;
  static constexpr int blocks = n <= 32 ? 2 : 1;  // per multiprocessor: a wider tile needs the stages of both
};

/// Fragments that the block of a cluster of `splits` finishes at most.
__host__ __device__ constexpr int kept_atoms(int atoms, int splits) { return (atoms + splits - 1) / splits; }

/// Fragments that a block receives at most.
constexpr int most_received(int atoms, int most_splits) {
  int most = 1;
  for (const int splits : {2, 3, 4, 8})
    if (splits <= most_splits) most = std::max(most, (splits - 1) * kept_atoms(atoms, splits));
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
  static constexpr int room = (Of::blocks == 2 ? 112 << 10 : 225 << 10) - received_bytes;
  static constexpr int stages = std::min(8, room / static_cast<int>(sizeof(Stage)));
  static_assert(stages >= 3);
  device::Ring<stages> ring;
  device::Barrier all_received;
  uint4 from_others[received][Of::consumers];  // four sums each
  alignas(1024) Stage stage[stages];           // last: a short K asks for as many as it has

  static int bytes(std::int64_t needed) {
    const std::int64_t spared = std::max<std::int64_t>(stages - std::max<std::int64_t>(needed, 2), 0);
    return static_cast<int>(sizeof(Storage) - spared * sizeof(Stage));
  }
};

struct Job {
  tma::TensorMap map_a;
  tma::TensorMap map_b;
  TensorOperand a;
  TensorOperand b;
  TileOrder order;
  int splits = 1;                              // blocks of a cluster
  int stages_each = 0;                         // of a block, at least one
  int one_more = 0;                            // blocks that have one stage more
  float a_evict_first = 0, b_evict_first = 0;  // parts
  int kept = 0;                                // fragments that a block finishes, the last fewer
  bool direct = false;                         // D is the product itself, in 16 bits and rows of whole chunks
  bool swapped = false;
  Epilogue epilogue;
};

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

/// A warp's fragments from `first` on, before `end`, to a row-major D: four fragments in pieces of 16 bytes
/// (direct_epilogue.cuh), one of which only some are its own as they are.
template <int n>
__device__ __forceinline__ void store_rows(const Epilogue& epilogue, const float (&accumulators)[n / 2], int first,
                                           int end, int row, int column, std::int64_t batch) {
  constexpr int kAtoms = n / 8;
  const int in_four = device::lane_index() % 4;
  const int own_row = row + device::lane_index() / 4;
  auto* const d = static_cast<__half*>(epilogue.d) + batch * epilogue.d_batch_stride + own_row * epilogue.d_row_stride;
#pragma unroll
  for (int atom = 0; atom < kAtoms; atom += 4) {
    const bool whole = atom + 4 <= kAtoms && atom >= first && atom + 4 <= end;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t word[4] = {};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (atom + i < kAtoms) {
          const float* const from = accumulators + 4 * (atom + i) + 2 * half;
          word[i] = pack(from[0], from[1], epilogue.d_dtype);
        }
      if (whole) exchange_in_four(word, in_four);
      if (own_row + 8 * half >= epilogue.rows) continue;
      __half* const to = d + half * 8 * epilogue.d_row_stride;
      if (whole) {
        if (const int at = column + 8 * (atom + in_four); at < epilogue.columns)
          device::store_16(to + at, make_uint4(word[0], word[1], word[2], word[3]));
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (const int at = column + 8 * (atom + i) + 2 * in_four;
              atom + i >= first && atom + i < end && at < epilogue.columns)
            *reinterpret_cast<std::uint32_t*>(to + at) = word[i];
      }
    }
  }
}

/// A warp's fragments from `first` on, before `end`, to a column-major D: through `staging`, where the 16 rows of a
/// column are 32 bytes.
template <int atoms>
__device__ __forceinline__ void store_columns(const Epilogue& epilogue, const float* accumulators,
                                              unsigned char* staging, int first, int end, int row, int column,
                                              std::int64_t batch) {
  const int lane = device::lane_index();
  const auto place = [&](int of_column, int half) {
    return staging + of_column * 2 * kStagedRows + ((half ^ (of_column / 4 & 1)) << 4);
  };
#pragma unroll
  for (int atom = 0; atom < atoms; atom += 2) {
    if (atom + 2 <= first || atom >= end) continue;
    const float* low = accumulators + 4 * atom;
    const std::uint32_t words[4] = {pack(low[0], low[1], epilogue.d_dtype), pack(low[2], low[3], epilogue.d_dtype),
                                    pack(low[4], low[5], epilogue.d_dtype), pack(low[6], low[7], epilogue.d_dtype)};
    device::store_matrices_transposed(place(8 * (atom + lane / 16) + lane % 8, lane / 8 % 2), words);
  }
  __syncwarp();
  const int half = lane % 2;
  if (row + 8 * half >= epilogue.rows) return;
  auto* const d = static_cast<__half*>(epilogue.d) + batch * epilogue.d_batch_stride + row + 8 * half;
  for (int at = 8 * first + lane / 2; at < 8 * end; at += 16)
    if (column + at < epilogue.columns)
      device::store_16(d + (column + at) * epilogue.d_column_stride, *reinterpret_cast<const uint4*>(place(at, half)));
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
  const int splits = job.splits;
  const TilePosition tile(job.order, device::cluster_index());
  if (!tile.inside(job.order)) return;  // all blocks of the cluster
  const int rank = static_cast<int>(device::cluster_rank());
  const int row = tile.row * rows;
  const int column = tile.column * n;
  const int batch = static_cast<int>(blockIdx.z);
  const int first = rank * job.stages_each + min(rank, job.one_more);
  const int last = first + job.stages_each + (rank < job.one_more ? 1 : 0);
  const int kept = job.kept;
  const int first_kept = min(rank * kept, Of::atoms);
  const int end_kept = min(first_kept + kept, Of::atoms);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = device::warp_index();

  if (thread == Of::consumers) {
    device::prefetch_tensor_map(&job.map_a);
    device::prefetch_tensor_map(&job.map_b);
    shared.ring.init(1, Of::consumers / device::kWarpThreads);
    device::init_barrier(shared.all_received, 1);
    device::fence_barrier_init();
    device::arrive_expect_bytes(
        shared.all_received, static_cast<std::uint32_t>((splits - 1) * (end_kept - first_kept) * Of::consumers * 16));
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
  const int lane = device::lane_index();
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
    if (previous >= 0 && lane == 0) consumer.release(previous);
    previous = stage;
  }
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);

  if (splits > 1) {
    device::cluster_wait();
    // Barriers that count bytes, not those of the cluster: ordering by these flushes and empties the L1.
    int owner = 0;
    int of_owner = 0;
#pragma unroll
    for (int atom = 0; atom < Of::atoms; ++atom) {
      if (owner != rank) {
        const float* sums = accumulators + 4 * atom;
        device::store_async(&shared.from_others[(rank - (rank > owner ? 1 : 0)) * kept + of_owner][thread],
                            make_uint4(__float_as_uint(sums[0]), __float_as_uint(sums[1]), __float_as_uint(sums[2]),
                                       __float_as_uint(sums[3])),
                            shared.all_received, static_cast<std::uint32_t>(owner));
      }
      if (++of_owner == kept) {
        ++owner;
        of_owner = 0;
      }
    }
    if (first_kept < end_kept) device::wait(shared.all_received, 0, {"the other blocks' sums"});
#pragma unroll
    for (int atom = 0; atom < Of::atoms; ++atom) {
      if (atom < first_kept || atom >= end_kept) continue;
      for (int from = 0; from < splits - 1; ++from) {
        const uint4 sent = shared.from_others[from * kept + atom - first_kept][thread];
        accumulators[4 * atom] += __uint_as_float(sent.x);
        accumulators[4 * atom + 1] += __uint_as_float(sent.y);
        accumulators[4 * atom + 2] += __uint_as_float(sent.z);
        accumulators[4 * atom + 3] += __uint_as_float(sent.w);
      }
    }
  }
  const int warp_row = row + warp * kStagedRows;
  const int own_row = warp_row + lane / 4;
  if (job.direct && job.swapped) {
    device::sync_threads<1>(Of::consumers);  // no product reads the stages any more
    store_columns<Of::atoms>(job.epilogue, accumulators, shared.stage[0].a[0] + warp * (n * 2 * kStagedRows),
                             first_kept, end_kept, warp_row, column, batch);
  } else if (job.direct) {
    store_rows<n>(job.epilogue, accumulators, first_kept, end_kept, warp_row, column, batch);
  } else {
#pragma unroll 1
    for (int wanted = first_kept; wanted < end_kept; ++wanted) {
      float sums[4] = {};
#pragma unroll
      for (int atom = 0; atom < Of::atoms; ++atom)
        if (atom == wanted) {
#pragma unroll
          for (int i = 0; i < 4; ++i) sums[i] = accumulators[4 * atom + i];
        }
      const int at = column + 8 * wanted + lane % 4 * 2;
      if (at >= job.epilogue.columns) continue;
      finish_pair(job.epilogue, sums[0], sums[1], own_row, at, batch);
      finish_pair(job.epilogue, sums[2], sums[3], own_row + 8, at, batch);
    }
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
      if (is(64, 96)) return fn.template operator()<T, 64, 96, a, b>();
      if (is(128, 96)) return fn.template operator()<T, 128, 96, a, b>();
      if (is(128, 160)) return fn.template operator()<T, 128, 160, a, b>();
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
    const int stages = call.k_tiles(Of::halves * kDepth);
    const Job job{.map_a = tma::encode_valid(a.spec, problem.device.index),
                  .map_b = tma::encode_valid(b.spec, problem.device.index),
                  .a = a.operand,
                  .b = b.operand,
                  .order = order,
                  .splits = config.splits,
                  .stages_each = stages / config.splits,
                  .one_more = stages % config.splits,
                  .a_evict_first = part_to_evict_first(problem, problem.a, order.tile_columns),
                  .b_evict_first = part_to_evict_first(problem, problem.b, order.tile_rows),
                  .kept = kept_atoms(Of::atoms, config.splits),
                  .direct = has_plain_rows(row_major.problem),
                  .swapped = config.swapped,
                  .epilogue = call.epilogue()};
    LaunchShape shape{.grid = order.grid(problem.batch),
                      .block = Of::threads,
                      .shared_bytes = Storage<rows, n>::bytes(ceil_div(stages, config.splits)),
                      .cluster = static_cast<unsigned>(config.splits),
                      .dependent = arguments.dependent_launch};
    shape.grid.x *= shape.cluster;
    work.add(kernel<T, rows, n, a_major, b_major>, shape, job);
  });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_split_k
