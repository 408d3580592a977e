// Version 4, the idea of the published shared memory with padding (staged_padded) in f32 and for all types: a warp
// stages the corners of four samples per item in shared memory, by wide loads in the order memory likes, and then adds
// them up in another order, a thread every fourth word of a pixel. Padding after each item is to keep both free of bank
// conflicts (padded_rows.hpp). It has four times the shared-memory reads of 16-byte pieces and waits for every stage.
#include "device/shared_memory.cuh"
#include "ops/ms_deform_attn/forward/shared/corners.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"
#include "study/ms_deform_attn/gpu/shared_padded/padded_rows.hpp"

namespace tmaops::ops::ms_deform_attn::shared_padded {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kSamples = PaddedRows::kSamples;
constexpr int kWords = 4;  // of a thread's channels

/// The values in a word.
template <class Value>
inline constexpr int kPerWord = 4 / static_cast<int>(sizeof(Value));

template <class Value>
__device__ __forceinline__ void add_word(float* sum, std::uint32_t word, float weight) {
  if constexpr (std::is_same_v<Value, float>) {
    sum[0] = fmaf(weight, __uint_as_float(word), sum[0]);
  } else {
    const float2 pair = device::unpack<Value>(word);
    sum[0] = fmaf(weight, pair.x, sum[0]);
    sum[1] = fmaf(weight, pair.y, sum[1]);
  }
}

template <class Value, class Point>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Call call, const int lane_bits) {
  auto& shared = device::block_shared<unsigned char[kWarps][PaddedRows::kMostBytes], 16>();
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  unsigned char* stage = shared[device::warp_index()];
  const PaddedRows rows{lane_bits};
  const int lane = device::lane_index();
  const int lanes = rows.lanes();
  const int part = lane & (lanes - 1);
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kWarps + device::warp_index()) << (5 - lane_bits);
  if (first >= call.items) return;
  const std::int64_t number = first + (lane >> lane_bits);
  const Item item = item_at(call, min(number, call.items - 1));
  const std::int64_t own_map = call.value.at(item.n, 0, item.m);
  const uint4* maps[2];  // of the items this thread loads for
#pragma unroll
  for (int half = 0; half < 2; ++half)
    maps[half] =
        reinterpret_cast<const uint4*>(static_cast<const Value*>(call.value.data) +
                                       __shfl_sync(0xffffffffu, own_map, rows.written_item(lane, half) * lanes)) +
        part;
  const bool right = rows.written_side(lane) != 0;
  const std::int64_t location_row = call.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = call.weights.row(item.n, item.q, item.m);

  float sum[kWords][kPerWord<Value>] = {};
  for (int l = 0; l < call.level_count; ++l) {
    const DeviceLevel& level = call.levels[l];
    const Map step = map_of<Value>(call, level);
    for (int p0 = 0; p0 < level.points; p0 += kSamples) {
      // Each of the first four threads of an item works out one sample, the others the same again.
      const int p = p0 + (part & (kSamples - 1));
      Point3 point;
      if (p < level.points)
        point = load_point<Point>(call, location_row + level.location_at + p * call.locations.point,
                                  weight_row + level.weight_at + p * call.weights.point);
      const Corners corners = corners_of(point, level.height, level.width, call.nearest);
      const int offset = offset_of<Value>(call, level, corners);

      uint4 pieces[2][kSamples][2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < kSamples; ++i) {
          const uint4* from = maps[half] + __shfl_sync(0xffffffffu, offset, rows.written_item(lane, half) * lanes + i) +
                              (right ? step.right : 0);
          pieces[half][i][0] = device::load_16(from);
          pieces[half][i][1] = device::load_16(from + step.down);
        }
      __syncwarp();  // all have read the stage before
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < kSamples; ++i)
#pragma unroll
          for (int row = 0; row < 2; ++row)
            device::store_16(stage + rows.written(lane, half, i, row), pieces[half][i][row]);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kSamples; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float weight = __shfl_sync(0xffffffffu, corners.weight[k], i, lanes);
#pragma unroll
          for (int word = 0; word < kWords; ++word)
            add_word<Value>(sum[word], *reinterpret_cast<const std::uint32_t*>(stage + rows.read(lane, i, k, word)),
                            weight);
        }
    }
  }

  if (number >= call.items) return;
  auto* to = static_cast<Value*>(const_cast<void*>(call.output.data)) + call.output.at(item.n, item.q, item.m);
#pragma unroll
  for (int word = 0; word < kWords; ++word)
#pragma unroll
    for (int i = 0; i < kPerWord<Value>; ++i) {
      const int d = (part + word * lanes) * kPerWord<Value> + i;
      float one = sum[word][i];
      if (!(fabsf(one) <= 3.402823466e38f)) one = sum_channel<Value, Point>(call, item, d);
      to[d] = device::narrow<Value>(one);
    }
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_vectors(problem); !support) return support;
  const int bits = lane_bits(problem);
  if (bits < 2 || bits > 4)
    return Support::no(
        "needs channels of 64 to 256 bytes: four threads of an item work out four samples, and a warp "
        "loads both corners of a row at once");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const Call call = forward_call(problem, arguments);
  Work work(kSite, problem.device);
  const int bits = lane_bits(problem);
  with_types(problem, [&]<class Value, class Point>(Value*, Point*) {
    work.add(kernel<Value, Point>, one_group_each(call.items, kThreads, bits, arguments.dependent_launch), call, bits);
  });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::shared_padded
