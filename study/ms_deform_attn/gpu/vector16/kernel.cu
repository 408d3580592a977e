// Version 2: adds to channel_per_thread loads of 16 bytes, as many threads per sample as its channels need (four for 32
// f16 channels), and that each sample is worked out once: a thread reads four points of its item together and passes a
// record of each to the others through shared memory. The heads of a query follow each other: neighbouring
// threads then read different banks of the L1.
#include "device/shared_memory.cuh"
#include "ops/ms_deform_attn/forward/shared/corners.cuh"
#include "ops/ms_deform_attn/shared/point_vectors.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"
#include "study/ms_deform_attn/shared/exact_sums.cuh"

namespace tmaops::ops::ms_deform_attn::vector16 {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kBlocksPerMultiprocessor = device::kOnHopper ? 7 : 5;  // 72 or 96 registers
constexpr int kFlight = 2;                                           // samples under way per thread
constexpr int kBatch = 4;  // neighbouring points of a level, which one thread works out

/// A sample: where its upper left pixel lies behind [n, 0, m, 0] in units of 16 bytes, and the weights of its pixels.
struct Record {
  int offset;
  float weight[4];
};

template <class Value>
__device__ __forceinline__ Record record_of(const Call& call, const DeviceLevel& level, const Point3& point) {
  const Corners corners = corners_of(point, level.height, level.width, call.nearest);
  return {offset_of<Value>(call, level, corners),
          {corners.weight[0], corners.weight[1], corners.weight[2], corners.weight[3]}};
}

/// The samples of a warp's batches: [point of the batch][thread that worked it out].
struct Records {
  Record of[kBatch][device::kWarpThreads];
};

/// Goes through the batches of an item's points.
class Cursor {
 public:
  __device__ __forceinline__ explicit Cursor(const Call& call) : call_(call) { settle(); }
  /// The batch `count` further.
  __device__ __forceinline__ void advance(int count) {
    for (; count > 0 && valid(); --count) {
      point_ += kBatch;
      settle();
    }
  }
  __device__ __forceinline__ bool valid() const { return level_ < call_.level_count; }
  __device__ __forceinline__ const DeviceLevel& level() const { return call_.levels[level_]; }
  __device__ __forceinline__ int point() const { return point_; }
  /// Points of the batch, fewer at the end of a level.
  __device__ __forceinline__ int points() const { return min(static_cast<int>(level().points) - point_, kBatch); }

 private:
  __device__ __forceinline__ void settle() {
    while (valid() && point_ >= level().points) {
      point_ = 0;
      ++level_;
    }
  }
  const Call& call_;
  int level_ = 0;
  int point_ = 0;
};

template <class Point>
__device__ __forceinline__ void load_batch(const Call& call, std::int64_t locations, std::int64_t weights,
                                           const Cursor& cursor, Point3 (&points)[kBatch]) {
  const DeviceLevel& level = cursor.level();
  const std::int64_t location_at = locations + level.location_at + cursor.point() * call.locations.point;
  const std::int64_t weight_at = weights + level.weight_at + cursor.point() * call.weights.point;
  if constexpr (!std::is_same_v<Point, AnyType>) {
    if (call.point_vectors) {
      load_points(static_cast<const Point*>(call.locations.data) + location_at,
                  static_cast<const Point*>(call.weights.data) + weight_at, points);
      return;
    }
  }
  const int left = cursor.points();
#pragma unroll
  for (int i = 0; i < kBatch; ++i)
    points[i] =
        i < left ? load_point<Point>(call, location_at + i * call.locations.point, weight_at + i * call.weights.point)
                 : Point3{};
}

/// Adds `count` samples whose records lie a warp's threads apart.
template <class Value, int count>
__device__ __forceinline__ void add_samples(float (&sum)[device::kPerVector<Value>], const uint4* map, const Map& level,
                                            const Record* records) {
  Record record[count];
  uint4 corner[count][4];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    record[i] = records[i * device::kWarpThreads];
    const uint4* upper = map + record[i].offset;
    const uint4* lower = upper + level.down;
    corner[i][0] = device::load_16(upper);
    corner[i][1] = device::load_16(upper + level.right);
    corner[i][2] = device::load_16(lower);
    corner[i][3] = device::load_16(lower + level.right);
  }
#pragma unroll
  for (int i = 0; i < count; ++i)
#pragma unroll
    for (int k = 0; k < 4; ++k) device::add_scaled_16<Value>(sum, corner[i][k], record[i].weight[k]);
}

template <class Value, class Point>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    kernel(const __grid_constant__ Call call, const int lane_bits) {
  auto& shared = device::block_shared<Records[kWarps]>();
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  Records& records = shared[device::warp_index()];
  const int lane = device::lane_index();
  const int lanes = 1 << lane_bits;
  const int slot = lane >> lane_bits;   // item of the warp
  const int part = lane & (lanes - 1);  // 16 bytes of its channels
  const std::int64_t index = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) >> lane_bits;
  const Item item = item_at(call, min(index, call.items - 1));
  const auto* map = reinterpret_cast<const uint4*>(first_pixel<Value>(call, item)) + part;
  device::keep(map);  // the compiler would rather work it out again for every sample
  const std::int64_t locations = call.locations.row(item.n, item.q, item.m);
  const std::int64_t weights = call.weights.row(item.n, item.q, item.m);

  float sum[device::kPerVector<Value>] = {};
  Cursor mine(call);  // the batch this thread works out
  mine.advance(part);
  for (Cursor batch(call); batch.valid();) {
    if (mine.valid()) {
      Point3 points[kBatch];
      load_batch<Point>(call, locations, weights, mine, points);
#pragma unroll
      for (int i = 0; i < kBatch; ++i) records.of[i][lane] = record_of<Value>(call, mine.level(), points[i]);
    }
    mine.advance(lanes);
    __syncwarp();
    for (int j = 0; j < lanes && batch.valid(); ++j, batch.advance(1)) {
      const Map level = map_of<Value>(call, batch.level());
      const Record* from = &records.of[0][(slot << lane_bits) + j];
      const int count = batch.points();
      if (count == kBatch) {
#pragma unroll
        for (int i = 0; i < kBatch; i += kFlight)
          add_samples<Value, kFlight>(sum, map, level, from + i * device::kWarpThreads);
      } else {
#pragma unroll 1
        for (int i = 0; i < count; ++i) add_samples<Value, 1>(sum, map, level, from + i * device::kWarpThreads);
      }
    }
    __syncwarp();  // all have read the records before they are written again
  }
  if (index < call.items) store_sums<Value, Point>(call, item, part * device::kPerVector<Value>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_vectors(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const Call call = forward_call(problem, arguments);
  Work work(kSite, problem.device);
  const int bits = lane_bits(problem);
  with_types(problem, [&]<class Value, class Point>(Value*, Point*) {
    work.add(kernel<Value, Point>, one_group_each(call.items, kThreads, bits, arguments.dependent_launch), call, bits);
  });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::vector16
