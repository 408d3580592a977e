// Version 10: a tile per block, as much of it on its way at once as a multiprocessor holds, for products of few waves.
// New against version 3: the consumers fetch the first 128 of k by cp.async (docs/findings/gemm.md, G6); tiles of 64 to
// 256 rows and 16 to 256 columns, one of which fills the multiprocessors; a short form for plain products
// (gemm_models.md, L1); and split-K over a cluster of up to eight blocks. Each finishes some of the fragments of 8
// columns: the others send it their sums, which it adds in the order of the blocks, so the bits are the same in every
// run. Of an operand of few rows no more is loaded than there is.
#include <algorithm>

#include "device/cluster.cuh"
#include "device/matrix.cuh"
#include "ops/gemm/shared/deep_loads.cuh"
#include "ops/gemm/shared/fragment_epilogue.cuh"
#include "ops/gemm/shared/short_call.cuh"
#include "ops/gemm/shared/waves.hpp"

namespace tmaops::ops::gemm::wgmma_split_k {
namespace {

constexpr int kRingReady = 1, kCopiesIssued = 2, kConsumersOnly = 3;  // named barriers
constexpr int kCopiedTiles = 2;                                       // of kDepth, by cp.async

/// What follows from the extents of a tile.
template <int rows, int n>
struct Shape {
  static constexpr int groups = rows / 64;  // consumer warpgroups
  static constexpr int consumers = groups * device::kWarpgroupThreads;
  static constexpr int threads = consumers + device::kWarpThreads;
  /// Products of kDepth in a stage. A load takes the thread that issues it longer than so small a tile's product.
  static constexpr int halves = rows == 64 && n <= 96 ? kHalves : 1;
  static constexpr int copied = kCopiedTiles / halves;  // stages
  static constexpr int atoms = n / 8;                   // fragments of 8 columns, four sums a thread
  /// Per multiprocessor, where K is short.
  static constexpr int blocks = n > 96 ? 1 : rows == 64 ? 3 : rows == 128 ? 2 : 1;
};

/// Fragments that the block of a cluster of `splits` finishes at most.
__host__ __device__ constexpr int kept_atoms(int atoms, int splits) { return (atoms + splits - 1) / splits; }

/// The ring, and behind it what other blocks send.
template <int rows, int n>
struct Storage {
  using Of = Shape<rows, n>;
  struct Stage {
    unsigned char a[Of::halves][rows * kRowBytes];
    unsigned char b[Of::halves][n * kRowBytes];
  };
  using Received = uint4[Of::consumers];  // a fragment's four sums of each thread
  static constexpr int room = 224 << 10;
  static constexpr int stages = std::min(16, room / static_cast<int>(sizeof(Stage)));
  device::Ring<stages> ring;
  device::Barrier all_received;
  alignas(1024) Stage stage[stages];

  static int received_bytes(int splits) {
    return (splits - 1) * kept_atoms(Of::atoms, splits) * static_cast<int>(sizeof(Received));
  }
  /// Stages for a block that needs `needed`, at least the copied ones. `blocks`: that share a multiprocessor.
  static int ring_stages(int splits, std::int64_t needed, int blocks) {
    const std::int64_t fit = (room / blocks - received_bytes(splits)) / static_cast<std::int64_t>(sizeof(Stage));
    return static_cast<int>(std::clamp<std::int64_t>(needed, 2, std::min<std::int64_t>(stages, fit)));
  }
  static int bytes(int splits, int ring_stages) {
    return static_cast<int>(sizeof(Storage) - (stages - ring_stages) * sizeof(Stage)) + received_bytes(splits);
  }
};

/// In a ring of so many stages as fit.
struct Place {
  int stage;
  std::uint32_t phase = 0;
  __device__ __forceinline__ void advance(int stages) {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1u;
    }
  }
};

/// What a kernel can do. One for a plain product in one batch, whose blocks share no K, has a tenth of the code and of
/// the parameters: rows of D, or its columns where D^T is computed.
enum class Way : std::uint8_t { rows, columns, any };

/// Tiles that take every epilogue and share K. Others would only add code: few products need them for that.
template <int rows, int n>
inline constexpr bool kTakesAny =
    rows == 64 ? n <= 32 || n == 64 || n == 128 : rows == 128 && (n == 96 || n == 128 || n == 160);

/// What every block reads.
struct ShortJob : ShortCall {
  int ring = 0;                   // stages
  std::uint32_t stage_bytes = 0;  // that loads bring
  TensorOperand operand_a;
  TensorOperand operand_b;
  float a_evict_first = 0, b_evict_first = 0;  // parts
  tma::TensorMap map_a;
  tma::TensorMap map_b;
};

struct LongJob : ShortJob {
  ThreadOperand thread_a;
  ThreadOperand thread_b;
  int splits = 1;       // blocks of a cluster
  int stages_each = 0;  // of a block, at least one
  int one_more = 0;     // blocks that have one stage more
  int kept = 0;         // fragments that a block finishes, the last fewer
  bool direct = false;  // D has 16 bits and rows of whole chunks
  bool inside = false;  // the last tiles begin where they end with the matrix
  bool swapped = false;
  Epilogue epilogue;
};
template <Way way>
using Job = std::conditional_t<way == Way::any, LongJob, ShortJob>;

/// The short form has none.
template <class T, int n, Way way>
struct Bias {
  __device__ __forceinline__ Bias(const ShortJob&, int, int) {}
};
template <class T, int n>
struct Bias<T, n, Way::any> {
  FragmentBias<T, n, 1, n != 96> value;  // three blocks of 96 columns share a multiprocessor's registers
  __device__ __forceinline__ Bias(const LongJob& job, int row, int column) : value(job.epilogue, row, column) {}
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

/// A warp's fragments from `first` on, before `end`, to rows of D: four fragments in pieces of 16 bytes
/// (direct_epilogue.cuh), one of which only some are its own as they are.
template <int n, class Pack>
__device__ __forceinline__ void store_rows(const Lines& d, const Pack& pack, const float (&accumulators)[n / 2],
                                           int first, int end, int row, int column) {
  constexpr int kAtoms = n / 8;
  const int in_four = device::lane_index() % 4;
  const int own_row = row + device::lane_index() / 4;
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
          word[i] = pack(from[0], from[1]);
        }
      if (whole) exchange_in_four(word, in_four);
      if (own_row + 8 * half >= d.rows) continue;
      unsigned char* const to = d.to + (own_row + 8 * half) * d.stride;
      if (whole) {
        if (const int at = column + 8 * (atom + in_four); at < d.columns)
          device::store_16(to + 2 * at, make_uint4(word[0], word[1], word[2], word[3]));
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (const int at = column + 8 * (atom + i) + 2 * in_four;
              atom + i >= first && atom + i < end && at < d.columns)
            *reinterpret_cast<std::uint32_t*>(to + 2 * at) = word[i];
      }
    }
  }
}

/// A warp's fragments from `first` on, before `end`, to columns of D: through `staging`, where the 16 rows of a column
/// are 32 bytes.
template <int n, class Pack>
__device__ __forceinline__ void store_columns(const Lines& d, const Pack& pack, const float (&accumulators)[n / 2],
                                              unsigned char* staging, int first, int end, int row, int column) {
  const int lane = device::lane_index();
  const auto place = [&](int of_column, int half) {
    return staging + of_column * 2 * kStagedRows + ((half ^ (of_column / 4 & 1)) << 4);
  };
#pragma unroll
  for (int atom = 0; atom < n / 8; atom += 2) {
    if (atom + 2 <= first || atom >= end) continue;
    const int next = atom + 1 < n / 8 ? 1 : 0;  // an odd last one is written twice alike
    const float* const low = accumulators + 4 * atom;
    const float* const high = low + 4 * next;
    const std::uint32_t words[4] = {pack(low[0], low[1]), pack(low[2], low[3]), pack(high[0], high[1]),
                                    pack(high[2], high[3])};
    device::store_matrices_transposed(place(8 * (atom + next * (lane / 16)) + lane % 8, lane / 8 % 2), words);
  }
  __syncwarp();
  const int half = lane % 2;
  if (row + 8 * half >= d.rows) return;
  for (int at = 8 * first + lane / 2; at < 8 * end; at += 16)
    if (column + at < d.columns)
      device::store_16(d.to + (column + at) * d.stride + 2 * (row + 8 * half),
                       *reinterpret_cast<const uint4*>(place(at, half)));
}

template <class T, int rows, int n, Major a_major, Major b_major, Way way>
__global__ void __launch_bounds__(Shape<rows, n>::threads, Shape<rows, n>::blocks)
    kernel(const __grid_constant__ Job<way> job) {
  using Of = Shape<rows, n>;
  constexpr bool kAny = way == Way::any;
  using Shared = Storage<rows, n>;
  constexpr int kStageDepth = Of::halves * kDepth;
  Shared& shared = device::dynamic_shared<Shared, kSite.smem>();
  device::let_next_kernel_start();
  int splits = 1;
  if constexpr (kAny) splits = job.splits;
  const TilePosition tile(job.order, splits == 1 ? blockIdx.x : device::cluster_index());
  if (!tile.inside(job.order)) return;  // all blocks of the cluster
  const int rank = splits == 1 ? 0 : static_cast<int>(device::cluster_rank());
  int row = tile.row * rows, column = tile.column * n;
  bool inside = true;
  if constexpr (kAny) inside = job.inside;
  if (inside) {  // A box that reaches behind the matrix loads slowly (gemm_models.md, L9): some sums are made twice.
    row = max(0, min(row, static_cast<int>(job.m) - rows));
    column = max(0, min(column, static_cast<int>(job.n) - n));
  }
  const int batch = kAny ? static_cast<int>(blockIdx.z) : 0;
  int first = 0, last = static_cast<int>((job.k + kStageDepth - 1) / kStageDepth), kept = Of::atoms;
  if constexpr (kAny) {
    first = rank * job.stages_each + min(rank, job.one_more);
    last = first + job.stages_each + (rank < job.one_more ? 1 : 0);
    kept = job.kept;
  }
  const int first_kept = min(rank * kept, Of::atoms);
  const int end_kept = min(first_kept + kept, Of::atoms);
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = device::warp_index();
  Place place{Of::copied};

  if (thread >= Of::consumers) {
    const bool fetches = device::elect_one();
    if (fetches) {
      device::prefetch_tensor_map(&job.map_a);
      device::prefetch_tensor_map(&job.map_b);
      shared.ring.init(1, Of::consumers / device::kWarpThreads);
      if (splits > 1) {
        device::init_barrier(shared.all_received, 1);
        device::fence_barrier_init();
        device::arrive_expect_bytes(
            shared.all_received,
            static_cast<std::uint32_t>((splits - 1) * (end_kept - first_kept) * sizeof(typename Shared::Received)));
      }
    }
    __syncwarp();
    if (splits > 1) device::cluster_arrive_relaxed();  // `all_received` is ready
    device::arrive_threads<kRingReady>(Of::threads);
    device::wait_for_previous_kernel();
    // The first k-tiles are to be served first, but where a cluster reads a long K the memory is.
    if (splits == 1) device::sync_threads<kCopiesIssued>(Of::threads);
    if (fetches) {
      const device::CacheHint hint_a = hint_of(job.a_evict_first);
      const device::CacheHint hint_b = hint_of(job.b_evict_first);
#pragma unroll 1
      for (int k_tile = first + Of::copied; k_tile < last; ++k_tile) {
        device::Barrier& full = shared.ring.full[place.stage];
        device::wait(shared.ring.empty[place.stage], place.phase ^ 1u, {"an empty stage", place.stage});
        device::arrive_expect_bytes(full, job.stage_bytes);
        typename Shared::Stage& stage = shared.stage[place.stage];
        const int k = k_tile * kStageDepth;
        load_part<a_major, rows>(stage.a, job.map_a, job.operand_a, row, k, batch, full, hint_a);
        load_part<b_major, n>(stage.b, job.map_b, job.operand_b, column, k, batch, full, hint_b);
        place.advance(job.ring);
      }
    }
    __syncwarp();
    if (splits > 1) device::cluster_wait();
    return;
  }

  if (splits > 1) device::cluster_arrive_relaxed();
  const int group = warp / 4;
  const int in_group = thread % device::kWarpgroupThreads;
  const int k = first * kStageDepth;
  // What lies behind K is zero, and multiplied too: the compiler serialises products behind a branch.
  const int k_of_b = Of::groups > 1 ? group * kDepth : 0;
  const auto fetch_first = [&](auto& a, auto& b, const auto& fetch) {
    device::wait_for_previous_kernel();
#pragma unroll
    for (int i = 0; i < kCopiedTiles; ++i) {
      typename Shared::Stage& to = shared.stage[i / Of::halves];
      fetch(a, to.a[i % Of::halves] + group * kPanelBytes, i);
      if (Of::groups == 1 || group == i) fetch(b, to.b[i % Of::halves], Of::groups == 1 ? i : 0);
      device::commit_copies();
    }
  };
  if constexpr (kAny) {
    const int end = k + kCopiedTiles * kDepth;
    ChunkTile<a_major, 64, device::kWarpgroupThreads> a(
        job.thread_a, job.thread_a.data + batch * job.thread_a.batch_stride, row + group * 64, k, end, in_group);
    ChunkTile<b_major, n, device::kWarpgroupThreads> b(
        job.thread_b, job.thread_b.data + batch * job.thread_b.batch_stride, column, k + k_of_b, end, in_group);
    const bool whole = a.whole() && b.whole();
    fetch_first(a, b, [&](auto& from, unsigned char* to, int) { whole ? from.fetch_whole(to) : from.fetch_edge(to); });
  } else {
    ClampedTile<a_major, 64, device::kWarpgroupThreads> a(job.a, job.a_stride, row + group * 64, job.m, 0, job.k,
                                                          in_group);
    ClampedTile<b_major, n, device::kWarpgroupThreads> b(job.b, job.b_stride, column, job.n, k_of_b, job.k, in_group);
    fetch_first(a, b, [&](auto& from, unsigned char* to, int i) { from.fetch(to, i * kDepth); });
  }
  if (splits == 1) device::arrive_threads<kCopiesIssued>(Of::threads);
  device::sync_threads<kRingReady>(Of::threads);
  if (thread < Of::copied) device::arrive(shared.ring.full[thread]);  // so that rounds count as everywhere

  float accumulators[n / 2];
  const int lane = device::lane_index();
  const int warp_row = row + warp * kStagedRows;
  Bias<T, n, way> bias(job, warp_row, column);
  const auto release = [&](int stage) {
    if (lane == 0) device::arrive(shared.ring.empty[stage]);
  };
  const auto multiply = [&](int stage, int half, bool accumulate) {
    const device::UnwrittenReads behind(job.stage_bytes < sizeof(typename Shared::Stage));  // the matrix's last row
    multiply_stage<T, n, a_major, b_major>(accumulators, shared.stage[stage].a[half] + group * kPanelBytes,
                                           shared.stage[stage].b[half], accumulate);
  };
#pragma unroll
  for (int i = 0; i < kCopiedTiles; ++i) {
    i == 0 ? device::wait_copies<1>() : device::wait_copies<0>();
    device::fence_async_shared();
    device::sync_threads<kConsumersOnly>(Of::consumers);
    multiply(i / Of::halves, i % Of::halves, i > 0);
  }
  int previous = Of::copied - 1;
  if constexpr (Of::copied > 1) {
    device::wgmma_wait<1>();
    release(0);
  }
#pragma unroll 1
  for (int k_tile = first + Of::copied; k_tile < last; ++k_tile) {
    device::wait(shared.ring.full[place.stage], place.phase, {"a full stage", place.stage});
    __syncwarp();
#pragma unroll
    for (int half = 0; half < Of::halves; ++half) multiply(place.stage, half, true);
    device::wgmma_wait<Of::halves>();
    release(previous);
    previous = place.stage;
    place.advance(job.ring);
  }
  device::wgmma_wait<0>();
  device::pin_registers(accumulators);

  if (splits > 1) {
    device::cluster_wait();
    // Barriers that count bytes, not those of the cluster: ordering by these flushes and empties the L1.
    auto* const from_others = reinterpret_cast<typename Shared::Received*>(&shared.stage[job.ring]);
    int owner = 0, of_owner = 0;
#pragma unroll
    for (int atom = 0; atom < Of::atoms; ++atom) {
      if (owner != rank) {
        const float* sums = accumulators + 4 * atom;
        device::store_async(&from_others[(rank - (rank > owner ? 1 : 0)) * kept + of_owner][thread],
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
        const uint4 sent = from_others[from * kept + atom - first_kept][thread];
        accumulators[4 * atom] += __uint_as_float(sent.x);
        accumulators[4 * atom + 1] += __uint_as_float(sent.y);
        accumulators[4 * atom + 2] += __uint_as_float(sent.z);
        accumulators[4 * atom + 3] += __uint_as_float(sent.w);
      }
    }
  }
  unsigned char* const staging = shared.stage[0].a[0] + warp * (n * 2 * kStagedRows);
  if constexpr (!kAny) {
    const Lines d{job.d, job.d_stride, static_cast<int>(job.m), static_cast<int>(job.n)};
    const auto pack_two = [](float low, float high) { return device::pack<T>(low, high); };
    if constexpr (way == Way::columns) {
      device::sync_threads<kConsumersOnly>(Of::consumers);  // no product reads the stages any more
      store_columns<n>(d, pack_two, accumulators, staging, 0, Of::atoms, warp_row, column);
    } else {
      store_all_rows<n>(d, pack_two, accumulators, warp_row, column);
    }
  } else if (job.direct) {
    const Epilogue& epilogue = job.epilogue;
    if (!epilogue.plain)
      finish_fragments<T, n>(epilogue, bias.value, 0, accumulators, warp_row, column, batch, first_kept, end_kept);
    const Lines d{static_cast<unsigned char*>(epilogue.d) + 2 * batch * epilogue.d_batch_stride,
                  2 * (job.swapped ? epilogue.d_column_stride : epilogue.d_row_stride), epilogue.rows,
                  epilogue.columns};
    const auto pack_two = [&](float low, float high) { return pack(low, high, epilogue.d_dtype); };
    if (job.swapped) {
      device::sync_threads<kConsumersOnly>(Of::consumers);
      store_columns<n>(d, pack_two, accumulators, staging, first_kept, end_kept, warp_row, column);
    } else {
      store_rows<n>(d, pack_two, accumulators, first_kept, end_kept, warp_row, column);
    }
  } else {
    const int own_row = warp_row + lane / 4;
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

template <int... i>
using Numbers = std::integer_sequence<int, i...>;

/// Calls fn.template operator()<T, rows, n, major of A, major of B>().
template <class Fn>
void with_kernel(const RowMajorCall& call, const Config& config, const Fn& fn) {
  with_kernel_types(call, [&]<class T, Major a, Major b>() {
    const auto of = [&]<int rows, int... n>(Numbers<rows>, Numbers<n...>) {
      ((config.rows == rows && config.columns == n ? fn.template operator()<T, rows, n, a, b>() : void()), ...);
    };
    if constexpr (b == Major::k) {
      of(Numbers<64>(), Numbers<16, 32, 48, 80, 96, 112, 144, 160, 176, 208, 256>());
      of(Numbers<128>(), Numbers<80, 96, 144, 160>());
      of(Numbers<192>(), Numbers<72, 80, 88, 104, 128, 136, 144, 152>());
      of(Numbers<256>(), Numbers<80>());
    } else {
      of(Numbers<64>(), Numbers<192>());
    }
    of(Numbers<64>(), Numbers<64, 128>());
    of(Numbers<128>(), Numbers<128>());
    of(Numbers<192>(), Numbers<96>());
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
    const int left_out =
        (a_major == Major::k ? a.leave_out_behind(rows) : 0) + (b_major == Major::k ? b.leave_out_behind(n) : 0);
    const TileOrder order = order_of_tiles(problem, config);
    const int stages = call.k_tiles(Of::halves * kDepth);
    const bool pairs = n <= 32 && tile_count(config, problem) > device_info(problem.device).multiprocessors;
    const int ring = Storage<rows, n>::ring_stages(config.splits, ceil_div(stages, config.splits), pairs ? 2 : 1);
    const ShortJob job{ShortCall(call, order),
                       ring,
                       static_cast<std::uint32_t>(sizeof(typename Storage<rows, n>::Stage)) -
                           static_cast<std::uint32_t>(Of::halves * left_out),
                       a.operand,
                       b.operand,
                       part_to_evict_first(problem, problem.a, order.tile_columns),
                       part_to_evict_first(problem, problem.b, order.tile_rows),
                       tma::encode_valid(a.spec, problem.device.index),
                       tma::encode_valid(b.spec, problem.device.index)};
    LaunchShape shape{.grid = order.grid(problem.batch),
                      .block = Of::threads,
                      .shared_bytes = Storage<rows, n>::bytes(config.splits, ring),
                      .cluster = static_cast<unsigned>(config.splits),
                      .dependent = arguments.dependent_launch};
    shape.grid.x *= shape.cluster;
    if (config.splits == 1 && has_whole_chunks(row_major.problem)) {
      config.swapped ? work.add(kernel<T, rows, n, a_major, b_major, Way::columns>, shape, job)
                     : work.add(kernel<T, rows, n, a_major, b_major, Way::rows>, shape, job);
    } else if constexpr (kTakesAny<rows, n>) {
      const int each = stages / config.splits, more = stages % config.splits;
      const bool direct = has_fused_rows(row_major.problem) && !(config.swapped && call.problem.c);
      const LongJob any{job,
                        thread_a(call),
                        thread_b(call),
                        config.splits,
                        each,
                        more,
                        kept_atoms(Of::atoms, config.splits),
                        direct,
                        direct && !call.problem.c && (a_major == Major::k || call.problem.m % 8 == 0) &&
                            (b_major == Major::k || call.problem.n % 8 == 0),
                        config.swapped,
                        call.epilogue()};
      work.add(kernel<T, rows, n, a_major, b_major, Way::any>, shape, any);
    }
  });
  return work;
}

}  // namespace tmaops::ops::gemm::wgmma_split_k
