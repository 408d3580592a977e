// Version 5, the idea of what was published under the name TMA (staged_async) in f32 and for all types: double-buffered
// asynchronous copies that prefetch the next level.
// While the corners of four samples are summed, cp.async brings those of the next four, of the same level or the next
// one, into the other half of shared memory. A thread copies and reads the same 16 bytes of every corner: no barrier,
// no bank conflict. Every byte passes shared memory on top of what vector16 does, and 16 KB per warp leave little L1:
// slower wherever queries are many.
#include "device/cp_async.cuh"
#include "device/shared_memory.cuh"
#include "ops/ms_deform_attn/forward/shared/corners.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::cp_async_pipeline {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 64;  // 32 KB of shared memory: seven blocks per multiprocessor
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kSamples = 4;  // of a stage

struct Stage {
  uint4 corner[kSamples][4][kThreads];
};

/// One sample of an item, as the threads that copy its corners and add them up take it.
struct Taken {
  Corners corners;
  int offset = 0;  // of the upper left corner, in units of 16 bytes
  Map step;
};

template <class Value, class Point>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Call call, const int lane_bits) {
  auto& stages = device::block_shared<Stage[2]>();
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const int lane = device::lane_index();
  const int lanes = 1 << lane_bits;
  const int part = lane & (lanes - 1);
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kWarps + device::warp_index()) << (5 - lane_bits);
  if (first >= call.items) return;
  const std::int64_t number = first + (lane >> lane_bits);
  const Item item = item_at(call, min(number, call.items - 1));
  const auto* map = reinterpret_cast<const uint4*>(first_pixel<Value>(call, item)) + part;
  const std::int64_t location_row = call.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = call.weights.row(item.n, item.q, item.m);

  // Each of the first four threads of an item works out one sample of a stage. The other threads repeat these.
  int l = 0;
  int p0 = 0;
  const auto next_stage = [&] {  // to the next four samples; false at the end
    p0 += kSamples;
    while (l < call.level_count && p0 >= call.levels[l].points) p0 = 0, ++l;
    return l < call.level_count;
  };
  const auto load = [&]() -> Point3 {
    const DeviceLevel& level = call.levels[l];
    const std::int64_t p = p0 + (part & (kSamples - 1));
    if (p >= level.points) return {};
    return load_point<Point>(call, location_row + level.location_at + p * call.locations.point,
                             weight_row + level.weight_at + p * call.weights.point);
  };
  const auto take = [&](const Point3& point, const DeviceLevel& level) -> Taken {
    const Corners corners = corners_of(point, level.height, level.width, call.nearest);
    return {corners, offset_of<Value>(call, level, corners), map_of<Value>(call, level)};
  };
  const auto copy = [&](const Taken& taken, Stage& stage) {
#pragma unroll
    for (int i = 0; i < kSamples; ++i) {
      const uint4* from = map + __shfl_sync(0xffffffffu, taken.offset, i, lanes);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        device::copy_async_16(&stage.corner[i][k][threadIdx.x],
                              from + (k % 2 ? taken.step.right : 0) + (k / 2 ? taken.step.down : 0));
    }
    device::commit_copies();
  };

  p0 = -kSamples;
  next_stage();
  Taken current = take(load(), call.levels[l]);
  copy(current, stages[0]);
  bool more = next_stage();
  Point3 point = more ? load() : Point3{};
  float sum[device::kPerVector<Value>] = {};
  for (int half = 0;; half ^= 1) {
    Taken next;
    const bool last = !more;
    if (last) {
      device::wait_copies<0>();
    } else {
      next = take(point, call.levels[l]);
      copy(next, stages[half ^ 1]);
      more = next_stage();
      if (more) point = load();
      device::wait_copies<1>();
    }
#pragma unroll
    for (int i = 0; i < kSamples; ++i)
#pragma unroll
      for (int k = 0; k < 4; ++k)
        device::add_scaled_16<Value>(sum, stages[half].corner[i][k][threadIdx.x],
                                     __shfl_sync(0xffffffffu, current.corners.weight[k], i, lanes));
    if (last) break;
    current = next;
  }
  if (number < call.items) store_sums<Value, Point>(call, item, part * device::kPerVector<Value>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_vectors(problem); !support) return support;
  if (1 << lane_bits(problem) < kSamples)
    return Support::no("needs channels of at least 64 bytes: four threads of an item work out four samples");
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

}  // namespace tmaops::ops::ms_deform_attn::cp_async_pipeline
