// Plain calls of short trajectories with rows of an odd number of 16-bit values, such as the seven joints of an arm. A
// block takes several whole trajectories, a thread two neighbouring targets of one. Two rows of the output are then
// whole words, wherever the rows of the input begin, and what a thread needs besides its targets is computed half as
// often as in narrow_rows_plain.
//
// All blocks are resident at once and request all they need at the same time. So the times are requested first, by one
// load per thread, and the rows when the times are there (docs/findings/resample.md, R12). With dependent launch the
// blocks of the next call start as these leave, as in narrow_rows_plain (R11).
#include "device/bulk_copy.cuh"
#include "device/shared_memory.cuh"
#include "device/warp.cuh"
#include "ops/resample/forward/gpu/narrow_rows_pairs/configs.hpp"
#include "ops/resample/forward/shared/plain.hpp"
#include "ops/resample/forward/shared/plain_place.cuh"
#include "ops/resample/forward/shared/time_load.cuh"
#include "ops/resample/shared/call.cuh"
#include "ops/resample/shared/values.cuh"

namespace tmaops::ops::resample::narrow_rows_pairs {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Storage {
  device::Barrier rows_ready;
  alignas(128) unsigned char bytes[96 * 1024];  // times, rows, output rows; the launch asks for what the cut needs
};

struct Job : PlainCall {  // without gaps in all tensors: strides are not used
  int batch;
  bool ahead;  // reads ahead of the kernel in front
  PairCut cut;
};

/// Two targets among `count` >= 4 timestamps in shared memory, as find_near(), both searches in flight together.
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

/// The combination of two rows next to one another in shared memory, at any multiple of 2 bytes.
template <class Value, int channels>
__device__ __forceinline__ void mix_rows(const unsigned char* from, float weight, float* to) {
  const std::uint32_t odd = device::shared_address(from) & 2;
  const auto* word = reinterpret_cast<const std::uint32_t*>(from - odd);
  std::uint32_t got[channels + 1];
#pragma unroll
  for (int k = 0; k <= channels; ++k) got[k] = word[k];
  float value[2 * channels];
#pragma unroll
  for (int k = 0; k < channels; ++k) {
    const float2 two = device::unpack<Value>(__funnelshift_r(got[k], got[k + 1], odd * 8));
    value[2 * k] = two.x;
    value[2 * k + 1] = two.y;
  }
#pragma unroll
  for (int k = 0; k < channels; ++k) to[k] = fmaf(weight, value[channels + k] - value[k], value[k]);
}

/// A target at a sample is that sample, to the bit, whatever the next one is, and whether or not there is one.
template <int channels>
__device__ __forceinline__ void copy_row(const unsigned char* from, std::uint16_t* to) {
#pragma unroll
  for (int k = 0; k < channels; ++k) to[k] = reinterpret_cast<const std::uint16_t*>(from)[k];
}

template <class Value, int channels>
__global__ void __launch_bounds__(kThreads, 10) kernel(const __grid_constant__ Job job) {
  constexpr int width = channels * static_cast<int>(sizeof(Value));
  const PairCut& cut = job.cut;
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  const auto thread = static_cast<int>(threadIdx.x);
  if (job.ahead) device::let_next_kernel_start();
  const int b = static_cast<int>(blockIdx.x) * cut.trajectories;
  const int targets = min(cut.trajectories, job.batch - b) * cut.pairs * 2;
  const int sample = b * job.samples;  // the first of the block, in the tensor
  const int time_unit = min(sample / 4, cut.time_unit_limit);
  const std::int64_t row_byte = static_cast<std::int64_t>(sample) * width;
  const int row_unit = min(static_cast<int>(row_byte >> 4), cut.row_unit_limit);
  const unsigned char* time_copy = job.times + static_cast<std::int64_t>(time_unit) * 16;
  const unsigned char* row_copy = job.values + static_cast<std::int64_t>(row_unit) * 16;
  const std::int64_t first = static_cast<std::int64_t>(b) * cut.pairs * 2;  // target of the block, in the tensor
  const unsigned char* wanted = job.targets + first * 4;
  if (thread == 0) {
    device::init_barrier(shared.rows_ready, 1);
    device::fence_barrier_init();
  }
  if (job.ahead && thread == device::kWarpThreads) {
    device::bulk_prefetch(row_copy, static_cast<std::uint32_t>(cut.row_bytes));
    device::bulk_prefetch(time_copy, static_cast<std::uint32_t>(cut.time_bytes));
    if (targets >= 4) device::bulk_prefetch(wanted, static_cast<std::uint32_t>(targets * 4) & ~15u);
  }
  device::wait_for_previous_kernel();

  // Fetch.
  const bool active = 2 * thread < targets;
  const TimeLoad<kThreads> load(time_copy, cut.time_bytes);
  float2 q{};
  if (active) q = device::load_now(reinterpret_cast<const float2*>(wanted) + thread);
  load.store(shared.bytes);
  if (thread < rest_bytes(width) / 4)
    *reinterpret_cast<std::uint32_t*>(shared.bytes + cut.rows_at + cut.row_bytes + 4 * thread) = 0;
  if (thread == 0) {
    device::arrive_expect_bytes(shared.rows_ready, static_cast<std::uint32_t>(cut.row_bytes));
    device::bulk_load(shared.bytes + cut.rows_at, row_copy, static_cast<std::uint32_t>(cut.row_bytes),
                      shared.rows_ready);
  }

  // Search.
  __syncthreads();  // the times are there, the barrier is initialised
  const int base = static_cast<int>(__umulhi(threadIdx.x, cut.pair_reciprocal)) * job.samples;
  const auto* x = reinterpret_cast<const float*>(shared.bytes) + (sample - time_unit * 4 + base);
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
  unsigned char* made = shared.bytes + cut.output_at;
  const unsigned char* rows =
      shared.bytes + cut.rows_at + static_cast<int>(row_byte - static_cast<std::int64_t>(row_unit) * 16);
  device::wait(shared.rows_ready, 0);
  if (!job.ahead) device::let_next_kernel_start();
  if (active) {
    const unsigned char* row = rows + (base + at.row) * width;
    const unsigned char* row_next = rows + (base + next.row) * width;
    auto* to = reinterpret_cast<std::uint32_t*>(made) + thread * channels;
    float value[2 * channels];
    mix_rows<Value, channels>(row, at.weight, value);
    mix_rows<Value, channels>(row_next, next.weight, value + channels);
#pragma unroll
    for (int k = 0; k < channels; ++k) to[k] = device::pack<Value>(value[2 * k], value[2 * k + 1]);
    auto* halves = reinterpret_cast<std::uint16_t*>(to);
    if (at.weight == 0.0f) copy_row<channels>(row, halves);
    if (next.weight == 0.0f) copy_row<channels>(row_next, halves + channels);
  }
  __syncwarp();

  // Store what the warp made: whole chunks but for the end of the call.
  constexpr int warp_bytes = 2 * device::kWarpThreads * width;
  const int from = thread / device::kWarpThreads * warp_bytes;
  const int end = min(targets * width, from + warp_bytes);
  unsigned char* output = job.output + first * width;
#pragma unroll
  for (int k = 0; k < warp_bytes; k += device::kWarpThreads * 16) {
    const int byte = from + k + device::lane_index() * 16;
    if (byte + 16 <= end)
      device::store_16_streaming(output + byte, *reinterpret_cast<const uint4*>(made + byte));
    else
      for (int word = byte; word < end; word += 4)
        *reinterpret_cast<std::uint32_t*>(output + word) = *reinterpret_cast<const std::uint32_t*>(made + word);
  }
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  Work work(kSite, problem.device);
  Job job{};
  static_cast<PlainCall&>(job) = make_plain_call(problem, arguments, 1);
  job.batch = static_cast<int>(problem.batch);
  job.cut = pair_cut(problem, config);
  LaunchShape shape{.grid = static_cast<unsigned>((problem.batch + config.trajectories - 1) / config.trajectories),
                    .block = kThreads,
                    .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + job.cut.end_at,
                    .dependent = arguments.dependent_launch};
  const int even = one_generation(shape.grid.x, kThreads, shape.shared_bytes, static_cast<int>(sizeof(Storage)),
                                  device_info(problem.device));
  job.ahead = shape.dependent && even > 0;
  if (job.ahead) shape.shared_bytes = even;
  with_value_type(problem.values, [&]<class Value>(Value*) {
    if constexpr (sizeof(Value) == 2) {
      switch (problem.channels) {
        case 3:
          return work.add(kernel<Value, 3>, shape, job);
        case 5:
          return work.add(kernel<Value, 5>, shape, job);
        case 7:
          return work.add(kernel<Value, 7>, shape, job);
        default:
          return work.add(kernel<Value, 9>, shape, job);
      }
    }
  });
  return work;
}

}  // namespace tmaops::ops::resample::narrow_rows_pairs
