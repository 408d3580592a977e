// Long trajectories of rows of a few words, with dependent launch: tiles so large that all blocks of a call are
// resident at once (one_generation.cuh). The blocks of the next call start as those of this one leave, and have the L2
// fetch their stamps and target times before they wait for it. For the rows to fit in shared memory all at once,
// results are written over them, and leave in one bulk store. 8,100000->50000,14 in 10.0 us instead of 10.5, with
// random stamps in 11.2 instead of 12.0.
#pragma once

#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/shared_memory.cuh"
#include "device/warp.cuh"
#include "ops/resample/cuda/rows.cuh"
#include "ops/resample/cuda/search.cuh"
#include "ops/resample/cuda/values.cuh"

namespace tmaops::ops::resample::narrow_rows {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

/// A plain call whose tensors have less than 2^31 bytes. Copies begin at whole lines of 128 bytes of a tensor: those
/// that do not cost 2 %.
struct LongJob {
  const unsigned char* stamps;
  const unsigned char* targets;
  const unsigned char* values;
  unsigned char* output;
  std::int64_t output_stride;       // bytes from one trajectory to the next
  int value_stride;                 // the same
  int stamp_stride, target_stride;  // elements
  int samples;
  int target_count;
  Pace pace;
  int margin;                  // samples in front of the guess
  int stamp_count, row_bytes;  // of a block's copies
  int stamp_limit, row_limit;  // the last stamp and byte of the tensors that a copy may begin with
  int rows_at;                 // in shared memory
  bool stores_tile;            // a block's results are whole units of 16 bytes: one bulk store
  Interpolation interpolation;
};
inline constexpr int kLongThreads = 192;
inline constexpr int kLongTargets = 2;  // of a thread, device::kWarpThreads apart
inline constexpr int kLongTile = kLongThreads * kLongTargets;

struct LongStorage {
  device::Barrier stamps_ready;
  device::Barrier rows_ready;
  alignas(128) unsigned char bytes[96 * 1024];  // stamps, rows and then output rows: as much as the job needs
};

/// Those of a thread's targets that are `wanted`, among `count` >= 4 stamps at(0), ..., as find_near(): from the
/// guesses in[k].i on, all in flight together.
template <int targets, class At>
__device__ __forceinline__ void find_several(const At& at, int count, float pace, const float (&q)[targets],
                                             const bool (&wanted)[targets], Interval<float> (&in)[targets]) {
  constexpr int kRounds = 5;
  const int most = count - 4;
  int i[targets];
  bool open[targets];
  float near[targets][4];
#pragma unroll
  for (int k = 0; k < targets; ++k) {
    open[k] = wanted[k];
    i[k] = max(min(in[k].i, most), 0);
  }
#pragma unroll 1
  for (int round = 0;; ++round) {
#pragma unroll
    for (int k = 0; k < targets; ++k)
      if (open[k])
#pragma unroll
        for (int j = 0; j < 4; ++j) near[k][j] = at(i[k] + j);
    bool again = false;
#pragma unroll
    for (int k = 0; k < targets; ++k) {
      if (!open[k]) continue;
      const bool below = q[k] < near[k][0] && i[k] > 0;
      const bool above = q[k] >= near[k][3] && i[k] < most;
      open[k] = (below || above) && round <= kRounds;
      if (!open[k]) continue;
      again = true;
      const int by = max(min(__float2int_rz((q[k] - (below ? near[k][0] : near[k][3])) * pace), count), -count);
      if (round == kRounds)
        i[k] = max(min(count_until<int>(at, 0, count, q[k]) - 2, most), 0);
      else
        i[k] = below ? min(max(i[k] - 2 + by, 0), i[k] - 1) : max(min(i[k] + 2 + by, most), i[k] + 1);
    }
    if (!again) break;
  }
#pragma unroll
  for (int k = 0; k < targets; ++k) {
    if (!wanted[k]) continue;
    const bool second = q[k] >= near[k][1];
    const bool third = q[k] >= near[k][2];
    in[k] = {i[k] + (second ? 1 : 0) + (third ? 1 : 0), third ? near[k][2] : (second ? near[k][1] : near[k][0]),
             third ? near[k][3] : (second ? near[k][2] : near[k][1])};
  }
}

/// A row of `words` words made of the one at word 0 and the one at word `second`.
template <class Value, int words, class Load>
__device__ __forceinline__ void mix_words(const Load& load, int second, float weight, std::uint32_t (&to)[words]) {
  std::uint32_t a[words];
  std::uint32_t b[words];
#pragma unroll
  for (int j = 0; j < words; ++j) {
    a[j] = load(j);
    b[j] = load(j + second);
  }
#pragma unroll
  for (int j = 0; j < words; ++j) to[j] = mix_word<Value>(a[j], b[j], weight);
  if (weight == 0.0f)  // that sample to the bit, whatever the next one is
#pragma unroll
    for (int j = 0; j < words; ++j) to[j] = a[j];
}

template <class Value, int words>
__global__ void __launch_bounds__(kLongThreads, resident_blocks(kLongThreads, 8))
    long_kernel(const __grid_constant__ LongJob job) {
  constexpr int width = words * 4;
  LongStorage& shared = device::dynamic_shared<LongStorage, kSite.smem>();
  device::let_next_kernel_start();
  const auto thread = static_cast<int>(threadIdx.x);
  const auto b = static_cast<int>(blockIdx.y);
  const int begin = static_cast<int>(blockIdx.x) * kLongTile;
  const int left = min(kLongTile, job.target_count - begin);
  const int guess = static_cast<int>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(begin)) * job.pace.ratio) >>
                                     job.pace.shift) -
                    job.margin;
  const int zero = b * job.stamp_stride;  // the trajectory's first stamp, and the first byte of its rows
  const int row_zero = b * job.value_stride;
  const int stamp = min(max(zero + guess, 0) & ~31, job.stamp_limit);
  const int row_byte = min(max(row_zero + guess * width, 0) & ~127, job.row_limit);
  const float* stamps = reinterpret_cast<const float*>(job.stamps);
  const float* targets = reinterpret_cast<const float*>(job.targets) + b * job.target_stride + begin;
  if (thread == 0) {
    device::init_barrier(shared.stamps_ready, 1);
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  if (thread * 32 < job.stamp_count) device::prefetch_l2(stamps + stamp + thread * 32);
  if (thread * 32 < left) device::prefetch_l2(targets + thread * 32);
  device::wait_for_previous_kernel();

  // Fetch.
  const int warp = thread / device::kWarpThreads;
  const int first = warp * device::kWarpThreads * kLongTargets;  // of the warp's targets
  float q[kLongTargets]{};
#pragma unroll
  for (int k = 0; k < kLongTargets; ++k)
    if (const int t = first + device::lane_index() + k * device::kWarpThreads; t < left)
      q[k] = device::load_now(targets + t);
  if (thread == 0) {
    const auto stamp_bytes = static_cast<std::uint32_t>(job.stamp_count) * 4;
    device::arrive_expect_bytes(shared.stamps_ready, stamp_bytes);
    device::bulk_load(shared.bytes, stamps + stamp, stamp_bytes, shared.stamps_ready);
    device::arrive_expect_bytes(shared.rows_ready, static_cast<std::uint32_t>(job.row_bytes));
    device::bulk_load(shared.bytes + job.rows_at, job.values + row_byte, static_cast<std::uint32_t>(job.row_bytes),
                      shared.rows_ready);
  }

  // Search.
  __syncthreads();                // barriers are initialised
  const int held = stamp - zero;  // the trajectory's sample that the window begins with
  const int from = max(held, 0);
  const int until = min(held + job.stamp_count, job.samples);
  const int count = until - from;
  const auto* window = reinterpret_cast<const float*>(shared.bytes) + (from - held);
  device::wait(shared.stamps_ready, 0);
  const float low = window[0];
  const float high = window[count - 1];
  const float pace = __fdividef(static_cast<float>(count - 1), high - low);
  Interval<float> in[kLongTargets];
  bool wanted[kLongTargets];
#pragma unroll
  for (int k = 0; k < kLongTargets; ++k) {
    in[k].i = __float2int_rz(fminf(fmaxf(fmaf(q[k] - low, pace, -1.0f), 0.0f), static_cast<float>(count)));
    wanted[k] = true;
  }
  find_several([&](int i) { return window[i]; }, count, pace, q, wanted, in);
  bool outside = false;
#pragma unroll
  for (int k = 0; k < kLongTargets; ++k) {
    in[k].i += from;
    const bool below = q[k] < low && from > 0;
    wanted[k] = below || (q[k] >= high && until < job.samples);
    outside |= wanted[k];
    if (wanted[k]) in[k].i += max(min(__float2int_rz((q[k] - (below ? low : high)) * pace), job.samples), -job.samples);
  }
  if (outside) find_several([&](int i) { return __ldg(stamps + zero + i); }, job.samples, pace, q, wanted, in);

  // Combine. What the window does not hold is fetched while that is still on its way.
  std::uint32_t mixed[kLongTargets][words];
  Place<int> at[kLongTargets];
  int offset[kLongTargets];
#pragma unroll
  for (int k = 0; k < kLongTargets; ++k) {
    at[k] = place_in(job.interpolation, in[k], q[k]);
    offset[k] = row_zero + at[k].row * width - row_byte;
    wanted[k] = offset[k] < 0 || offset[k] + 2 * width > job.row_bytes;
    if (!wanted[k]) continue;
    const auto* row = reinterpret_cast<const std::uint32_t*>(job.values + row_byte + offset[k]);
    mix_words<Value>([&](int j) { return __ldg(row + j); }, fabsf(at[k].weight) > 0.0f ? words : 0, at[k].weight,
                     mixed[k]);
  }
  device::wait(shared.rows_ready, 0);
#pragma unroll
  for (int k = 0; k < kLongTargets; ++k) {
    if (wanted[k]) continue;
    const auto* row = reinterpret_cast<const std::uint32_t*>(shared.bytes + job.rows_at + offset[k]);
    mix_words<Value>([&](int j) { return row[j]; }, words, at[k].weight, mixed[k]);
  }
  __syncthreads();  // the rows have been read

  // Store.
  constexpr int strip_bytes = device::kWarpThreads * kLongTargets * width;
  unsigned char* output = job.output + b * job.output_stride + static_cast<std::int64_t>(begin + first) * width;
  const int phase = job.stores_tile ? 0 : static_cast<int>(reinterpret_cast<std::uintptr_t>(output) & 15);
  unsigned char* strip = shared.bytes + job.rows_at + warp * (job.stores_tile ? strip_bytes : strip_bytes + 16);
#pragma unroll
  for (int k = 0; k < kLongTargets; ++k) {
    auto* to =
        reinterpret_cast<std::uint32_t*>(strip + phase + (device::lane_index() + k * device::kWarpThreads) * width);
#pragma unroll
    for (int j = 0; j < words; ++j) to[j] = mixed[k][j];
  }
  if (job.stores_tile) {
    device::fence_async_shared();
    __syncthreads();
    if (thread == 0) {  // its strip is the first one
      device::bulk_store(output, strip, static_cast<std::uint32_t>(left * width));
      device::commit_stores();
      device::wait_stores_read();
    }
    return;
  }
  __syncwarp();
  const int results = min(kLongTargets * device::kWarpThreads, left - first);
  if (results > 0) store_strip<Value>(output, strip, phase, results * width);
}

}  // namespace tmaops::ops::resample::narrow_rows
