// Version 4: persistent blocks. New against version 3: a block per multiprocessor computes tile after tile, in an order
// in which neighbours share the lines that they ask for. Two schedules: cooperative, where both consumer warpgroups
// share a tile of 128 x 256, which moves the fewest bytes; and ping-pong, where each has a tile of its own of 128 x 128
// to 192 and one multiplies while the other writes, so that the tensor cores wait for no epilogue. That decides where K
// is short or where no wave is lost. A last wave of few wide tiles is cut into pieces.
#include <algorithm>

#include "ops/gemm/gpu/wgmma_persistent/parts.cuh"
#include "ops/gemm/gpu/wgmma_persistent/walk.cuh"

namespace tmaops::ops::gemm::wgmma_persistent {
namespace {

/// Named barriers, and who meets at the second one: the fetching warp and the consumers.
inline constexpr int kLastStages = 1;
inline constexpr int kRingReady = 2;
inline constexpr int kReadyThreads = device::kWarpThreads + kConsumers * device::kWarpgroupThreads;

struct Job {
  SpecializedJob parts;
  Walk walk;
  Parts kept{};
  int part_of_k = 0;           // where parts are kept: a batch is a part of K, and begins so much further in K
  tma::TensorMap map_piece{};  // of B, where tiles may be cut
};

/// Whether each warpgroup has a tile of its own, of 128 rows; else they cooperate, with half of the rows of one tile.
template <int n>
inline constexpr bool kPingPong = kRows<n> == kSpecializedRows && n < 256;
/// A warpgroup's products of 64 rows.
template <int n>
inline constexpr int kProducts = kPingPong<n> ? 2 : kRows<n> / (64 * kConsumers);
/// Warps that read a stage of one block.
template <int n>
inline constexpr int kReaders = kPingPong<n> ? kConsumerWarps / kConsumers : kConsumerWarps;

/// Where a warp lays what it stores next of D.
template <int n>
struct alignas(1024) Staging {
  unsigned char bytes[std::max(static_cast<int>(sizeof(WarpStaging)), StorePieces<n>::bytes)];
};

template <int n>
struct Storage {
  struct Stage {
    unsigned char a[kRows<n> * kRowBytes];
    unsigned char b[n * kRowBytes];
  };
  static constexpr int stages = std::min(6, (192 << 10) / static_cast<int>(sizeof(Stage)));
  alignas(1024) Stage stage[stages];
  Staging<n> staging[kConsumerWarps];
  device::Ring<stages> ring;
  device::Barrier turn[kConsumers];  // the tensor cores are this warpgroup's
};

/// 144 accumulators a thread and more leave no registers for the epilogue through shared memory, 176 for none at all.
template <int n>
inline constexpr bool kAnyEpilogue = n == 128 || n == 256;
template <int n>
inline constexpr bool kPlainOnly = n > 160 && kProducts<n> == 2;

/// A warpgroup's accumulators: of 64 rows each.
template <int n>
struct Accumulators {
  float part[kProducts<n>][n / 2];
};

/// The first `columns` of a warpgroup's accumulators in each row.
template <int columns, int all>
__device__ __forceinline__ float (&first_accumulators(float (&accumulators)[all]))[columns / 2] {
  return reinterpret_cast<float(&)[columns / 2]>(accumulators);
}

/// A warpgroup's product over all k, of a tile or its first `columns`. A stage is given back one product late, so that
/// the tensor cores always have the next one; when the last is in their queue it is the other warpgroup's turn.
/// LastStages: warpgroup 1's half of D leaves while warpgroup 0 begins the next tile.
template <class T, int n, int columns, Major a_major, Major b_major>
__device__ __forceinline__ void multiply_tile(Accumulators<n>& accumulators, Storage<n>& shared,
                                              device::Consumer<Storage<n>::stages>& consumer, const SpecializedJob& job,
                                              int group) {
  const int k_tiles = job.k_tiles;
  const int lane = device::lane_index();
  const auto release = [&](int stage) {
    if (lane == 0) consumer.release(stage);
  };
  // With fewer stages warpgroup 0 could arrive twice before warpgroup 1 waits.
  const bool one_by_one = !kPingPong<n> && k_tiles >= Storage<n>::stages;
  const LastStages<kLastStages> last{one_by_one && group == 1 ? k_tiles - Storage<n>::stages : -1,
                                     one_by_one && group == 0};
  int previous = 0;
#pragma unroll 1
  for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
    last.wait(k_tile, [&] {
      if (k_tile > 0) release(previous);
    });
    const int current = consumer.acquire();
    __syncwarp();
    const unsigned char* const a = shared.stage[current].a + (kPingPong<n> ? 0 : group * kProducts<n> * kPanelBytes);
    const TileOperand<a_major, 64> first(a);
    const TileOperand<a_major, 64> second(a + (kProducts<n> - 1) * kPanelBytes);
    const TileOperand<b_major, columns> right(shared.stage[current].b);
    using Product = device::Wgmma<T, columns>;
    const device::UnwrittenReads behind(job.left_out > 0);  // B's last column
    device::wgmma_fence();
#pragma unroll
    for (int i = 0; i < kDepth / 16; ++i) {
      const bool accumulate = k_tile > 0 || i > 0;
      Product::template multiply<a_major, b_major>(first_accumulators<columns>(accumulators.part[0]), first.at(i),
                                                   right.at(i), accumulate);
      if constexpr (kProducts<n> == 2)
        Product::template multiply<a_major, b_major>(first_accumulators<columns>(accumulators.part[1]), second.at(i),
                                                     right.at(i), accumulate);
    }
    device::wgmma_commit();
    device::wgmma_wait<1>();
    if (k_tile > 0 && k_tile != last.begin) release(previous);
    previous = current;
  }
  last.pass_on();
  if (kPingPong<n> && lane == 0) device::arrive(shared.turn[group ^ 1]);
  device::wgmma_wait<0>();
  for (auto& part : accumulators.part) device::pin_registers(first_accumulators<columns>(part));
  release(previous);
}

/// A warp's 16 rows of each 64 from (row, column), to D.
template <class T, int n, int columns>
__device__ __forceinline__ void finish_tile(const SpecializedJob& job, const Parts& kept,
                                            FragmentBias<T, n, kProducts<n>>& bias, Accumulators<n>& accumulators,
                                            Staging<n>& staging, int row, int column, int batch) {
  constexpr int kBuffers = static_cast<int>(sizeof(Staging<n>)) / StorePieces<n>::bytes;
  const auto buffer = [&](int piece) { return staging.bytes + piece % kBuffers * StorePieces<n>::bytes; };
#pragma unroll
  for (int half = 0; half < kProducts<n>; ++half) {
    auto& part = first_accumulators<columns>(accumulators.part[half]);
    const int at = row + 64 * half;
    if constexpr (kTakesParts<n>)
      if (kept.sums != nullptr) {
        keep_sums(kept, accumulators.part[half], at, column, batch);
        continue;
      }
    if constexpr (kAnyEpilogue<n>)
      if (!job.tensor_store) {
        write_tile<n>(job.epilogue, accumulators.part[half], reinterpret_cast<WarpStaging&>(staging), at, column,
                      batch);
        continue;
      }
    if constexpr (!kPlainOnly<n>)
      if (!job.epilogue.plain) finish_fragments<T, columns>(job.epilogue, bias, half, part, at, column, batch);
    if (job.order == StoreOrder::columns)
      store_tile<columns, kBuffers, StoreOrder::columns>(job.map_d, job.epilogue, part, buffer, at, column, batch);
    else
      store_tile<columns, kBuffers>(job.map_d, job.epilogue, part, buffer, at, column, batch);
  }
}

template <class T, int n, Major a_major, Major b_major>
__global__ void __launch_bounds__(kSpecializedThreads, 1) kernel(const __grid_constant__ Job job) {
  constexpr int kStages = Storage<n>::stages;
  Storage<n>& shared = device::dynamic_shared<Storage<n>, kSite.smem>();
  device::let_next_kernel_start();
  const SpecializedJob& parts = job.parts;
  const int warp = device::warp_index();
  const auto first = static_cast<int>(blockIdx.x);
  const auto step = static_cast<int>(gridDim.x);
  if (warp == 0 && device::elect_one()) {
    device::prefetch_tensor_map(&parts.map_a);
    device::prefetch_tensor_map(&parts.map_b);
    for (device::Barrier& turn : shared.turn) device::init_barrier(turn, kReaders<n>);
    shared.ring.init(1, kReaders<n>);
  }
  __syncwarp();

  if (warp < 4) {
    if (warp == 0) device::arrive_threads<kRingReady>(kReadyThreads);
    device::decrease_registers<kProducerRegisters>();
    device::wait_for_previous_kernel();
    if (warp == 0 && device::elect_one()) {
      device::Producer<kStages> producer(shared.ring);
#pragma unroll 1
      for (int tile = first; tile < job.walk.steps; tile += step) {
        const TilePlace place = place_of<n>(job.walk, parts, tile);
#pragma unroll 1
        for (int k_tile = 0; k_tile < parts.k_tiles; ++k_tile) {
          const int stage = producer.acquire();
          const int k = place.batch * job.part_of_k + k_tile * kDepth;
          producer.expect(stage, place.piece ? (kRows<n> + kPieceColumns) * kRowBytes
                                             : (kRows<n> + n) * kRowBytes - parts.left_out);
          load_tile<a_major, kRows<n>>(shared.stage[stage].a, parts.map_a, parts.a, place.row, k, place.batch,
                                       producer.full(stage));
          with_columns<n>(place.piece, [&]<int columns>() {
            load_tile<b_major, columns>(shared.stage[stage].b, columns == n ? parts.map_b : job.map_piece, parts.b,
                                        place.column, k, place.batch, producer.full(stage));
          });
        }
      }
    }
  } else {
    device::increase_registers<kConsumerRegisters>();
    device::wait_for_previous_kernel();
    device::sync_threads<kRingReady>(kReadyThreads);
    const int group = warp / 4 - 1;
    device::Consumer<kStages> consumer(shared.ring);
    constexpr int kTilesAtOnce = kPingPong<n> ? kConsumers : 1;
    const int own = kPingPong<n> ? group : 0;  // of these
    const int first_row = (group - own) * kRows<n> / kConsumers + warp % 4 * kStagedRows;
    if (own == 1) consumer.skip(parts.k_tiles);
    std::uint32_t turn_parity = 0;
    bool waits = own == 1;  // the very first turn is warpgroup 0's
    Accumulators<n> accumulators;
#pragma unroll 1
    for (int tile = first + own * step; tile < job.walk.steps; tile += kTilesAtOnce * step) {
      const TilePlace place = place_of<n>(job.walk, parts, tile);
      const int row = place.row + first_row;
      FragmentBias<T, n, kProducts<n>> bias(parts.epilogue, row, place.column);
      if (waits) {
        device::wait(shared.turn[group], turn_parity, {"the other warpgroup's products", group});
        turn_parity ^= 1;
      }
      waits = kPingPong<n>;
      with_columns<n>(place.piece, [&]<int columns>() {
        multiply_tile<T, n, columns, a_major, b_major>(accumulators, shared, consumer, parts, group);
        finish_tile<T, n, columns>(parts, job.kept, bias, accumulators, shared.staging[warp - 4], row, place.column,
                                   place.batch);
      });
      if (kPingPong<n>) consumer.skip(parts.k_tiles);  // the other warpgroup's tile
    }
    if (device::lane_index() == 0) device::wait_stores_read();
  }
}

/// Calls fn.template operator()<T, n, major of A, major of B>().
template <class Fn>
void with_kernel(const RowMajorCall& call, int columns, const Fn& fn) {
  with_kernel_types(call, [&]<class T, Major a, Major b>() {
    if constexpr (b == Major::k) {
      if (columns == 144) return fn.template operator()<T, 144, a, b>();
      if (columns == 160) return fn.template operator()<T, 160, a, b>();
      if (columns == 168) return fn.template operator()<T, 168, a, b>();
      if (columns == 176) return fn.template operator()<T, 176, a, b>();
    }
    if (columns == 192) return fn.template operator()<T, 192, a, b>();
    if (columns == 256) return fn.template operator()<T, 256, a, b>();
    fn.template operator()<T, 128, a, b>();
  });
}

}  // namespace

Work plan(const Problem& given, const Arguments& arguments, const Config& config) {
  const RowMajorCall row_major(given, arguments);
  RowMajorCall call = config.swapped ? row_major.swapped() : row_major;
  const Epilogue epilogue = call.epilogue();
  if (config.parts > 1) {  // parts of K are batches, which both operands serve whole
    call.problem.batch = config.parts;
    call.problem.bias_dtype.reset();
  }
  Work work(kSite, given.device, arguments.workspace);
  with_kernel(call, config.columns, [&]<class T, int n, Major a, Major b>() {
    Job job{.parts = make_specialized_job<kRows<n>, n>(call, {.a_extent = kRows<n>, .b_extent = n}),
            .walk = walk_of(call.problem, kRows<n>, n)};
    const int at_once = device_info(given.device).multiprocessors;  // blocks
    if constexpr (kMayCut<n>) {
      cut_last_wave(job.walk, at_once, n / kPieceColumns);
      job.map_piece = tma::encode_valid(map_b(call, kPieceColumns).spec, given.device.index);
    }
    if constexpr (kTakesParts<n>) {
      if (config.parts > 1) {
        const std::size_t tiles = static_cast<std::size_t>(job.walk.whole);  // of all parts
        job.kept = {.sums = reinterpret_cast<float4*>(work.allocate(tiles * kSpecializedRows * n * sizeof(float))),
                    .row_tiles = job.walk.row_tiles,
                    .column_tiles = job.walk.column_tiles};
        job.parts.k_tiles = static_cast<int>(ceil_div(job.parts.k_tiles, config.parts));
        job.part_of_k = job.parts.k_tiles * kDepth;
        job.parts.last_row = job.parts.last_column = INT32_MAX;  // tiles lie where add_parts looks for them
      }
    }
    const LaunchShape shape{.grid = static_cast<unsigned>(std::min(at_once, job.walk.steps)),
                            .block = kSpecializedThreads,
                            .shared_bytes = sizeof(Storage<n>),
                            .dependent = arguments.dependent_launch};
    work.add(kernel<T, n, a, b>, shape, job);
    if constexpr (kTakesParts<n>)
      if (config.parts > 1) add_second_kernel(work, job.kept, config.parts, epilogue);
  });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_persistent
