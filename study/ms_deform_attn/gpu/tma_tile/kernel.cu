// Version 3: adds to vector16 the copy engine: one tensor-map box of 2 x 2 pixels of a head per sample, through one
// rank-5 map per level, {channels, heads, width, height, images}. What lies outside the level arrives as zeros, which
// is the border rule, so the box stands where the sample does and the weights are the plain bilinear ones. Each warp
// has its own ring of stages and barriers; one thread per item works out the sample and issues its box.
#include "device/tensor_copy.cuh"
#include "ops/ms_deform_attn/forward/shared/level_map.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"
#include "study/ms_deform_attn/shared/exact_sums.cuh"

namespace tmaops::ops::ms_deform_attn::tma_tile {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kStages = 4;
constexpr int kBlocksPerMultiprocessor = 5;                 // 41 KB of shared memory each
constexpr int kStageBytes = device::kWarpThreads * 4 * 16;  // the boxes of a warp's items, whatever the channels

struct alignas(128) WarpRing {
  unsigned char boxes[kStages][kStageBytes];
  float4 weights[kStages][device::kWarpThreads];  // of each item
  device::Barrier full[kStages];
};
struct Storage {
  WarpRing warp[kWarps];
};

struct LevelMaps {
  tma::TensorMap level[kInlineLevels];
};

template <class Value, class Point>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    kernel(const __grid_constant__ Call call, const __grid_constant__ LevelMaps maps, const int lane_bits) {
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  WarpRing& ring = shared.warp[device::warp_index()];
  const int lane = device::lane_index();
  const int slot = lane >> lane_bits;
  const int part = lane & ((1 << lane_bits) - 1);
  const int item_bits = 5 - lane_bits;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kWarps + device::warp_index()) << item_bits;
  if (first >= call.items) return;
  if (lane == 0) {
    for (device::Barrier& barrier : ring.full) device::init_barrier(barrier, 1);
    device::fence_barrier_init();
  }
  __syncwarp();
  const std::int64_t number = first + slot;
  const Item item = item_at(call, min(number, call.items - 1));
  const std::int64_t locations = call.locations.row(item.n, item.q, item.m);
  const std::int64_t weights = call.weights.row(item.n, item.q, item.m);
  const int points = static_cast<int>(call.points);
  const int box_bytes = 64 << lane_bits;

  int issued_level = 0;
  const auto issue = [&](int s) {
    const int stage = s % kStages;
    if (lane == 0) device::arrive_expect_bytes(ring.full[stage], kStageBytes);
    __syncwarp();  // all have read the stage before it is filled again
    while (s >= call.levels[issued_level].last_point) ++issued_level;
    if (part != 0) return;
    const DeviceLevel& level = call.levels[issued_level];
    const std::int64_t p = s - (level.last_point - level.points);
    const Point3 point = load_point<Point>(call, locations + level.location_at + p * call.locations.point,
                                           weights + level.weight_at + p * call.weights.point);
    Side across;
    Side down;
    bool taken = locate(point.x, level.width, across);
    taken = locate(point.y, level.height, down) && taken;
    const float upper = taken ? point.weight * down.low : 0.0f;
    const float lower = taken ? point.weight * down.high : 0.0f;
    // A skipped sample takes a box that lies outside: zeros.
    ring.weights[stage][slot] =
        taken ? float4{upper * across.low, upper * across.high, lower * across.low, lower * across.high}
              : float4{0, 0, 0, 0};
    device::tensor_load(
        ring.boxes[stage] + slot * box_bytes, &maps.level[issued_level],
        {0, static_cast<int>(item.m), taken ? across.first : -2, taken ? down.first : -2, static_cast<int>(item.n)},
        ring.full[stage]);
  };

  for (int s = 0; s < min(points, kStages - 1); ++s) issue(s);
  float sum[device::kPerVector<Value>] = {};
  for (int s = 0; s < points; ++s) {
    if (s + kStages - 1 < points) issue(s + kStages - 1);
    const int stage = s % kStages;
    device::wait(ring.full[stage], static_cast<std::uint32_t>(s / kStages) & 1u, {"the boxes of a warp", stage});
    __syncwarp();  // the weights of the stage are written
    const float4 four = ring.weights[stage][slot];
    const float weight[4] = {four.x, four.y, four.z, four.w};
    const unsigned char* box = ring.boxes[stage] + slot * box_bytes + part * 16;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      device::add_scaled_16<Value>(sum, *reinterpret_cast<const uint4*>(box + (k << (lane_bits + 4))), weight[k]);
  }
  if (number < call.items) store_sums<Value, Point>(call, item, part * device::kPerVector<Value>, sum);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (Support support = supports_vectors(problem); !support) return support;
  if (problem.sampling != Sampling::bilinear) return Support::no("needs bilinear sampling: a box holds four pixels");
  if (lane_bits(problem) < 1 || problem.channels > 256)
    return Support::no("needs channels of 32 to 512 bytes, at most 256 of them");
  if (!problem.positive_strides) return Support::no("needs value strides above 0");
  if (problem.batch > INT32_MAX || problem.heads > INT32_MAX)
    return Support::no("needs less than 2^31 images and heads");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const Call call = forward_call(problem, arguments);
  Work work(kSite, problem.device);
  LevelMaps maps;
  for (std::size_t l = 0; l < problem.levels.size(); ++l)
    maps.level[l] = level_map(problem, arguments.value, problem.levels[l], {problem.channels, 1, 2, 2, 1});
  const int bits = lane_bits(problem);
  LaunchShape shape = one_group_each(call.items, kThreads, bits, arguments.dependent_launch);
  shape.shared_bytes = static_cast<int>(sizeof(Storage));
  with_types(problem, [&]<class Value, class Point>(Value*, Point*) {
    work.add(kernel<Value, Point>, shape, call, maps, bits);
  });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn::tma_tile
