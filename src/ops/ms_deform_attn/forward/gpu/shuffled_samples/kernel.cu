// Version 6: adds to vector16 that nothing passes shared memory. Each thread works one sample of its item
// out and hands it round by shuffles, and the next point is loaded before it is needed. One block stays on each
// multiprocessor and works on neighbouring queries one after the other: they find each other's pixels in the L1, and no
// warp waits for its first point but once. Where the items are few, four groups of threads share the samples of an
// item, each group whole levels. All fused steps may be asked for, and an output of f32 beside 16-bit values.
#include <algorithm>

#include "ops/ms_deform_attn/forward/gpu/shuffled_samples/threads.hpp"
#include "ops/ms_deform_attn/forward/shared/chosen_level.cuh"
#include "ops/ms_deform_attn/forward/shared/fused_corners.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::shuffled_samples {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

/// A unit is what a warp works on at a time: 2^query_bits queries of 2^head_bits heads of an image.
struct Deal {
  unsigned units = 0;
  unsigned units_of_heads = 0;  // that have the same heads of the same image
  unsigned head_groups = 0;     // of an image
  unsigned chunk = 0;           // neighbouring units, which a block takes before it goes on as many blocks further
  int query_bits = 0;
  int head_bits = 0;
  unsigned strip = 0;  // queries of a strip of kStripColumns columns; 0: queries in their order
  unsigned width = 0;  // columns of all strips
};

/// Queries that are the pixels of a single level are taken in strips of so many columns from the top to the bottom.
constexpr unsigned kStripColumns = 8;

/// Points of the longest of the groups' levels.
template <int group_bits>
__device__ __forceinline__ int most_points(const Call& call, int first) {
  std::int64_t most = 0;
#pragma unroll
  for (int group = 0; group < 1 << group_bits; ++group) most = max(most, call.levels[first + group].points);
  return static_cast<int>(most);
}

/// A point as it lies in memory: a conversion would wait for it. Of two 16-bit coordinates both are in `x`; those of
/// f64 are f32 here.
struct StoredPoint {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t weight = 0;
};

/// Types are known at run time: a thread loads few points, so they need no kernel each. A location is one load.
__device__ __forceinline__ StoredPoint load_stored(const Call& call, std::int64_t location_at, std::int64_t weight_at) {
  const auto as_f32 = [](const PointRows& rows, std::int64_t at) {
    return __float_as_uint(static_cast<float>(__ldg(static_cast<const double*>(rows.data) + at)));
  };
  StoredPoint made;
  if (call.locations.dtype == DType::f32) {
    const float2 pair = load_pair<float>(call.locations.data, location_at);
    made.x = __float_as_uint(pair.x);
    made.y = __float_as_uint(pair.y);
  } else if (call.locations.dtype == DType::f64) {
    made.x = as_f32(call.locations, location_at);
    made.y = as_f32(call.locations, location_at + 1);
  } else {
    made.x =
        __ldg(reinterpret_cast<const std::uint32_t*>(static_cast<const __half*>(call.locations.data) + location_at));
  }
  if (call.weights.dtype == DType::f32)
    made.weight = __ldg(static_cast<const std::uint32_t*>(call.weights.data) + weight_at);
  else if (call.weights.dtype == DType::f64)
    made.weight = as_f32(call.weights, weight_at);
  else
    made.weight = __ldg(static_cast<const std::uint16_t*>(call.weights.data) + weight_at);
  return made;
}

/// The two 16-bit values of a word, or the f32 of two words.
__device__ __forceinline__ float2 widen_pair(DType dtype, std::uint32_t first, std::uint32_t second) {
  if (dtype == DType::f16) return device::unpack<__half>(first);
  if (dtype == DType::bf16) return device::unpack<__nv_bfloat16>(first);
  return {__uint_as_float(first), __uint_as_float(second)};
}

template <class Value, int lane_bits, int group_bits, int threads, class AnyCall>
__global__ void __launch_bounds__(threads, group_bits == 0 ? 1 : kSplitBlocksPerMultiprocessor)
    kernel(const __grid_constant__ AnyCall call, const __grid_constant__ Deal deal) {
  constexpr int kLanes = 1 << lane_bits;
  constexpr int kGroups = 1 << group_bits;
  // Samples under way per thread: with two, code for other GPUs than Hopper spills.
  constexpr int kBatch = std::min(group_bits != 0 ? 4 : device::kOnHopper && threads < kManyThreads ? 2 : 1, kLanes);
  device::wait_for_previous_kernel();
  const int lane = device::lane_index();
  const int part = lane & (kLanes - 1);
  const int group = lane >> lane_bits & (kGroups - 1);
  const auto slot = static_cast<unsigned>(lane) >> (lane_bits + group_bits);  // which item of the unit
  const int pixel = static_cast<int>(call.value.row / device::kPerVector<Value>);
  const auto unit_at = [&](unsigned step) {
    return (step / deal.chunk * gridDim.x + blockIdx.x) * deal.chunk + step % deal.chunk;
  };
  unsigned step = threadIdx.x / device::kWarpThreads;
  unsigned unit = unit_at(step);
  if (unit >= deal.units) return;

  const uint4* map = nullptr;
  void* output = nullptr;  // null: stores nothing
  std::int64_t location_row = 0;
  std::int64_t weight_row = 0;
  [[maybe_unused]] std::int64_t reference_row = 0;
  [[maybe_unused]] int image = 0;
  const auto item_of = [&](unsigned number) -> Item {
    const unsigned heads = number / deal.units_of_heads;
    unsigned query = (number - heads * deal.units_of_heads << deal.query_bits) + (slot >> deal.head_bits);
    if (threads == kManyThreads && deal.strip != 0) {
      const unsigned strip = query / deal.strip;
      const unsigned of_strip = query - strip * deal.strip;
      query = of_strip / kStripColumns * deal.width + strip * kStripColumns + of_strip % kStripColumns;
    }
    return {heads / deal.head_groups, query,
            (heads % deal.head_groups << deal.head_bits) + (slot & ((1u << deal.head_bits) - 1))};
  };
  const auto move_to = [&](unsigned number) {
    Item item = item_of(number);
    const bool stores = item.q < call.queries && group == 0;
    item.q = min(item.q, call.queries - 1);
    map = reinterpret_cast<const uint4*>(first_pixel<Value>(call, item)) + part;
    with_output<Value>(call, [&]<class Output>(Output*) {
      output = stores ? output_channel<Output>(call, item, part * device::kPerVector<Value>) : nullptr;
    });
    location_row = call.locations.row(item.n, item.q, item.m);
    weight_row = call.weights.row(item.n, item.q, item.m);
    if constexpr (kFused<AnyCall>) {
      reference_row = call.reference.row(item.n, item.q, 0);
      image = static_cast<int>(item.n);
    }
  };
  [[maybe_unused]] Origin origin;
  const auto load = [&](const ChosenLevel& level, [[maybe_unused]] int l, int p) -> StoredPoint {
    if constexpr (kFused<AnyCall>)
      if (p < level.points)
        origin = origin_of(call, reference_row, l, level.height, level.pitch - call.border, level.points);
    if (p >= level.points) return {};
    return load_stored(call, location_row + level.location_at + p * call.locations.point,
                       weight_row + level.weight_at + p * call.weights.point);
  };

  float sum[device::kPerVector<Value>] = {};
  [[maybe_unused]] float total = 0;  // of the weights this thread has seen
  bool finite = true;
  int l0 = 0;
  int p0 = 0;
  move_to(unit);
  StoredPoint stored = load(choose_level<Value, kGroups>(call.levels, group), group, part);
  for (bool more = true; more;) {
    const float2 location = widen_pair(call.locations.dtype, stored.x, stored.y);
    Point3 point{location.x, location.y, widen_pair(call.weights.dtype, stored.weight, 0).x};
    // Chosen twice and not kept, for the registers' sake.
    const ChosenLevel level = choose_level<Value, kGroups>(call.levels + l0, group);
    const int left = most_points<group_bits>(call, l0) - p0;
    if constexpr (kFused<AnyCall>) {
      if (call.softmax && p0 + part >= level.points) point.weight = kNoLogit;
      point = fuse<Value>(call, point, origin);
      total += point.weight;
    }
    Corners corners = corners_of(point, level.height, level.pitch - call.border, call.nearest);
    const int offset = level.start + (corners.row * level.pitch + corners.column) * pixel;
    const auto right = [&] { return level.pitch - call.border > 1 ? pixel : 0; };  // a variable would spill
    const int down = level.height > 1 ? level.pitch * pixel : 0;
    if constexpr (kFused<AnyCall>)
      drop_masked(call, image, level.first_pixel, level.pitch, right() != 0 ? 1 : 0, down != 0 ? level.pitch : 0,
                  corners);
    const uint4* from_map = map;
    void* to = output;

    p0 += kLanes;
    bool summed = false;
    if (left <= kLanes) {
      p0 = 0;
      l0 += kGroups;
      summed = l0 >= call.level_count;
      if (summed) {
        l0 = 0;
        unit = unit_at(step += blockDim.x / device::kWarpThreads);
        more = unit < deal.units;
        if (more) move_to(unit);
      }
    }
    if (more) stored = load(choose_level<Value, kGroups>(call.levels + l0, group), l0 + group, p0 + part);

#pragma unroll
    for (int i0 = 0; i0 < kLanes; i0 += kBatch) {
      if (i0 >= left) break;
      uint4 corner[kBatch][4];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const uint4* from = from_map + __shfl_sync(0xffffffffu, offset, i0 + i, kLanes);
        corner[i][0] = device::load_16(from);
        corner[i][1] = device::load_16(from + right());
        corner[i][2] = device::load_16(from + down);
        corner[i][3] = device::load_16(from + down + right());
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k)
          device::add_scaled_16<Value>(sum, corner[i][k], __shfl_sync(0xffffffffu, corners.weight[k], i0 + i, kLanes));
    }
    if (!summed) continue;

    if (!more) device::let_next_kernel_start();  // not before: its blocks would take the places of this one's last ones
#pragma unroll
    for (int round = 0; round < group_bits; ++round)
#pragma unroll
      for (float& one : sum) one += __shfl_xor_sync(0xffffffffu, one, 1 << (lane_bits + round));
    if constexpr (kFused<AnyCall>) {
      const float scale = scale_of<1 << (lane_bits + group_bits)>(call, total);
#pragma unroll
      for (float& one : sum) one *= scale;
      total = 0;
    }
    if (to != nullptr)
      with_output<Value>(call, [&]<class Output>(Output*) {
        constexpr int kEach = device::kPerVector<Output>;
#pragma unroll
        for (int i = 0; i < device::kPerVector<Value>; i += kEach)
          device::store_16_streaming(static_cast<Output*>(to) + i,
                                     device::pack_16<Output>(*reinterpret_cast<const float(*)[kEach]>(sum + i)));
      });
    finite = finite && all_finite(sum);
#pragma unroll
    for (float& one : sum) one = 0;
  }
  if (finite) return;
  // Rare, and here for the registers' sake: what this thread stored and is not finite, by the definition.
#pragma unroll 1
  for (step = threadIdx.x / device::kWarpThreads; (unit = unit_at(step)) < deal.units;
       step += blockDim.x / device::kWarpThreads) {
    move_to(unit);
    if (output == nullptr) continue;
    with_output<Value>(call, [&]<class Output>(Output*) {
#pragma unroll
      for (int i = 0; i < device::kPerVector<Value>; ++i) sum[i] = device::widen(static_cast<const Output*>(output)[i]);
      if (!all_finite(sum))
        store_exactly<Value, AnyType, Output>(call, item_of(unit), part * device::kPerVector<Value>);
    });
  }
}

/// log2 of the heads that neighbouring threads work on: their pixels fill 128 bytes, so that eight threads read
/// different banks of the L1 whatever the lines.
int bank_bits(const Problem& problem, int lane_bits) {
  int bits = 0;
  while (lane_bits + bits < 3 && problem.heads % (2 << bits) == 0) ++bits;
  return bits;
}

/// Blocks of up to `threads` threads, one of them on each multiprocessor, whose items are of maps that fit in half of
/// the L2: all take a chunk of these before they go on to others. With groups as many blocks as there is work for.
LaunchShape deal_units(const Problem& problem, int thread_bits, int head_bits, int threads, Deal& deal) {
  const bool split = threads == kSplitThreads;
  deal.query_bits = 5 - thread_bits - head_bits;
  deal.head_bits = head_bits;
  deal.units_of_heads = static_cast<unsigned>((problem.queries + (1 << deal.query_bits) - 1) >> deal.query_bits);
  deal.head_groups = static_cast<unsigned>(problem.heads >> head_bits);
  deal.units = static_cast<unsigned>(deal.units_of_heads * deal.head_groups * problem.batch);
  const Level& level = problem.levels[0];
  if (threads == kManyThreads && problem.levels.size() == 1 && problem.queries == level.height * level.width &&
      level.width % kStripColumns == 0) {
    deal.strip = static_cast<unsigned>(level.height) * kStripColumns;
    deal.width = static_cast<unsigned>(level.width);
  }
  const DeviceInfo& device = device_info(problem.device);
  const auto per = [](std::int64_t count, std::int64_t each) { return (count + each - 1) / each; };
  std::int64_t warps = threads / device::kWarpThreads;
  deal.chunk = static_cast<unsigned>(warps);
  if (!split) {
    const std::int64_t map = problem.length * problem.channels * size_of(problem.value_dtype) << head_bits;
    const std::int64_t maps = std::max<std::int64_t>(device.l2_bytes / 2 / std::max<std::int64_t>(map, 1), 1);
    const std::int64_t rounds = per(deal.units, maps * deal.units_of_heads);
    deal.chunk = static_cast<unsigned>(per(deal.units, rounds * device.multiprocessors));
    const std::int64_t steps = rounds * deal.chunk;  // of a block: as many for each of its warps
    warps = per(steps, per(steps, threads / device::kWarpThreads));
  }
  const std::int64_t blocks = per(deal.units, deal.chunk);
  return {.grid = static_cast<unsigned>(split ? blocks : std::min<std::int64_t>(blocks, device.multiprocessors)),
          .block = static_cast<unsigned>(warps * device::kWarpThreads)};
}

/// Items of a multiprocessor from which on more warps, with one sample under way each, are faster.
constexpr std::int64_t kManyItems = 512;

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_vector_rows(problem); !support) return support;
  if (problem.batch * problem.heads > INT32_MAX / (problem.queries + device::kWarpThreads))
    return Support::no("needs less than 2^31 queries times heads");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  Work work(kSite, problem.device);
  const int bits = lane_bits(problem);
  const bool split = config.groups > 1;
  const bool many =
      problem.batch * problem.queries * problem.heads >= kManyItems * device_info(problem.device).multiprocessors;
  const auto add = [&]<class AnyCall>(const AnyCall& call) {
    with_value_type(problem.value_dtype, [&]<class Value>(Value*) {
      with_constant<0, 5>(bits, [&]<int lane_bits>(Constant<lane_bits>) {
        const auto add_of = [&]<int group_bits, int threads>() {
          Deal deal;
          LaunchShape shape =
              deal_units(problem, bits + group_bits, split ? 0 : bank_bits(problem, bits), threads, deal);
          shape.dependent = arguments.dependent_launch;
          work.add(kernel<Value, lane_bits, group_bits, threads, AnyCall>, shape, call, deal);
        };
        if constexpr (lane_bits <= kMostSplitLaneBits)
          if (split) return add_of.template operator()<kSplitBits, kSplitThreads>();
        if constexpr (lane_bits == (sizeof(Value) == 4 ? 3 : 2) && !kFused<AnyCall>)  // 32 channels
          if (many) return add_of.template operator()<0, kManyThreads>();
        add_of.template operator()<0, kFused<AnyCall> ? kFusedThreads : kThreads>();
      });
    });
  };
  if (supports_plain(problem))
    add(forward_call(problem, arguments));
  else
    add(fused_call(problem, arguments));
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::shuffled_samples
