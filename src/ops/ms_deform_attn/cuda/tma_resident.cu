// Version 7: adds to vector16 that the last two of four levels of an image and head stay in shared memory, where the
// copy engine brings them, and that the tensor cores do the sums: bilinear times attention weights as two 16-bit
// halves each, sums in f32. Pixels of the first two levels come by loads of 128 bytes: two pixels of a row.
#include "ops/ms_deform_attn/cuda/level_map.cuh"
#include "ops/ms_deform_attn/cuda/resident_sums.cuh"

namespace tmaops::ops::ms_deform_attn::tma_resident {
namespace {

using namespace resident;  // NOLINT(google-build-using-namespace): the room's own parts

/// Adds both sums and stores the queries of a unit. Threads lane / 8 = lane % 4 hold a piece of each half of a query's
/// channels.
template <class Value, class Point>
__device__ __forceinline__ void store_unit(const Call& call, const Unit& unit, int lane, const FarSums& far,
                                           const NearSums& near, unsigned char* staging) {
  // Four neighbouring channels of every piece lie together, those of the other four in other banks: neither the writes
  // of all threads nor the reads of those that store meet a bank twice.
  constexpr int kFourBytes = kUnitQueries * 2 * 16;
  const auto four = [&](int half, int upper, int query, int first) {
    return staging + (2 * half + upper) * (kFourBytes + 16) + (2 * query + first) * 16;
  };
  const int query = lane & 3;
  __syncwarp();  // the weights have been read
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int first = 0; first < 2; ++first)
      reinterpret_cast<float*>(four(half, lane >> 4, query, first))[lane >> 2 & 3] =
          (near.of[half][2 * first] + near.of[half][2 * first + 1]) * (1 / kScale);
  __syncwarp();
  const Item item{unit.n, std::int64_t{unit.q} + query, unit.m};
  if (lane >> 3 != query || item.q >= call.queries) return;
  const int first = lane >> 2 & 1;
  const int piece = 8 * (first ^ (query & 1));
  auto* to_piece =
      static_cast<Value*>(const_cast<void*>(call.output.data)) + (call.output.at(item.n, item.q, item.m) + piece);
  device::keep(to_piece);  // the compiler would rather work it out for each half
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum[8];
#pragma unroll
    for (int c = 0; c < 8; ++c)
      sum[c] = fmaf(far.of[c / 2][c % 2 * 2 + half], 1 / kScale,
                    reinterpret_cast<const float*>(four(half, c / 4, query, first))[c % 4]);
    if (!all_finite(sum)) sum_exactly<Value, Point>(call, item, 16 * half + piece, sum);
    device::store_16_streaming(to_piece + 16 * half, pack_vector<Value>(sum));
  }
}

constexpr int kUnderWay = 3;  // pairs of samples of far levels whose pixels are asked for at once

template <class Value, class Point, int passes>
__global__ void __launch_bounds__(kThreads, 1)
    kernel(const __grid_constant__ Call call, const __grid_constant__ Near near, const __grid_constant__ Order order) {
  Storage& shared = device::dynamic_shared<Storage>();
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

  unsigned char* staging = shared.staging[warp].bytes;
  const std::uint32_t staging_address = device::shared_address(staging);
  const auto pixel_bytes = static_cast<std::uint32_t>(call.value.row * static_cast<std::int64_t>(sizeof(Value)));
  const SlotPlace slot(call, near, lane % kSlots);
  const FarLane far_lane(lane, pixel_bytes, staging_address);
  const NearLane near_lane(lane, near, device::shared_address(planes(shared)), staging_address);
  unsigned char* mine = staging + lane / kSlots * kQueryStagingBytes + lane % kSlots * 16;

  constexpr int kLoaded = sizeof(Point) == 4 ? 2 : 2 * passes;  // all points of a unit at once where registers allow
  Points<Point, kLoaded> points;
  Unit next = segments.unit(0);
  PointColumns<Point> columns(call, next, lane % kSlots, 2 * passes);
  const auto load_points = [&](unsigned number) {
    next = segments.unit(number);
    points.load(call, columns, next.q + lane / kSlots, 0);
  };
  // Leaves segments that end before the unit.
  const auto go_to = [&](unsigned number) {
    while (segments.valid() && number >= segments.end()) leave(near, shared, segments, lane);
    if (!segments.valid()) return;
    columns = {call, segments.unit(number), lane % kSlots, 2 * passes};
    load_points(number);
  };
  unsigned number = draw(shared, lane);
  go_to(number);
  while (segments.valid()) {
    const auto* map = reinterpret_cast<const unsigned char*>(static_cast<const Value*>(call.value.data) +
                                                             call.value.at(next.n, 0, next.m));
    const unsigned q = next.q;
    FarSums far;
    NearSums close;
    bool loaded = false;
    // Unrolled, far samples of the second pass come between near ones of the first; with f32 points that spills.
#pragma unroll(sizeof(Point) == 4 ? 1 : passes)
    for (int pass = 0; pass < passes; ++pass) {
      const Point3 pair[2] = {points.at(2 * pass % kLoaded), points.at(2 * pass % kLoaded + 1)};
      Spot spots[2];
      const std::uint32_t pixels = locate_samples(slot, pair, spots);
      FarPixels under_way[kUnderWay];
      const auto load = [&](int s) {
        const DeviceLevel& level = call.levels[s * kLevels / kSlots];
        load_far(map, level, pixel_bytes, static_cast<std::uint32_t>(level.value_at * static_cast<int>(sizeof(Value))),
                 far_lane, __shfl_sync(kAll, pixels, s, kSlots), under_way[s % kUnderWay]);
      };
      __syncwarp();  // the staging has been read
      write_weights<Value>(pair, spots, lane % kSlots < kFarSlots, mine);
      if (pass + 1 < passes) {
        if (kLoaded == 2) points.load(call, columns, next.q + lane / kSlots, 2 * (pass + 1));
      } else {
        number = draw(shared, lane);
        loaded = number < segments.end();
        if (loaded) load_points(number);
      }
      __syncwarp();
#pragma unroll
      for (int s = 0; s < kUnderWay - 1; ++s) load(s);
#pragma unroll
      for (int s = 0; s < kFarSlots; ++s) {
        if (s + kUnderWay - 1 < kFarSlots) load(s + kUnderWay - 1);
        add_far<Value>(far, far_lane, s, under_way[s % kUnderWay]);
      }
      wait_filled(shared, segments);
#pragma unroll
      for (int s = kFarSlots; s < kSlots; ++s) add_near<Value>(close, near_lane, near.plane_bytes, s, pixels);
    }
    // The next unit is of the same segment, or not known yet.
    store_unit<Value, Point>(call, {next.n, q, next.m}, lane, far, close, staging);
    if (!loaded) go_to(number);
  }
  device::let_next_kernel_start();
}

/// Calls fn(value type, point type) for the types that the kernels are made for.
template <class Fn>
void with_resident_types(const Problem& problem, const Fn& fn) {
  with_types(problem, [&](auto* value, auto* point) {
    using Value = std::remove_pointer_t<decltype(value)>;
    using Point = std::remove_pointer_t<decltype(point)>;
    if constexpr (sizeof(Value) == 2 && !std::is_same_v<Point, AnyType>) fn(value, point);
  });
}

struct Prepared : cuda::Prepared {
  Near near{};
  Order order{};
  unsigned blocks = 0;
};

/// Pixels from row to row in shared memory.
std::int64_t near_pitch(const Level& level) { return level.width + (6 - level.width % 4) % 4; }

/// Shared memory of the near levels in one plane.
std::int64_t plane_bytes(const Problem& problem) {
  std::int64_t pixels = 0;
  for (std::size_t l = kFarLevels; l < problem.levels.size(); ++l)
    pixels += (near_pitch(problem.levels[l]) * problem.levels[l].height + 3) / 4 * 4;
  return pixels * kPixelBytes;
}

constexpr std::int64_t kMaxPlaneBytes = 56 * 1024;
/// Maps of one round that L2 keeps beside the points and the output.
constexpr std::int64_t kRoundBytes = 32 << 20;

unsigned rounds(const Problem& problem) {
  const std::int64_t map = problem.length * kChannels * 2;
  const std::int64_t maps = problem.batch * problem.heads;
  const std::int64_t together = std::max<std::int64_t>(kRoundBytes / map, 1);
  return static_cast<unsigned>((maps + together - 1) / together);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo& device) {
  if (Support support = supports_vectors(problem, device); !support) return support;
  if (problem.value_dtype == DType::f32) return Support::no("needs f16 or bf16 values");
  if (problem.channels != kChannels) return Support::no("needs 32 channels");
  if (problem.location_dtype != problem.weight_dtype || problem.location_dtype == DType::f64)
    return Support::no("needs locations and weights of one type of at most 32 bits");
  if (problem.sampling != Sampling::bilinear) return Support::no("needs bilinear sampling");
  if (problem.levels.size() != kLevels) return Support::no("needs four levels");
  if (!problem.positive_strides) return Support::no("needs value strides above 0");
  for (const Level& level : problem.levels) {
    if (level.points != problem.levels[0].points || (level.points != 4 && level.points != 8))
      return Support::no("needs four or eight points in each level");
    if (level.height < 2 || level.width < 2) return Support::no("needs levels of at least two pixels a side");
    if (level.height * near_pitch(level) > UINT16_MAX) return Support::no("needs levels of less than 65,536 pixels");
  }
  for (std::size_t l = kFarLevels; l < kLevels; ++l)
    if (problem.levels[l].height > 256 || near_pitch(problem.levels[l]) > 256)
      return Support::no("needs a third and a fourth level of at most 254 pixels a side");
  if (plane_bytes(problem) > kMaxPlaneBytes)
    return Support::no("needs a third and a fourth level of at most " + std::to_string(2 * kMaxPlaneBytes) +
                       " bytes in shared memory, these take " + std::to_string(2 * plane_bytes(problem)));
  if (problem.map_bytes > INT32_MAX) return Support::no("needs maps of an image and head that span less than 2 GiB");
  if (problem.batch * problem.heads > INT32_MAX / (problem.queries + kUnitQueries))
    return Support::no("needs less than 2^31 queries, of all images and heads");
  return Support::yes();
}

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  auto prepared = std::make_shared<Prepared>();
  static_cast<cuda::Prepared&>(*prepared) = *prepare_call(problem, arguments);
  if (prepared->call.items == 0) return prepared;
  Near& near = prepared->near;
  near.plane_bytes = static_cast<unsigned>(plane_bytes(problem));
  int pixels = 0;
  for (int l = 0; l < kNearLevels; ++l) {
    const Level& level = problem.levels[static_cast<std::size_t>(kFarLevels + l)];
    near.maps[l] = level_map(problem, arguments.value, level, {kPlaneChannels, 1, near_pitch(level), level.height, 1});
    near.first[l] = pixels;
    near.pitch[l] = static_cast<int>(near_pitch(level));
    const int box = near.pitch[l] * static_cast<int>(level.height);
    near.fill_bytes += 2 * static_cast<unsigned>(box * kPixelBytes);
    pixels += (box + 3) / 4 * 4;
  }
  prepared->order = {.units_per_map = static_cast<unsigned>((problem.queries + kUnitQueries - 1) / kUnitQueries),
                     .maps = static_cast<unsigned>(problem.batch * problem.heads),
                     .rounds = rounds(problem)};
  prepared->blocks = static_cast<unsigned>(device_info(problem.device).multiprocessors);
  return prepared;
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const auto& prepared = *static_cast<const Prepared*>(arguments.prepared.get());
  const Call& call = prepared.call;
  if (call.items == 0) return;
  const CurrentDevice current(problem.device.index);
  const LaunchConfig config{.grid = dim3(prepared.blocks),
                            .block = dim3(kThreads),
                            .shared_bytes = kPlanesAt + static_cast<int>(2 * prepared.near.plane_bytes),
                            .dependent = arguments.dependent_launch};
  with_resident_types(problem, [&](auto* value, auto* point) {
    using Value = std::remove_pointer_t<decltype(value)>;
    using Point = std::remove_pointer_t<decltype(point)>;
    if (problem.levels[0].points == 4)
      launch_kernel<kernel<Value, Point, 1>>("ms_deform_attn: tma_resident", config, stream, call, prepared.near,
                                             prepared.order);
    else
      launch_kernel<kernel<Value, Point, 2>>("ms_deform_attn: tma_resident", config, stream, call, prepared.near,
                                             prepared.order);
  });
}

}  // namespace tmaops::ops::ms_deform_attn::tma_resident
