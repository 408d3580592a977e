// Version 9: adds to vector16's loads of 16 bytes the steps around the operator: the softmax of the logits, reference
// points plus offsets, the padding mask, and levels in a border. The threads of an item share the search for the
// largest logit, and the division by the sum of weights comes last; a masked pixel gets the weight 0.
#include "device/shared_memory.cuh"
#include "ops/ms_deform_attn/forward/shared/corners.cuh"
#include "ops/ms_deform_attn/forward/shared/fused_call.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::fused_vectors {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
/// As many as fit without spills: 72 registers, 80 for f32 values, 96 where the points' types are looked up as well and
/// on other GPUs than Hopper.
template <class Value, class Point>
constexpr int kBlocksPerMultiprocessor = !device::kOnHopper               ? 5
                                         : sizeof(Value) == 2             ? 7
                                         : std::is_same_v<Point, AnyType> ? 5
                                                                          : 6;
constexpr int kRecordsPerThread = 2;
constexpr int kRecords = kRecordsPerThread * device::kWarpThreads;  // of a warp

struct Records {
  float4 weights[kRecords];  // [sample][item]
  int offset[kRecords];
};

/// Goes through the points of an item in order, any number of them at a time.
class Cursor {
 public:
  __device__ __forceinline__ explicit Cursor(const Call& call) : call_(call) {}
  __device__ __forceinline__ void move_to(int s) {
    while (s >= call_.levels[l].last_point) ++l;
    p = s - (call_.levels[l].last_point - static_cast<int>(call_.levels[l].points));
  }
  __device__ __forceinline__ const DeviceLevel& level() const { return call_.levels[l]; }
  int l = 0;
  int p = 0;  // in the level

 private:
  const Call& call_;
};

template <class Value, class Point>
__device__ __forceinline__ void make_record(const FusedCall& call, const Samples<Point, FusedCall>& samples,
                                            const Cursor& at, float& total, float4& weights, int& offset) {
  const DeviceLevel& level = at.level();
  const Point3 stored = load_point<Point>(call, samples.location_at(level, at.p), samples.weight_at(level, at.p));
  const Point3 point = samples.finish(stored, level, at.l);
  total += point.weight;
  Corners corners = corners_of(point, level.height, level.width, call.nearest);
  if (call.mask != nullptr) {
    const std::int64_t upper =
        level.first_pixel + static_cast<std::int64_t>(corners.row) * level.pitch + corners.column;
    const std::int64_t lower = upper + (level.height > 1 ? level.pitch : 0);
    const int right = level.width > 1 ? 1 : 0;
    const bool masked[4] = {samples.masked(upper), samples.masked(upper + right), samples.masked(lower),
                            samples.masked(lower + right)};
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (masked[k]) corners.weight[k] = 0.0f;
  }
  weights = {corners.weight[0], corners.weight[1], corners.weight[2], corners.weight[3]};
  offset = offset_of<Value>(call, level, corners);
}

template <class Value, class Point>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor<Value, Point>)
    kernel(const __grid_constant__ FusedCall call, const int lane_bits) {
  auto& shared = device::block_shared<Records[kWarps]>();
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  Records& records = shared[device::warp_index()];
  const int lanes = 1 << lane_bits;
  const int item_bits = 5 - lane_bits;
  const int slot = device::lane_index() >> lane_bits;   // item of the warp
  const int part = device::lane_index() & (lanes - 1);  // 16 bytes of its channels
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kWarps + device::warp_index()) << item_bits;
  if (first >= call.items) return;
  const bool valid = first + slot < call.items;
  const Item item = item_at(call, min(first + slot, call.items - 1));
  const auto* map = reinterpret_cast<const uint4*>(first_pixel<Value>(call, item)) + part;
  const Samples<Point, FusedCall> samples(call, item, part, lanes);
  const int points = static_cast<int>(call.points);
  const int chunk = kRecordsPerThread * lanes;

  Cursor cursor(call);
  float total = 0;  // of the weights this thread has seen
  float sum[device::kPerVector<Value>] = {};
  int l = 0;
  for (int s0 = 0; s0 < points; s0 += chunk) {
#pragma unroll
    for (int r = 0; r < kRecordsPerThread; ++r) {
      const int s = r * lanes + part;
      if (s0 + s >= points) continue;
      cursor.move_to(s0 + s);
      const int to = (s << item_bits) + slot;
      make_record<Value, Point>(call, samples, cursor, total, records.weights[to], records.offset[to]);
    }
    __syncwarp();

    const int end = min(points, s0 + chunk);
    for (int s = s0; s < end;) {
      while (s >= call.levels[l].last_point) ++l;
      const int level_end = min(end, call.levels[l].last_point);
      const Map level = map_of<Value>(call, call.levels[l]);
      for (; s < level_end; ++s) {
        const int at = ((s - s0) << item_bits) + slot;
        const uint4* upper = map + records.offset[at];
        const uint4* lower = upper + level.down;
        const uint4 corner[4] = {device::load_16(upper), device::load_16(upper + level.right), device::load_16(lower),
                                 device::load_16(lower + level.right)};
        const float4 weights = records.weights[at];
        device::add_scaled_16<Value>(sum, corner[0], weights.x);
        device::add_scaled_16<Value>(sum, corner[1], weights.y);
        device::add_scaled_16<Value>(sum, corner[2], weights.z);
        device::add_scaled_16<Value>(sum, corner[3], weights.w);
      }
    }
    __syncwarp();  // all have read the records before they are written again
  }
  if (call.softmax) {
    const float scale = 1.0f / over_lanes(total, lanes, [](float a, float b) { return a + b; });
#pragma unroll
    for (float& x : sum) x *= scale;
  }
  if (!valid) return;
  const int d = part * device::kPerVector<Value>;
  if (!all_finite(sum)) {  // as sum_exactly, through shared memory: no registers for what is rare
    float* exact = reinterpret_cast<float*>(records.weights) + device::lane_index();
#pragma unroll 1
    for (int i = 0; i < device::kPerVector<Value>; ++i)
      exact[i * device::kWarpThreads] = sum_channel<Value, Point>(call, item, d + i);
#pragma unroll
    for (int i = 0; i < device::kPerVector<Value>; ++i) sum[i] = exact[i * device::kWarpThreads];
  }
  if constexpr (sizeof(Value) == 2) {
    if (call.f32_output) {
      float* output = output_channel<float>(call, item, d);
#pragma unroll
      for (int i = 0; i < device::kPerVector<Value>; i += 4)
        device::store_16_streaming(output + i, device::pack_16<float>({sum[i], sum[i + 1], sum[i + 2], sum[i + 3]}));
      return;
    }
  }
  device::store_16_streaming(output_channel<Value>(call, item, d), device::pack_16<Value>(sum));
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_vector_rows(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const FusedCall call = fused_call(problem, arguments);
  Work work(kSite, problem.device);
  const int bits = lane_bits(problem);
  with_types(problem, [&]<class Value, class Point>(Value*, Point*) {
    work.add(kernel<Value, Point>, one_group_each(call.items, kThreads, bits, arguments.dependent_launch), call, bits);
  });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::fused_vectors
