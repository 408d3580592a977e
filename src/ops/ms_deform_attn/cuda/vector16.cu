// Version 2: adds to channel_per_thread loads of 16 bytes, as many threads per sample as its channels need (four for 32
// f16 channels), and that each sample is worked out once: the threads of an item share the work and pass records
// through shared memory. Items follow one another in query order.
#include "ops/ms_deform_attn/cuda/records.cuh"

namespace tmaops::ops::ms_deform_attn::vector16 {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
/// 64 registers for 16-bit values (seed/uniform: 538 us, against 571 with 6 blocks and two samples under way), 72 for f32.
template <class Value>
constexpr int kBlocksPerMultiprocessor = sizeof(Value) == 2 ? 8 : 7;
constexpr int kFlight = 1;  // samples under way per thread; two need 80 registers
constexpr int kRecordsPerThread = 2;
constexpr int kRecords = kRecordsPerThread * device::kWarpThreads;  // of a warp

struct Records {
  float4 weights[kRecords];  // [sample][item]
  int offset[kRecords];
};

/// One thread's part of making records: samples s, and their levels, only grow.
template <class Value, class Point>
class Maker {
 public:
  __device__ __forceinline__ Maker(const Call& call, const Item& item)
      : call_(call),
        locations_(call.locations.row(item.n, item.q, item.m)),
        weights_(call.weights.row(item.n, item.q, item.m)) {}

  /// Starts loading sample s.
  __device__ __forceinline__ Point3 load(int s) {
    if (s >= call_.points) return {};
    while (s >= call_.levels[loaded_].last_point) ++loaded_;
    const DeviceLevel& level = call_.levels[loaded_];
    const std::int64_t p = s - (level.last_point - level.points);
    return load_point<Point>(call_, locations_ + level.location_at + p * call_.locations.point,
                             weights_ + level.weight_at + p * call_.weights.point);
  }
  __device__ __forceinline__ void make(int s, const Point3& point, Records& records, int at) {
    if (s >= call_.points) return;
    while (s >= call_.levels[made_].last_point) ++made_;
    const DeviceLevel& level = call_.levels[made_];
    const Corners corners = corners_of(point, level.height, level.width, call_.nearest);
    records.weights[at] = {corners.weight[0], corners.weight[1], corners.weight[2], corners.weight[3]};
    records.offset[at] = offset_of<Value>(call_, level, corners);
  }

 private:
  const Call& call_;
  std::int64_t locations_;
  std::int64_t weights_;
  int loaded_ = 0;
  int made_ = 0;
};

template <class Value>
__device__ __forceinline__ void add_corners(float (&sum)[kPerVector<Value>], const uint4 (&corner)[4],
                                            const float4& weights) {
  add_vector<Value>(sum, corner[0], weights.x);
  add_vector<Value>(sum, corner[1], weights.y);
  add_vector<Value>(sum, corner[2], weights.z);
  add_vector<Value>(sum, corner[3], weights.w);
}

template <class Value, class Point>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor<Value>)
    kernel(const __grid_constant__ Call call, const int lane_bits) {
  __shared__ Records shared[kWarps];
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  Records& records = shared[device::warp_index()];
  const int lane = device::lane_index();
  const int lanes = 1 << lane_bits;
  const int item_bits = 5 - lane_bits;
  const int slot = lane >> lane_bits;   // item of the warp
  const int part = lane & (lanes - 1);  // 16 bytes of its channels
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kWarps + device::warp_index()) << item_bits;
  if (first >= call.items) return;
  const std::int64_t number = first + slot;
  const Item item = item_at(call, min(number, call.items - 1));
  const auto* map = reinterpret_cast<const uint4*>(static_cast<const Value*>(call.value.data) +
                                                   call.value.at(item.n, 0, item.m)) +
                    part;

  Maker<Value, Point> maker(call, item);
  Point3 point[kRecordsPerThread];
#pragma unroll
  for (int r = 0; r < kRecordsPerThread; ++r) point[r] = maker.load(r * lanes + part);

  float sum[kPerVector<Value>] = {};
  const int chunk = kRecordsPerThread * lanes;
  const int points = static_cast<int>(call.points);
  int l = 0;
  for (int s0 = 0; s0 < points; s0 += chunk) {
#pragma unroll
    for (int r = 0; r < kRecordsPerThread; ++r)
      maker.make(s0 + r * lanes + part, point[r], records, ((r * lanes + part) << item_bits) + slot);
#pragma unroll
    for (int r = 0; r < kRecordsPerThread; ++r) point[r] = maker.load(s0 + chunk + r * lanes + part);
    __syncwarp();

    const int end = min(points, s0 + chunk);
    for (int s = s0; s < end;) {
      while (s >= call.levels[l].last_point) ++l;
      const int level_end = min(end, call.levels[l].last_point);
      const Map level = map_of<Value>(call, call.levels[l]);
      for (; s < level_end; s += kFlight) {
        const int at = ((s - s0) << item_bits) + slot;
        uint4 corner[kFlight][4];
#pragma unroll
        for (int i = 0; i < kFlight; ++i) {
          const uint4* from = map + records.offset[s + i < level_end ? at + (i << item_bits) : at];
          corner[i][0] = device::load_16(from);
          corner[i][1] = device::load_16(from + level.right);
          corner[i][2] = device::load_16(from + level.down);
          corner[i][3] = device::load_16(from + level.down + level.right);
        }
#pragma unroll
        for (int i = 0; i < kFlight; ++i)
          if (s + i < level_end) add_corners<Value>(sum, corner[i], records.weights[at + (i << item_bits)]);
      }
      s = level_end;
    }
    __syncwarp();  // all have read the records before they are written again
  }
  if (number < call.items) store_sums<Value, Point>(call, item, part * kPerVector<Value>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) { return supports_vectors(problem, device); }

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  const int bits = lane_bits(problem);
  const std::int64_t per_block = std::int64_t{kThreads} >> bits;
  const std::int64_t blocks = (call.items + per_block - 1) / per_block;
  if (blocks == 0) return;
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>(blocks)),
                            .block = dim3(kThreads),
                            .dependent = arguments.dependent_launch};
  with_types(problem, [&](auto* value, auto* point) {
    using Value = std::remove_pointer_t<decltype(value)>;
    using Point = std::remove_pointer_t<decltype(point)>;
    launch_kernel<kernel<Value, Point>>("ms_deform_attn: vector16", config, stream, call, bits);
  });
}

}  // namespace tmaops::ops::ms_deform_attn::vector16
