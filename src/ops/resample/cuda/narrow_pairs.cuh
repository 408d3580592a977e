// Short trajectories of rows with an odd number of 16-bit values (the seven joints of an arm), several whole ones per
// block: two neighbouring targets per thread. Two rows of the output are then whole words, wherever the rows of the
// input begin, and what a thread needs besides its targets is worked out half as often.
//
// All blocks are resident at once and ask for all they need at the same time. So the stamps are asked for first, by one
// load per thread, and the rows when those have arrived: else the last stamps come with the last rows, and a search and
// the combination of rows are left to do then (4096,100->50,7 without dependent launch: 4.80 us instead of 5.05).
//
// With dependent launch all blocks of a call are resident at once while those of the call in front still are, and have
// the L2 fetch all they will read before they wait for it: 4096,100->50,7 in 4.0 us instead of 4.6, as fast as a copy.
#pragma once

#include "device/bulk_copy.cuh"
#include "device/shared_memory.cuh"
#include "device/warp.cuh"
#include "ops/resample/cuda/search.cuh"
#include "ops/resample/cuda/values.cuh"

namespace tmaops::ops::resample::narrow_rows {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

/// Whole trajectories, one after the other without gaps in all tensors.
struct PairJob {
  const unsigned char* stamps;
  const unsigned char* targets;
  const unsigned char* values;
  unsigned char* output;
  int samples;
  int pairs;  // of targets, of a trajectory
  int batch;
  int trajectories;                      // of a block
  std::uint32_t pair_reciprocal;         // 2^32 / pairs, rounded up
  int stamp_bytes, row_bytes;            // of a block's copies
  int stamp_unit_limit, row_unit_limit;  // the last units of 16 bytes of the tensors that a copy may begin with
  int rows_at, strips_at;
  Interpolation interpolation;
  bool ahead;  // starts during the kernel in front and fetches into the L2 before waiting for it (one_generation.cuh)
};
inline constexpr int kPairThreads = 128;

/// Two targets among `count` >= 4 stamps in shared memory, as find_near().
__device__ __forceinline__ void find_two(const float* x, int count, float2 q, Interval<float>& first,
                                         Interval<float>& second) {
  constexpr int kRounds = 4;
  const float low = x[0];
  const float pace = __fdividef(static_cast<float>(count - 1), x[count - 1] - low);
  const int most = count - 4;
  const auto inside = [&](int i) { return max(min(i, most), 0); };
  const auto moved = [&](float far, int by) {
    return inside(max(min(__float2int_rz(far * pace), count), -count) + by);
  };
  int i[2] = {moved(q.x - low, -1), moved(q.y - low, -1)};
  const float at[2] = {q.x, q.y};
  float near[2][4];
#pragma unroll 1
  for (int round = 0;; ++round) {
    bool again = false;
#pragma unroll
    for (int k = 0; k < 2; ++k)
#pragma unroll
      for (int j = 0; j < 4; ++j) near[k][j] = x[i[k] + j];
    int next[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const bool below = at[k] < near[k][0] && i[k] > 0;
      const bool above = at[k] >= near[k][3] && i[k] < most;
      next[k] = i[k];
      if (below || above) {
        again = true;
        if (round == kRounds)
          next[k] = inside(count_until<int>([&](int j) { return x[j]; }, 0, count, at[k]) - 2);
        else
          next[k] = below ? min(moved(at[k] - near[k][0], i[k] - 2), i[k] - 1)
                          : max(moved(at[k] - near[k][3], i[k] + 2), i[k] + 1);
      }
    }
    if (!again || round > kRounds) break;
    i[0] = next[0];
    i[1] = next[1];
  }
  const auto interval = [&](int k) {
    const bool later = at[k] >= near[k][1];
    const bool third = at[k] >= near[k][2];
    return Interval<float>{i[k] + (later ? 1 : 0) + (third ? 1 : 0),
                           third ? near[k][2] : (later ? near[k][1] : near[k][0]),
                           third ? near[k][3] : (later ? near[k][2] : near[k][1])};
  };
  first = interval(0);
  second = interval(1);
}

/// The combination of two neighbouring rows in shared memory at a multiple of 2 bytes.
template <class Value, int channels>
__device__ __forceinline__ void mix_rows(const unsigned char* from, float weight, float* to) {
  static_assert(sizeof(Value) == 2);
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(from));
  const auto* word = reinterpret_cast<const std::uint32_t*>(from - (address & 2));
  std::uint32_t got[channels + 1];
#pragma unroll
  for (int k = 0; k <= channels; ++k) got[k] = word[k];
  const std::uint32_t shift = (address & 2) * 8;
  float value[2 * channels];
#pragma unroll
  for (int k = 0; k < channels; ++k) {
    const float2 two = unpack_word(__funnelshift_r(got[k], got[k + 1], shift), static_cast<const Value*>(nullptr));
    value[2 * k] = two.x;
    value[2 * k + 1] = two.y;
  }
#pragma unroll
  for (int k = 0; k < channels; ++k) to[k] = fmaf(weight, value[channels + k] - value[k], value[k]);
}

/// Words behind the last row that mix_rows() may read, and does not use: a row of 7 values and a word.
inline constexpr int kPairRestWords = 5;

struct PairStorage {
  device::Barrier rows_ready;
  alignas(128) unsigned char bytes[96 * 1024];  // stamps, rows, output rows: as much as the job needs
};

template <class Value, int channels>
__global__ void __launch_bounds__(kPairThreads, 10) pair_kernel(const __grid_constant__ PairJob job) {
  constexpr int width = channels * static_cast<int>(sizeof(Value));
  PairStorage& shared = device::dynamic_shared<PairStorage, kSite.smem>();
  const auto thread = static_cast<int>(threadIdx.x);
  if (job.ahead) device::let_next_kernel_start();
  const int b = static_cast<int>(blockIdx.x) * job.trajectories;
  const int stamp = b * job.samples;  // the first of the block, in the tensor
  const int stamp_unit = min(stamp / 4, job.stamp_unit_limit);
  const std::int64_t row_byte = static_cast<std::int64_t>(stamp) * width;
  const int row_unit = min(static_cast<int>(row_byte >> 4), job.row_unit_limit);
  const unsigned char* stamps = job.stamps + static_cast<std::int64_t>(stamp_unit) * 16;
  const unsigned char* values = job.values + static_cast<std::int64_t>(row_unit) * 16;
  const int first = b * job.pairs;
  const unsigned char* targets = job.targets + static_cast<std::int64_t>(first) * 8;
  if (thread == 0) {
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  if (job.ahead && thread == device::kWarpThreads) {
    device::bulk_prefetch(values, static_cast<std::uint32_t>(job.row_bytes));
    device::bulk_prefetch(stamps, static_cast<std::uint32_t>(job.stamp_bytes));
    const int bytes = min(job.trajectories, job.batch - b) * job.pairs * 8;
    device::bulk_prefetch(targets, static_cast<std::uint32_t>(bytes) & ~15u);
  }
  device::wait_for_previous_kernel();

  // Fetch.
  const bool active = thread < min(job.trajectories, job.batch - b) * job.pairs;
  const StampLoad<kPairThreads> load(stamps, job.stamp_bytes);
  float2 q{};
  if (active) q = device::load_now(reinterpret_cast<const float2*>(targets) + thread);
  const int base = static_cast<int>(__umulhi(threadIdx.x, job.pair_reciprocal)) * job.samples;
  const auto* x = reinterpret_cast<const float*>(shared.bytes) + (stamp - stamp_unit * 4 + base);

  load.store(shared.bytes);
  static_assert(width + 4 <= 4 * kPairRestWords);
  if (thread < kPairRestWords)
    *reinterpret_cast<std::uint32_t*>(shared.bytes + job.rows_at + job.row_bytes + 4 * thread) = 0;
  if (thread == 0) {
    device::arrive_expect_bytes(shared.rows_ready, static_cast<std::uint32_t>(job.row_bytes));
    device::bulk_load(shared.bytes + job.rows_at, values, static_cast<std::uint32_t>(job.row_bytes), shared.rows_ready);
  }

  // Search.
  __syncthreads();  // the stamps are there, the barrier is initialised
  Place<int> at{};
  Place<int> next{};
  if (active) {
    Interval<float> in;
    Interval<float> in_next;
    find_two(x, job.samples, q, in, in_next);
    at = place_in(job.interpolation, in, q.x);
    next = place_in(job.interpolation, in_next, q.y);
  }

  // Combine.
  unsigned char* strips = shared.bytes + job.strips_at;
  const unsigned char* rows =
      shared.bytes + job.rows_at + static_cast<int>(row_byte - static_cast<std::int64_t>(row_unit) * 16);
  const unsigned char* row = rows + (base + at.row) * width;
  const unsigned char* row_next = rows + (base + next.row) * width;
  device::wait(shared.rows_ready, 0);
  if (!job.ahead) device::let_next_kernel_start();
  if (active) {
    auto* to = reinterpret_cast<std::uint32_t*>(strips) + thread * channels;
    float value[2 * channels];
    mix_rows<Value, channels>(row, at.weight, value);
    mix_rows<Value, channels>(row_next, next.weight, value + channels);
#pragma unroll
    for (int k = 0; k < channels; ++k)
      to[k] = pack_word(value[2 * k], value[2 * k + 1], static_cast<const Value*>(nullptr));
    // A target at a sample is that sample, to the bit, whatever the next one is, and whether or not there is one.
    auto* halves = reinterpret_cast<std::uint16_t*>(to);
    if (at.weight == 0.0f)
#pragma unroll
      for (int k = 0; k < channels; ++k) halves[k] = reinterpret_cast<const std::uint16_t*>(row)[k];
    if (next.weight == 0.0f)
#pragma unroll
      for (int k = 0; k < channels; ++k) halves[channels + k] = reinterpret_cast<const std::uint16_t*>(row_next)[k];
  }
  __syncwarp();
  constexpr int strip = 2 * device::kWarpThreads * width;  // bytes of a warp
  const int from = thread / device::kWarpThreads * strip;
  const int end = min(min(job.trajectories, job.batch - b) * job.pairs * 2 * width, from + strip);
  unsigned char* output = job.output + static_cast<std::int64_t>(first) * (2 * width);
#pragma unroll
  for (int k = 0; k < strip; k += device::kWarpThreads * 16) {
    const int byte = from + k + device::lane_index() * 16;
    if (byte + 16 <= end)
      device::store_16_streaming(output + byte, *reinterpret_cast<const uint4*>(strips + byte));
    else
      for (int word = byte; word < end; word += 4)
        *reinterpret_cast<std::uint32_t*>(output + word) = *reinterpret_cast<const std::uint32_t*>(strips + word);
  }
}

}  // namespace tmaops::ops::resample::narrow_rows
