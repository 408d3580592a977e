// Version 2: adds to channel_per_thread loads of 16 bytes, as many threads per sample as its channels need (four for 32
// f16 channels), and that each sample is worked out once: a thread reads four points of its item together and passes a
// record of 16 bytes of each to the others through shared memory. A block works on as many heads as lie in 128 bytes:
// neighbouring threads then read different banks of the L1 (enc/detr: 133 us, 144 with one head).
#include "ops/ms_deform_attn/cuda/records.cuh"

namespace tmaops::ops::ms_deform_attn::vector16 {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
/// 64 registers for 16-bit values; f32 with 64 spills a few bytes.
template <class Value>
constexpr int kBlocksPerMultiprocessor = sizeof(Value) == 2 ? 8 : 7;
constexpr int kFlight = 2;  // samples under way per thread
constexpr int kBatch = 4;   // neighbouring points of a level, which one thread works out

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
      constexpr int kWords = kBatch * static_cast<int>(sizeof(Point)) / 4;
      std::uint32_t pairs[2 * kWords];
      std::uint32_t factors[kWords];
      load_words(pairs, static_cast<const Point*>(call.locations.data) + location_at);
      load_words(factors, static_cast<const Point*>(call.weights.data) + weight_at);
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        points[i] = {element<Point>(pairs, 2 * i), element<Point>(pairs, 2 * i + 1), element<Point>(factors, i)};
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
__device__ __forceinline__ void add_corners(float (&sum)[kPerVector<Value>], const uint4 (&corner)[4],
                                            const Record& record) {
  const float upper_right = record.upper * record.part;
  const float lower_right = record.lower * record.part;
  add_vector<Value>(sum, corner[0], fmaf(-record.upper, record.part, record.upper));
  add_vector<Value>(sum, corner[1], upper_right);
  add_vector<Value>(sum, corner[2], fmaf(-record.lower, record.part, record.lower));
  add_vector<Value>(sum, corner[3], lower_right);
}

/// Adds `count` samples whose records lie a warp's threads apart.
template <class Value, int count>
__device__ __forceinline__ void add_samples(float (&sum)[kPerVector<Value>], const uint4* map, const Map& level,
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
  __shared__ Records shared[kWarps];
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  Records& records = shared[device::warp_index()];
  const int lane = device::lane_index();
  const int lanes = 1 << lane_bits;
  const int slot = lane >> lane_bits;   // item of the warp
  const int part = lane & (lanes - 1);  // 16 bytes of its channels
  const auto [item, valid] = dealt_item(call, deal, threadIdx.x >> lane_bits);
  const auto* map =
      reinterpret_cast<const uint4*>(static_cast<const Value*>(call.value.data) + call.value.at(item.n, 0, item.m)) +
      part;
  device::keep(map);  // the compiler would rather work it out again for every sample
  const std::int64_t locations = call.locations.row(item.n, item.q, item.m);
  const std::int64_t weights = call.weights.row(item.n, item.q, item.m);

  float sum[kPerVector<Value>] = {};
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
  if (valid) store_sums<Value, Point>(call, item, part * kPerVector<Value>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return supports_vectors(problem); }

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  return prepare_call(problem, arguments);
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const Call& call = prepared_call(arguments);
  if (call.items == 0) return;
  const int bits = lane_bits(problem);
  const int head_bits = bank_bits(problem, bits);
  const Deal deal = deal_items(problem, std::int64_t{kThreads} >> (bits + head_bits), head_bits);
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{
      .grid = grid_of(problem, deal), .block = dim3(kThreads), .dependent = arguments.dependent_launch};
  with_types(problem, [&](auto* value, auto* point) {
    using Value = std::remove_pointer_t<decltype(value)>;
    using Point = std::remove_pointer_t<decltype(point)>;
    launch_kernel<kernel<Value, Point>>(kSite, config, stream, call, deal, bits);
  });
}

}  // namespace tmaops::ops::ms_deform_attn::vector16
