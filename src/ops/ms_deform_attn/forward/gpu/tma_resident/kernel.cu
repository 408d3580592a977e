// Version 7: adds to vector16 that the last level of three, or the last two of four or five, of an image and head stay
// in shared memory, where the copy engine brings them, and that the tensor cores do the sums: bilinear times attention
// weights as two 16-bit halves each, sums in f32. Pixels of the others come by loads of 128 bytes: two pixels of a row.
#include "ops/ms_deform_attn/forward/gpu/tma_resident/lanes.cuh"
#include "ops/ms_deform_attn/forward/shared/level_map.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::tma_resident {
namespace {

/// Whether eight 16-bit values are finite. What only the rounding made infinite does not count as finite.
template <class Value>
__device__ __forceinline__ bool all_finite(const uint4& packed) {
  using Two = std::conditional_t<std::is_same_v<Value, __half>, __half2, __nv_bfloat162>;
  const std::uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
  const std::uint32_t zeros = 0;
  const Two times = *reinterpret_cast<const Two*>(&zeros);
  Two zero = times;
#pragma unroll
  for (const std::uint32_t& word : words) zero = __hfma2(*reinterpret_cast<const Two*>(&word), times, zero);
  return (*reinterpret_cast<const std::uint32_t*>(&zero) & 0x7fff7fffu) == 0;
}

/// Adds both sums and stores the queries of a unit. `output`: of query 0 of its image and head; `step`: bytes to the
/// next query.
template <class Value, class Point, class AnyCall>
__device__ __forceinline__ void store_unit(const AnyCall& call, const Unit& unit, Value* output, std::uint64_t step,
                                           int lane, const FarSums& far, const NearSums& near, unsigned char* staging) {
  // Four channels of a piece lie together. Those that all threads write at once make 128 bytes; those that are read at
  // once lie in different banks, for two queries at least.
  const auto four = [&](int half, int piece, int query, int upper) {
    return staging + (2 * half + piece) * (128 + 32) + (query >> 1) * 64 + upper * 32 + (query & 1) * 16;
  };
  __syncwarp();  // the weights have been read
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int piece = 0; piece < 2; ++piece)
      reinterpret_cast<float*>(four(half, piece, NearSums::query(lane), lane >> 4))[lane >> 2 & 3] =
          (near.of[half][2 * piece] + near.of[half][2 * piece + 1]) * (1 / kScale);
  __syncwarp();
  const int query = FarSums::query(lane);
  const unsigned q = unit.q + static_cast<unsigned>(query);
  if (!FarSums::held_by(lane) || q >= static_cast<unsigned>(call.queries)) return;
  const int half = FarSums::half(lane);
  const int piece = FarSums::piece(lane);
  float sum[8];
#pragma unroll
  for (int c = 0; c < 8; ++c)
    sum[c] =
        fmaf(far.channel(lane, c), 1 / kScale, reinterpret_cast<const float*>(four(half, piece, query, c / 4))[c % 4]);
  uint4 packed = device::pack_16<Value>(sum);
  const int channel = 16 * half + 8 * (piece ^ (query & 1));
  if (!all_finite<Value>(packed)) {  // each of the two ways spills where the other does not
    if constexpr (kOffsets<AnyCall>) return store_exactly<Value, Point>(call, {unit.n, q, unit.m}, channel);
    sum_exactly<Value, Point>(call, {unit.n, q, unit.m}, channel, sum);
    packed = device::pack_16<Value>(sum);
  }
  device::store_16_streaming(bytes_behind(output, q * step) + channel, packed);
}

/// A unit's points are worked out in `passes` of two points of a slot each. With five levels the second pass is the
/// fifth level.
template <class Value, class Point, int levels, int passes, class AnyCall>
__global__ void __launch_bounds__(kThreads, 1)
    kernel(const __grid_constant__ AnyCall call, const __grid_constant__ Near near, const __grid_constant__ Order order,
           const __grid_constant__ Steps steps) {
  constexpr bool kFifth = levels == 5;
  // The softmax needs the logits of all passes at once, and each pass takes it anew.
  static_assert(!kOffsets<AnyCall> || (!kFifth && (passes == 1 || sizeof(Point) == 2)));
  constexpr int kFar = far_levels(levels);
  constexpr int kFarSlots = kLevelSlots * kFar;
  constexpr int kSlotPoints = kFifth ? 2 : 2 * passes;
  // Setup: the block's run of units, and the levels of its first image and head.
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::wait_for_previous_kernel();
  const int lane = device::lane_index();
  const int warp = device::warp_index();
  const auto heads = static_cast<unsigned>(call.heads);
  Segments segments(order, heads);
  if (!segments.valid()) return;
  if (threadIdx.x == 0) {
    device::init_barrier(shared.full, 1);
    device::fence_barrier_init();
    shared.next = 0;
    shared.left = 0;
    fill(near, shared, segments.unit(0));
  }
  __syncthreads();

  // What the thread reads and writes.
  unsigned char* staging = shared.staging[warp].bytes;
  const std::uint32_t staging_address = device::shared_address(staging);
  const auto pixel_bytes = static_cast<std::uint32_t>(call.value.row * static_cast<std::int64_t>(sizeof(Value)));
  const SlotPlace slot(call, near, level_of<levels>(lane % kSlots), kFar);
  const auto to_fifth = kFifth ? PointColumns<Point, levels>::to_fifth(call, lane % kSlots)
                               : typename PointColumns<Point, levels>::Step{};
  FarLane far_lane(lane, staging_address);
  NearLane near_lane(lane, near, device::shared_address(planes(shared)), staging_address);
  if constexpr (passes > 1) near_lane.keep();  // with one pass a unit is slower for it
  unsigned char* mine = staging + lane / kSlots * kQueryStagingBytes + lane % kSlots * 16;

  constexpr int kLoaded = sizeof(Point) == 4 ? 2 : kSlotPoints;  // all points of a unit at once where registers allow
  Points<Point, kLoaded> points;
  unsigned next_q = 0;
  unsigned filled = 0;  // segment whose levels have come
  PointColumns<Point, levels> columns(call, segments.unit(0), lane % kSlots, kSlotPoints);
  Value* output = nullptr;
  const auto load_points = [&](unsigned number) {
    next_q = passes > 1 ? segments.first_query(number) : segments.unit(number).q;
    points.load(call, steps, columns, next_q + lane / kSlots, 0);
  };
  // Leaves segments that end before the unit, and points to the image and head of the unit's own.
  const auto go_to = [&](unsigned number) {
    while (segments.valid() && number >= segments.end()) leave(near, shared, segments, lane);
    if (!segments.valid()) return;
    const Unit unit = segments.unit(number);
    columns = {call, unit, lane % kSlots, kSlotPoints};
    far_lane.point_to(
        static_cast<const Value*>(call.value.data) + (call.value.at(unit.n, 0, unit.m) + call.levels[0].value_at), lane,
        pixel_bytes);
    output = static_cast<Value*>(const_cast<void*>(call.output.data)) + call.output.at(unit.n, 0, unit.m);
    load_points(number);
  };
  unsigned number = end_draw(begin_draw(shared, lane));
  // Units until one is of another segment, or not known: a loop whose pointers do not change.
  const auto sum_units = [&] {
    const FarLane my_far = far_lane;
    Value* const my_output = output;
    bool loaded = false;
    do {
      const unsigned q = next_q;
      FarSums far;
      NearSums close;

      // Unrolled, far samples of the second pass come between near ones of the first; with f32 points that spills.
#pragma unroll(sizeof(Point) == 4 ? 1 : passes)
      for (int pass = 0; pass < passes; ++pass) {
        // Two samples of the thread's slot: where they lie, and their weights for all threads.
        Point3 pair[2];
        if constexpr (!kOffsets<AnyCall>)
#pragma unroll
          for (int i = 0; i < 2; ++i) pair[i] = points.at(2 * pass % kLoaded + i);
        unsigned drawn = 0;
        if (pass + 1 == passes) drawn = begin_draw(shared, lane);
        Spot spots[2];
        const bool fifth = kFifth && pass == 1;
        const bool far_slot = !fifth && lane % kSlots < kFarSlots;
        const SlotPlace place = fifth ? SlotPlace(call, near, levels - 1, kFar) : slot;
        if constexpr (kOffsets<AnyCall>) {
          take_softmax(points, pass, lane % kSlots < kLevelSlots * levels, pair);
          const float2 start = points.start(call, place);
#pragma unroll
          for (Point3& point : pair) point = {point.x + start.x, point.y + start.y, point.weight};
        } else {
#pragma unroll
          for (Point3& point : pair)
            point = {fmaf(point.x, place.width, -0.5f), fmaf(point.y, place.height, -0.5f), point.weight};
        }
        const std::uint32_t pixels = locate_samples(place, pair, far_slot, spots);
        constexpr int kUnderWay =
            passes == 1 ? 3 : 2;  // pairs of samples of far levels whose pixels are asked for at once
        FarPixels under_way[kUnderWay];
        FarLane::Level far_level = my_far.start;
        // The pixels of two samples of a query: those of slot s.
        const auto load = [&](int s) {
          const DeviceLevel& level = call.levels[s / kLevelSlots];
          if (s > 0 && s % kLevelSlots == 0) far_level = my_far.level(steps.level[s / kLevelSlots]);
          load_far(far_level, pixel_bytes, static_cast<std::uint32_t>(level.pitch) * pixel_bytes,
                   __shfl_sync(kAll, pixels, s, kSlots), under_way[s % kUnderWay]);
        };
        __syncwarp();  // the staging has been read
        write_weights<Value>(pair, spots, far_slot, mine);
        if (pass + 1 < passes) {
          if (kFifth)
            points.load(call, steps, columns.moved(to_fifth), q + lane / kSlots, 0);
          else if (kLoaded == 2)
            points.load(call, steps, columns, q + lane / kSlots, 2 * (pass + 1));
        } else {
          number = end_draw(drawn);
          loaded = number < segments.end();
          if (loaded) load_points(number);
        }
        __syncwarp();
        if (!fifth) {
#pragma unroll
          for (int s = 0; s < kUnderWay - 1; ++s) load(s);
#pragma unroll
          for (int s = 0; s < kFarSlots; ++s) {
            if (s + kUnderWay - 1 < kFarSlots) load(s + kUnderWay - 1);
            add_far<Value>(far, my_far, s, under_way[s % kUnderWay]);
          }
        }
        if (filled != segments.index()) wait_filled(shared, segments);
        filled = segments.index();
        if (fifth) {
#pragma unroll
          for (int s = 0; s < kLevelSlots; ++s)
            add_near<Value>(close, near_lane, near.plane_bytes, s, kNearLevels - 1, pixels);
        } else {
#pragma unroll
          for (int s = kFarSlots; s < (kFifth ? kSlots : kLevelSlots * levels); ++s)
            add_near<Value>(close, near_lane, near.plane_bytes, s, s / kLevelSlots - kFar, pixels);
        }
      }
      // The next unit is of the same segment, or not known yet.
      const Unit first = segments.unit(0);
      store_unit<Value, Point>(call, {first.n, q, first.m}, my_output, steps.output, lane, far, close, staging);
    } while (loaded);
  };
  go_to(number);
  while (segments.valid()) {
    sum_units();
    go_to(number);
  }
  device::let_next_kernel_start();
}

/// Leaves the L1 92 KB (docs/findings/ms_deform_attn_resident.md, S17).
constexpr std::int64_t kMaxPlaneBytes = 72 * 1024;
/// A near level's pixels are passed on as bytes of a plane, in 16 bits.
constexpr std::int64_t kMostNearPixels = (std::int64_t{1} << 16) / kPixelBytes;
/// Maps of one round that L2 keeps beside the points and the output.
constexpr std::int64_t kRoundBytes = 32 << 20;

unsigned rounds(const Problem& problem) {
  const std::int64_t map = problem.length * kChannels * 2;
  const std::int64_t maps = problem.batch * problem.heads;
  const std::int64_t together = std::max<std::int64_t>(kRoundBytes / map, 1);
  return static_cast<unsigned>((maps + together - 1) / together);
}

/// Only with eight points: with four the samples of a query are too few, and strips lose more to shared memory, which
/// waits for hits in the L1, than they win (docs/findings/ms_deform_attn_resident.md, S11).
Strips strips_of(const Problem& problem) {
  const Level& level = problem.levels[0];
  const bool queries_are_pixels =
      problem.queries >= level.height * level.width && problem.queries <= problem.length;  // as far as shapes tell
  if (level.points != 8 || !queries_are_pixels || level.width % kUnitQueries != 0) return {};
  Strips strips;
  strips.width = static_cast<unsigned>(level.width);
  const unsigned across = strips.width / kUnitQueries;
  strips.units = across * static_cast<unsigned>(level.height);
  strips.whole = across / kStripUnits;
  strips.strip_units = kStripUnits * static_cast<unsigned>(level.height);
  strips.reciprocal = static_cast<unsigned>((std::uint64_t{1} << 32) / strips.strip_units + 1);
  strips.last_units = std::max(across % kStripUnits, 1u);
  return strips;
}

Near near_of(const Problem& problem, const ConstTensorView& value) {
  Near near;
  near.plane_bytes = static_cast<unsigned>(plane_bytes(problem));
  near.levels = static_cast<int>(problem.levels.size() - far_levels(problem));
  int pixels = 0;
  for (int l = 0; l < near.levels; ++l) {
    const Level& level = problem.levels[far_levels(problem) + static_cast<std::size_t>(l)];
    near.maps[l] = level_map(problem, value, level, {kPlaneChannels, 1, near_pitch(level), level.height, 1});
    near.first[l] = pixels;
    near.pitch[l] = static_cast<int>(near_pitch(level));
    const int box = near.pitch[l] * static_cast<int>(level.height);
    near.fill_bytes += 2 * static_cast<unsigned>(box * kPixelBytes);
    pixels += (box + 3) / 4 * 4;
  }
  return near;
}

Steps steps_of(const Problem& problem, const Arguments& arguments, const Call& call) {
  const auto bytes = [](std::int64_t elements, DType type) {
    return static_cast<std::uint64_t>(elements * static_cast<std::int64_t>(size_of(type)));
  };
  Steps steps{.locations = bytes(call.locations.query, problem.location_dtype),
              .weights = bytes(call.weights.query, problem.weight_dtype),
              .output = bytes(call.output.row, problem.value_dtype)};
  if (const ConstTensorView& points = arguments.reference_points; problem.fused()) {
    steps.reference_image = bytes(points.strides[0], points.dtype);
    steps.reference_query = bytes(points.strides[1], points.dtype);
    steps.reference_level = bytes(points.strides[2], points.dtype);
  }
  for (std::size_t l = 0; l < far_levels(problem); ++l)
    steps.level[l] = bytes(call.levels[l].value_at - call.levels[0].value_at, problem.value_dtype);
  return steps;
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_value_output(problem); !support) return support;
  if (Support support = supports_vector_rows(problem); !support) return support;
  if (problem.fused()) {
    if (!problem.softmax || problem.reference_components != 2 || problem.masked)
      return Support::no("takes a softmax with reference points of two components and no mask, or none of them");
    if (problem.levels.size() > 4 || (problem.levels[0].points != 4 && problem.location_dtype == DType::f32))
      return Support::no("takes a softmax in three or four levels, and of f32 logits of four points in each");
    if (!problem.dense_references)
      return Support::no("needs reference points of at most 32 bits, x and y next to each other");
    if (problem.location_dtype != problem.value_dtype && problem.location_dtype != DType::f32)
      return Support::no("needs offsets and logits of the value's type or f32");
  }
  if (problem.value_dtype == DType::f32) return Support::no("needs f16 or bf16 values");
  if (problem.channels != kChannels) return Support::no("needs 32 channels");
  if (problem.location_dtype != problem.weight_dtype || problem.location_dtype == DType::f64)
    return Support::no("needs locations and weights of one type of at most 32 bits");
  if (problem.sampling != Sampling::bilinear) return Support::no("needs bilinear sampling");
  if (problem.levels.size() < 3 || problem.levels.size() > 5) return Support::no("needs three to five levels");
  if (!problem.positive_strides) return Support::no("needs value strides above 0");
  for (const Level& level : problem.levels) {
    if (level.points != problem.levels[0].points || (level.points != 4 && level.points != 8))
      return Support::no("needs four or eight points in each level");
    if (problem.levels.size() != 4 && level.points != 4)
      return Support::no("needs four points in each of three or five levels");
    if (level.height < 2 || level.width < 2) return Support::no("needs levels of at least two pixels a side");
    if (level.height * std::max(level.pitch, near_pitch(level)) > UINT16_MAX)
      return Support::no("needs levels of less than 65,536 pixels");
  }
  for (std::size_t l = far_levels(problem); l < problem.levels.size(); ++l) {
    const Level& level = problem.levels[l];
    if (level.height > 256 || near_pitch(level) > 256)
      return Support::no("needs levels in shared memory of at most 254 pixels a side");
    if (level.height * near_pitch(level) > kMostNearPixels)
      return Support::no("needs levels in shared memory of at most " + std::to_string(kMostNearPixels) +
                         " pixels each");
  }
  if (plane_bytes(problem) > kMaxPlaneBytes)
    return Support::no("needs levels of at most " + std::to_string(2 * kMaxPlaneBytes) +
                       " bytes in shared memory, these take " + std::to_string(2 * plane_bytes(problem)));
  if (Support support = fits_shared_memory(shared_bytes(problem), device); !support) return support;
  if (problem.map_bytes > INT32_MAX) return Support::no("needs maps of an image and head that span less than 2 GiB");
  if (problem.batch * problem.heads > INT32_MAX / (problem.queries + kUnitQueries))
    return Support::no("needs less than 2^31 queries, of all images and heads");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const Call call = forward_call(problem, arguments);
  Work work(kSite, problem.device);
  const Order order{.units_per_map = static_cast<unsigned>((problem.queries + kUnitQueries - 1) / kUnitQueries),
                    .maps = static_cast<unsigned>(problem.batch * problem.heads),
                    .rounds = rounds(problem),
                    .strips = strips_of(problem)};
  const LaunchShape shape{.grid = static_cast<unsigned>(device_info(problem.device).multiprocessors),
                          .block = kThreads,
                          .shared_bytes = static_cast<int>(shared_bytes(problem)),
                          .dependent = arguments.dependent_launch};
  with_types(problem, [&]<class Value, class Point>(Value*, Point*) {
    const auto add = [&](auto* function, const auto& any_call) {
      work.add(function, shape, any_call, near_of(problem, arguments.value), order, steps_of(problem, arguments, call));
    };
    if constexpr (sizeof(Value) == 2 && !std::is_same_v<Point, AnyType>) {
      if constexpr (std::is_same_v<Point, Value> || std::is_same_v<Point, float>)
        if (problem.fused()) {
          const FusedCall offsets = fused_call(problem, arguments);
          if constexpr (std::is_same_v<Point, Value>)
            if (problem.levels[0].points == 8) return add(kernel<Value, Point, 4, 2, FusedCall>, offsets);
          return problem.levels.size() == 3 ? add(kernel<Value, Point, 3, 1, FusedCall>, offsets)
                                            : add(kernel<Value, Point, 4, 1, FusedCall>, offsets);
        }
      if (problem.levels.size() == 3)
        add(kernel<Value, Point, 3, 1, Call>, call);
      else if (problem.levels.size() == 5)
        add(kernel<Value, Point, 5, 2, Call>, call);
      else if (problem.levels[0].points == 4)
        add(kernel<Value, Point, 4, 1, Call>, call);
      else
        add(kernel<Value, Point, 4, 2, Call>, call);
    }
  });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::tma_resident
