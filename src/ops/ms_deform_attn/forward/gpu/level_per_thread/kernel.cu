// Version 8, for decoders: adds to shuffled_samples that each thread works out points of one of the levels, all of
// them read by one load before the first sum, that the loads of two samples are under way while two others are summed,
// and that the queries of a block are of one image and head: they find each other's pixels in the L1. Two or four
// groups of threads may share the points of an item, where these threads run all at once. A softmax and reference
// points may be fused in.
#include <bit>

#include "device/bulk_copy.cuh"
#include "ops/ms_deform_attn/forward/gpu/level_per_thread/threads.hpp"
#include "ops/ms_deform_attn/forward/shared/chosen_level.cuh"
#include "ops/ms_deform_attn/forward/shared/fused_corners.cuh"
#include "ops/ms_deform_attn/shared/point_vectors.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::level_per_thread {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kLevels = 4;  // that neighbouring threads take; the last one of four has no work where there are three
constexpr int kPoints = 4;  // of each level, worked out together
constexpr int kFlight = 2;  // samples whose loads are under way while as many are summed
constexpr int kWholeFlight = 4;
/// With f32 there is no register left for a row pitch beside the width.
template <class Value>
constexpr bool kTakesBorders = sizeof(Value) == 2;

/// Part of a tensor that the blocks bring into the L2, each a share. In units of 16 bytes.
struct Ahead {
  const unsigned char* from = nullptr;
  std::uint32_t units = 0;
  std::uint32_t share = 0;
};

/// What is asked for before the first location is known. All blocks share the points; those of an image share its last
/// levels, which its queries read nearly whole.
struct Aheads {
  Ahead points[3];            // locations, weights, reference points
  Ahead levels;               // of the first image
  std::int64_t image = 0;     // bytes to the next one
  unsigned image_blocks = 1;  // blocks of an image
};

__device__ __forceinline__ void fetch_share(const Ahead& ahead, unsigned block, std::int64_t further) {
  const std::uint32_t from = block * ahead.share;
  if (from < ahead.units)
    device::bulk_prefetch(ahead.from + further + static_cast<std::int64_t>(from) * 16,
                          min(ahead.share, ahead.units - from) * 16);
}

/// Four threads, in front of wait_for_previous_kernel(): with a dependent launch this happens while the kernel in
/// front comes to its end. That may still have to write these bytes: a prefetch returns none of them, and the L2 is
/// where writes and later reads meet.
__device__ __forceinline__ void fetch_ahead(const Aheads& aheads) {
  if (threadIdx.x < 3) fetch_share(aheads.points[threadIdx.x], blockIdx.x, 0);
  if (threadIdx.x == 3)
    fetch_share(aheads.levels, blockIdx.x % aheads.image_blocks, blockIdx.x / aheads.image_blocks * aheads.image);
}

/// Points of a level that follow each other, in one load where they also lie next to each other.
template <class Point, int count>
__device__ __forceinline__ void load_level(const Call& call, const Point* locations, const Point* weights,
                                           Point3 (&points)[count]) {
  if constexpr (count * sizeof(Point) >= 4)
    if (call.point_vectors) return load_points(locations, weights, points);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const Point* pair = locations + i * call.locations.point;
    points[i] = {device::widen(__ldg(pair)), device::widen(__ldg(pair + 1)),
                 device::widen(__ldg(weights + i * call.weights.point))};
  }
}

template <class Value, class Point, int levels, int lane_bits, int group_bits, int flight, class AnyCall>
__global__ void __launch_bounds__(flight == kFlight ? threads_at_once(sizeof(Value), group_bits) : kThreadsOfWhole, 1)
    kernel(const __grid_constant__ AnyCall call, const __grid_constant__ Aheads aheads, const unsigned blocks,
           const unsigned each) {
  constexpr int kLanes = 1 << lane_bits;
  constexpr int kThreadBits = lane_bits + group_bits;  // of an item
  constexpr int kMine = kLevels * kPoints >> kThreadBits;
  constexpr int kOfPoint = kLanes / kLevels * levels;  // samples that the threads' first points make
  constexpr int kSamples = kMine * kOfPoint;
  // The next kernel is let in when the last loads have been issued: earlier, its blocks would take the places of this
  // one's last ones. With groups it is let in after the last sums, else most of these kernels spill.
  constexpr bool kLetEarly = group_bits == 0 || (levels == 3 && group_bits == 1);
  static_assert(kMine >= 1 && kLanes % kLevels == 0);
  fetch_ahead(aheads);
  device::wait_for_previous_kernel();

  const int of_item = static_cast<int>(threadIdx.x) & ((1 << kThreadBits) - 1);
  const int part = of_item & (kLanes - 1);
  const auto heads = static_cast<unsigned>(call.heads);
  const unsigned map_number = blockIdx.x / blocks;
  const unsigned of_block = threadIdx.x >> kThreadBits;
  const std::int64_t q = std::int64_t{blockIdx.x % blocks} * each + of_block;
  const bool valid = of_block < each && q < call.queries;
  const Item item{map_number / heads, min(q, call.queries - 1), map_number % heads};
  const auto* map = reinterpret_cast<const uint4*>(first_pixel<Value>(call, item)) + part;
  const int pixel = static_cast<int>(call.value.row / device::kPerVector<Value>);
  const ChosenLevel level = choose_level<Value, levels>(call.levels, of_item % kLevels);
  const int border = kTakesBorders<Value> ? call.border : 0;
  const int first = of_item / kLevels * kMine;
  const Point* locations =
      static_cast<const Point*>(call.locations.data) +
      (call.locations.row(item.n, item.q, item.m) + level.location_at + first * call.locations.point);
  const Point* weights = static_cast<const Point*>(call.weights.data) +
                         (call.weights.row(item.n, item.q, item.m) + level.weight_at + first * call.weights.point);
  device::keep(locations);  // the compiler would be free to read in front of wait_for_previous_kernel()
  device::keep(weights);

  float sum[device::kPerVector<Value>] = {};
#pragma unroll 1
  for (auto left = static_cast<int>(call.levels[0].points); left > 0; left -= kPoints) {
    Point3 points[kMine];
    load_level(call, locations, weights, points);
    if constexpr (kFused<AnyCall>) {
      const Origin origin = origin_of(call, call.reference.row(item.n, item.q, 0), min(of_item % kLevels, levels - 1),
                                      level.height, level.pitch - border, level.points);
      float own = 0;
#pragma unroll
      for (Point3& point : points) {
        point = fuse<Value>(call, point, origin);
        own += point.weight;
      }
      const float scale = scale_of<1 << kThreadBits>(call, of_item % kLevels < levels ? own : 0.0f);
#pragma unroll
      for (Point3& point : points) point.weight *= scale;
    }
    locations += kPoints * call.locations.point;
    weights += kPoints * call.weights.point;
    Corners corners[kMine];
    int offsets[kMine];
    uint4 pixels[2 * flight][4];
    const auto owner = [](int sample) {  // the thread of the group that has worked it out
      return sample % kOfPoint / levels * kLevels + sample % kOfPoint % levels;
    };
    const auto load = [&](int first_sample) {
#pragma unroll
      for (int s = first_sample; s < min(first_sample + flight, kSamples); ++s) {
        const int own = s / kOfPoint;
        if (s % kOfPoint == 0) {
          corners[own] = corners_of(points[own], level.height, level.pitch - border, false);
          offsets[own] = level.start + (corners[own].row * level.pitch + corners[own].column) * pixel;
        }
        const uint4* upper = map + __shfl_sync(0xffffffffu, offsets[own], owner(s), kLanes);
        const uint4* lower = upper + call.levels[owner(s) % kLevels].pitch * pixel;
        uint4(&to)[4] = pixels[s % (2 * flight)];
        to[0] = device::load_16(upper);
        to[1] = device::load_16(upper + pixel);
        to[2] = device::load_16(lower);
        to[3] = device::load_16(lower + pixel);
      }
    };
    load(0);
#pragma unroll
    for (int s = 0; s < kSamples; ++s) {
      if (s % flight == 0) load(s + flight);
      if (kLetEarly && s + flight == kSamples) device::let_next_kernel_start();
#pragma unroll
      for (int k = 0; k < 4; ++k)
        device::add_scaled_16<Value>(sum, pixels[s % (2 * flight)][k],
                                     __shfl_sync(0xffffffffu, corners[s / kOfPoint].weight[k], owner(s), kLanes));
    }
  }

  if (!kLetEarly) device::let_next_kernel_start();
#pragma unroll
  for (int round = 0; round < group_bits; ++round)
#pragma unroll
    for (float& one : sum) one += __shfl_xor_sync(0xffffffffu, one, 1 << (lane_bits + round));
  if (of_item >= kLanes || !valid) return;
  const int d = part * device::kPerVector<Value>;
  if (!all_finite(sum)) return store_exactly<Value, Point>(call, item, d);
  device::store_16_streaming(output_channel<Value>(call, item, d), device::pack_16<Value>(sum));
}

/// Large blocks, for the L1's sake, where each multiprocessor has work for one or two of them; where it has work for
/// many, a block's warps all wait for the slowest, and f32, whose pixels are whole lines, does best with two warps.
int block_threads(const Problem& problem, int group_bits) {
  constexpr int kSmall = 64;
  const int threads = threads_at_once(size_of(problem.value_dtype), group_bits);
  if (group_bits != 0) return threads / 2;
  if (fits(problem, device_info(problem.device), 0, 2)) return threads;
  return problem.value_dtype == DType::f32 ? kSmall : threads / 2;
}

/// Bytes of a tensor from an address on, shared by so many blocks.
Ahead ahead_of(const void* start, std::int64_t bytes, unsigned blocks) {
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t from = (first + 15) / 16 * 16;
  const std::int64_t units = (bytes - static_cast<std::int64_t>(from - first)) / 16;
  if (units <= 0) return {};
  const auto count = static_cast<std::uint32_t>(units);
  return {reinterpret_cast<const unsigned char*>(from), count, (count + blocks - 1) / blocks};
}

/// Levels from which on the queries of an image read nearly every pixel: four pixels per sample, three times as many as
/// the level has.
std::size_t first_whole_level(const Problem& problem) {
  std::size_t l = problem.levels.size();
  while (l > 0 && 4 * problem.queries * problem.levels[l - 1].points >=
                      3 * problem.levels[l - 1].height * problem.levels[l - 1].width)
    --l;
  return l;
}

constexpr std::int64_t kMostAhead = 16 << 20;  // bytes of one kind: the L2 keeps them until they are read

Aheads aheads_of(const Problem& problem, const Arguments& arguments, unsigned image_blocks) {
  Aheads aheads;
  aheads.image_blocks = image_blocks;
  const unsigned blocks = image_blocks * static_cast<unsigned>(problem.batch);
  const ConstTensorView* tensors[] = {&arguments.sampling_locations, &arguments.attention_weights,
                                      &arguments.reference_points};
  for (int i = 0; i < (problem.reference_components != 0 ? 3 : 2); ++i) {
    const std::int64_t bytes = tensors[i]->size() * static_cast<std::int64_t>(size_of(tensors[i]->dtype));
    if (tensors[i]->is_contiguous() && bytes <= kMostAhead)
      aheads.points[i] = ahead_of(tensors[i]->data, bytes, blocks);
  }
  const std::size_t l = first_whole_level(problem);
  if (!arguments.value.is_contiguous() || l == problem.levels.size()) return aheads;
  const std::int64_t row = problem.heads * problem.channels * static_cast<std::int64_t>(size_of(problem.value_dtype));
  const std::int64_t start = problem.levels[l].start;
  const Level& last = problem.levels.back();
  const std::int64_t end = last.start + (last.height - 1) * last.pitch + last.width;
  if (end <= start || (end - start) * row * problem.batch > kMostAhead) return aheads;
  aheads.image = problem.length * row;
  aheads.levels = ahead_of(static_cast<const unsigned char*>(arguments.value.data) + start * row, (end - start) * row,
                           image_blocks);
  return aheads;
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_value_output(problem); !support) return support;
  if (Support support = supports_vector_rows(problem); !support) return support;
  if (problem.masked) return Support::no("takes no padding mask: its addresses take registers that are not there");
  if (problem.bordered && problem.value_dtype == DType::f32)
    return Support::no("takes a border only around 16-bit values: with f32 there is no register left for a row pitch");
  const int bits = lane_bits(problem);
  if (bits != 2 && bits != 3) return Support::no("needs channels of 64 or 128 bytes");
  if (problem.location_dtype != problem.weight_dtype ||
      (problem.location_dtype != problem.value_dtype && problem.location_dtype != DType::f32))
    return Support::no("needs locations and weights of one type, that of value or f32");
  if (problem.sampling != Sampling::bilinear) return Support::no("needs bilinear sampling");
  if (problem.levels.size() != 4 && (problem.levels.size() != 3 || problem.value_dtype == DType::f32))
    return Support::no("needs four levels, or three with values of 16 bits");
  for (const Level& level : problem.levels) {
    if (level.points != problem.levels[0].points || level.points % kPoints != 0 || level.points == 0)
      return Support::no("needs the same number of points in each level, a multiple of four");
    if (problem.softmax && level.points != kPoints) return Support::no("takes a softmax of four points in each level");
    if (level.height < 2 || level.width < 2) return Support::no("needs levels of at least two pixels a side");
  }
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  const Call call = forward_call(problem, arguments);
  Work work(kSite, problem.device);
  const int bits = lane_bits(problem);
  const int group_bits = std::countr_zero(static_cast<unsigned>(config.groups));
  // Two groups whose samples' loads fit in the registers all at once.
  const bool whole = group_bits == 1 && size_of(problem.value_dtype) == 2 &&
                     fits(problem, device_info(problem.device), group_bits, 1, kThreadsOfWhole);
  const std::int64_t most =  // queries of a block
      (whole ? kThreadsOfWhole / 2 : block_threads(problem, group_bits)) >> (bits + group_bits);
  const auto blocks = static_cast<unsigned>((problem.queries + most - 1) / most);  // of an image and head
  const auto each = static_cast<unsigned>((problem.queries + blocks - 1) / blocks);
  const unsigned image_blocks = blocks * static_cast<unsigned>(problem.heads);
  const Aheads aheads = aheads_of(problem, arguments, image_blocks);
  const unsigned threads = (each << (bits + group_bits)) + device::kWarpThreads - 1;
  const LaunchShape shape{.grid = image_blocks * static_cast<unsigned>(problem.batch),
                          .block = threads / device::kWarpThreads * device::kWarpThreads,
                          .dependent = arguments.dependent_launch};
  const auto add = [&]<class AnyCall>(const AnyCall& any_call) {
    with_types(problem, [&]<class Value, class Point>(Value*, Point*) {
      if constexpr (std::is_same_v<Point, Value> || std::is_same_v<Point, float>)
        with_constant<sizeof(Value) == 2 ? 3 : 4, 4>(call.level_count, [&]<int levels>(Constant<levels>) {
          with_constant<2, 3>(bits, [&]<int lane_bits>(Constant<lane_bits>) {
            with_constant<0, kMostThreadBits - lane_bits>(group_bits, [&]<int group_bits>(Constant<group_bits>) {
              const auto add_kernel = [&]<int flight>(Constant<flight>) {
                work.add(kernel<Value, Point, levels, lane_bits, group_bits, flight, AnyCall>, shape, any_call, aheads,
                         blocks, each);
              };
              if constexpr (group_bits == 1 && sizeof(Value) == 2)
                if (whole) return add_kernel(Constant<kWholeFlight>());
              add_kernel(Constant<kFlight>());
            });
          });
        });
    });
  };
  if (problem.fused())
    add(fused_call(problem, arguments));
  else
    add(call);
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::level_per_thread
