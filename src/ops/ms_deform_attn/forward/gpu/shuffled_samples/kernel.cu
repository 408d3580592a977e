// Version 6: adds to vector16 that nothing passes shared memory. Each thread works one sample of its item
// out and hands it round by shuffles, the next point is loaded before it is needed, and 16 loads per thread are under
// way. Four groups of threads may share the samples of an item, each group whole levels, where these threads still run
// all at once.
#include "ops/ms_deform_attn/forward/gpu/shuffled_samples/threads.hpp"
#include "ops/ms_deform_attn/forward/shared/chosen_level.cuh"
#include "ops/ms_deform_attn/forward/shared/corners.cuh"
#include "ops/ms_deform_attn/forward/shared/deal.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::shuffled_samples {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kBlocksPerMultiprocessor = device::kOnHopper ? 5 : 4;  // 96 or 128 registers
constexpr int kFlight = 4;                                           // samples under way per thread

/// Points of the longest of the groups' levels.
template <int group_bits>
__device__ __forceinline__ int most_points(const Call& call, int first) {
  std::int64_t most = 0;
#pragma unroll
  for (int group = 0; group < 1 << group_bits; ++group) most = max(most, call.levels[first + group].points);
  return static_cast<int>(most);
}

/// load_point for types known at run time, a location as one load. A thread loads few, so they need no kernel each.
__device__ __forceinline__ Point3 load_any_point(const Call& call, std::int64_t location_at, std::int64_t weight_at) {
  const float weight = read_point<AnyType>(call.weights, weight_at);
  const void* locations = call.locations.data;
  const auto point = [&](float2 pair) -> Point3 { return {pair.x, pair.y, weight}; };
  if (call.locations.dtype == DType::f16) return point(load_pair<__half>(locations, location_at));
  if (call.locations.dtype == DType::bf16) return point(load_pair<__nv_bfloat16>(locations, location_at));
  if (call.locations.dtype == DType::f32) return point(load_pair<float>(locations, location_at));
  return {read_point<AnyType>(call.locations, location_at), read_point<AnyType>(call.locations, location_at + 1),
          weight};
}

template <class Value, int lane_bits, int group_bits>
__global__ void __launch_bounds__(kThreads, group_bits == 0 ? kBlocksPerMultiprocessor : kSplitBlocksPerMultiprocessor)
    kernel(const __grid_constant__ Call call, const Deal deal) {
  constexpr int kLanes = 1 << lane_bits;
  constexpr int kGroups = 1 << group_bits;
  constexpr int kThreadBits = lane_bits + group_bits;  // of an item
  constexpr int kBatch = std::min(kFlight, kLanes);
  device::wait_for_previous_kernel();
  const int lane = device::lane_index();
  const int part = lane & (kLanes - 1);
  const int group = lane >> lane_bits & (kGroups - 1);
  const auto [item, valid] = dealt_item(call, deal, threadIdx.x >> kThreadBits);
  const auto* map = reinterpret_cast<const uint4*>(first_pixel<Value>(call, item)) + part;
  const std::int64_t location_row = call.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = call.weights.row(item.n, item.q, item.m);
  const int pixel = static_cast<int>(call.value.row / device::kPerVector<Value>);
  const auto load = [&](const ChosenLevel& level, int p) -> Point3 {
    if (p >= level.points) return {};
    return load_any_point(call, location_row + level.location_at + p * call.locations.point,
                          weight_row + level.weight_at + p * call.weights.point);
  };

  float sum[device::kPerVector<Value>] = {};
  int l0 = 0;
  int p0 = 0;
  int most = most_points<group_bits>(call, 0);
  ChosenLevel level = choose_level<Value, kGroups>(call.levels, group);
  Point3 point = load(level, part);
  for (bool more = true; more;) {
    const Corners corners = corners_of(point, level.height, level.pitch - call.border, call.nearest);
    const int offset = level.start + (corners.row * level.pitch + corners.column) * pixel;
    const int right = level.pitch - call.border > 1 ? pixel : 0;
    const int down = level.height > 1 ? level.pitch * pixel : 0;
    const int left = most - p0;

    p0 += kLanes;
    if (p0 >= most) {
      p0 = 0;
      l0 += kGroups;
      more = l0 < call.level_count;
      if (more) {
        most = most_points<group_bits>(call, l0);
        level = choose_level<Value, kGroups>(call.levels + l0, group);
      }
    }
    if (more) point = load(level, p0 + part);

#pragma unroll
    for (int i0 = 0; i0 < kLanes; i0 += kBatch) {
      if (i0 >= left) break;
      uint4 corner[kBatch][4];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const uint4* from = map + __shfl_sync(0xffffffffu, offset, i0 + i, kLanes);
        corner[i][0] = device::load_16(from);
        corner[i][1] = device::load_16(from + right);
        corner[i][2] = device::load_16(from + down);
        corner[i][3] = device::load_16(from + down + right);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k)
          device::add_scaled_16<Value>(sum, corner[i][k], __shfl_sync(0xffffffffu, corners.weight[k], i0 + i, kLanes));
    }
  }

  device::let_next_kernel_start();  // not before: its blocks would take the places of this one's last ones
#pragma unroll
  for (int round = 0; round < group_bits; ++round)
#pragma unroll
    for (float& one : sum) one += __shfl_xor_sync(0xffffffffu, one, 1 << (lane_bits + round));
  if (group == 0 && valid) store_sums<Value, AnyType>(call, item, part * device::kPerVector<Value>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_vectors(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  const Call call = forward_call(problem, arguments);
  Work work(kSite, problem.device);
  const int bits = lane_bits(problem);
  const bool split = config.groups > 1;
  const int thread_bits = bits + (split ? kSplitBits : 0);
  const int head_bits = split ? 0 : bank_bits(problem, bits);
  const Deal deal = deal_items(problem, kThreads >> (thread_bits + head_bits), head_bits);
  const unsigned threads = (deal.each << (thread_bits + head_bits)) + device::kWarpThreads - 1;
  const LaunchShape shape{.grid = grid_of(problem, deal),
                          .block = threads / device::kWarpThreads * device::kWarpThreads,
                          .dependent = arguments.dependent_launch};
  with_value_type(problem.value_dtype, [&]<class Value>(Value*) {
    with_constant<0, 5>(bits, [&]<int lane_bits>(Constant<lane_bits>) {
      if constexpr (lane_bits <= kMostSplitLaneBits)
        if (split) return work.add(kernel<Value, lane_bits, kSplitBits>, shape, call, deal);
      work.add(kernel<Value, lane_bits, 0>, shape, call, deal);
    });
  });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::shuffled_samples
