// Version 2: adds to channel_per_thread loads of 16 bytes, as many threads per sample as its channels need (four for 32
// f16 channels), and that each sample is worked out once: a thread reads four points of its item together and passes a
// record of 16 bytes of each to the others through shared memory. A block works on as many heads as lie in 128 bytes:
// neighbouring threads then read different banks of the L1.
#include "device/shared_memory.cuh"
#include "ops/ms_deform_attn/forward/shared/corners.cuh"
#include "ops/ms_deform_attn/forward/shared/deal.cuh"
#include "ops/ms_deform_attn/shared/point_vectors.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::vector16 {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
/// 64 registers for 16-bit values; f32 with 64 spills a few bytes. Other GPUs than Hopper take up to 96.
template <class Value>
constexpr int kBlocksPerMultiprocessor = !device::kOnHopper   ? 5
                                         : sizeof(Value) == 2 ? 8
                                                              : 7;
constexpr int kFlight = 2;  // samples under way per thread
constexpr int kBatch = 4;   // neighbouring points of a level, which one thread works out

/// One side of a sample as the nearest place inside the level: pixels `base` and `base + 1` with weights 1 - part and
/// part, both times `kept`, the share of the sample that lies inside. Skipped samples, infinite and NaN locations keep
/// 0.
struct Place {
  int base = 0;
  float part = 0;
  float kept = 0;
};

__device__ __forceinline__ Place place(float location, int size) {
  const float at = fmaf(location, static_cast<float>(size), -0.5f);
  const float inside = fminf(fmaxf(at, 0.0f), static_cast<float>(size - 1));
  Place result;
  result.base = min(static_cast<int>(inside), max(size - 2, 0));
  result.part = inside - static_cast<float>(result.base);
  result.kept = fmaxf(1.0f - fabsf(at - inside), 0.0f);
  return result;
}

/// A sample in four words: where its upper left pixel lies behind [n, 0, m, 0] in units of 16 bytes, the weight of the
/// right column, and the attention weights of the two rows.
struct alignas(16) Record {
  int offset;
  float part;
  float upper;
  float lower;
};

template <class Value>
__device__ __forceinline__ Record record_of(const Call& call, const DeviceLevel& level, const Point3& point) {
  Place across;
  Place down;
  if (call.nearest) {
    const bool taken =
        locate_nearest(point.x, level.width, across.base) && locate_nearest(point.y, level.height, down.base);
    if (!taken) across.base = down.base = 0;
    across.kept = down.kept = taken ? 1.0f : 0.0f;
    // The four pixels of weight 0 beside and below the sample must lie inside the level.
    across.part = across.base > max(level.width - 2, 0) ? 1.0f : 0.0f;
    down.part = down.base > max(level.height - 2, 0) ? 1.0f : 0.0f;
    across.base -= static_cast<int>(across.part);
    down.base -= static_cast<int>(down.part);
  } else {
    across = place(point.x, level.width);
    down = place(point.y, level.height);
  }
  const float weight = point.weight * (across.kept * down.kept);
  Record record;
  record.offset =
      static_cast<int>(level.value_at / device::kPerVector<Value>) +
      (down.base * level.pitch + across.base) * static_cast<int>(call.value.row / device::kPerVector<Value>);
  record.part = across.part;
  record.lower = weight * down.part;
  record.upper = fmaf(-weight, down.part, weight);
  return record;
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

template <class Value>
__device__ __forceinline__ void add_corners(float (&sum)[device::kPerVector<Value>], const uint4 (&corner)[4],
                                            const Record& record) {
  const float upper_right = record.upper * record.part;
  const float lower_right = record.lower * record.part;
  device::add_scaled_16<Value>(sum, corner[0], fmaf(-record.upper, record.part, record.upper));
  device::add_scaled_16<Value>(sum, corner[1], upper_right);
  device::add_scaled_16<Value>(sum, corner[2], fmaf(-record.lower, record.part, record.lower));
  device::add_scaled_16<Value>(sum, corner[3], lower_right);
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
  for (int i = 0; i < count; ++i) add_corners<Value>(sum, corner[i], record[i]);
}

template <class Value, class Point>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor<Value>)
    kernel(const __grid_constant__ Call call, const Deal deal, const int lane_bits) {
  auto& shared = device::block_shared<Records[kWarps]>();
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  Records& records = shared[device::warp_index()];
  const int lane = device::lane_index();
  const int lanes = 1 << lane_bits;
  const int slot = lane >> lane_bits;   // item of the warp
  const int part = lane & (lanes - 1);  // 16 bytes of its channels
  const auto [item, valid] = dealt_item(call, deal, threadIdx.x >> lane_bits);
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
  if (valid) store_sums<Value, Point>(call, item, part * device::kPerVector<Value>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_vectors(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const Call call = forward_call(problem, arguments);
  Work work(kSite, problem.device);
  const int bits = lane_bits(problem);
  const int head_bits = bank_bits(problem, bits);
  const Deal deal = deal_items(problem, std::int64_t{kThreads} >> (bits + head_bits), head_bits);
  with_types(problem, [&]<class Value, class Point>(Value*, Point*) {
    work.add(kernel<Value, Point>,
             {.grid = grid_of(problem, deal), .block = kThreads, .dependent = arguments.dependent_launch}, call, deal,
             bits);
  });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::vector16
