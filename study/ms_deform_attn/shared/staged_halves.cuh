// The published kernels with shared memory: a warp brings the tiles of 2 x 2 pixels of its eight queries to shared
// memory, level by level, its 32 threads one tile after the other, and then adds them up, four threads per query.
#pragma once

#include "device/shared_memory.cuh"
#include "study/ms_deform_attn/shared/half_samples.cuh"
#include "study/ms_deform_attn/shared/staged_rows.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

inline constexpr int kStagedQueries = 8;  // of a warp
inline constexpr int kOwnPoints = 2;      // of a level: what each of the four threads of a query works out

template <Padding padding>
struct HalfStage {
  alignas(16) std::uint32_t words[StagedRows<padding>::kWords];
};

/// Points 2 * part and 2 * part + 1 of a level.
struct OwnSamples {
  HalfSample of[kOwnPoints];
};

/// What a thread needs to know of its query.
struct StagedItem {
  Item item{};
  std::int64_t number = 0;  // may lie beyond the last item; `item` is the last one then
  std::int64_t map = 0;     // first element of the image
  std::int64_t locations = 0;
  std::int64_t weights = 0;
  int part = 0;

  __device__ __forceinline__ StagedItem(const Call& call, std::int64_t first)
      : item(item_at(call, min(first + device::lane_index() / 4, call.items - 1))),
        number(first + device::lane_index() / 4),
        map(call.value.at(item.n, 0, item.m)),
        locations(call.locations.row(item.n, item.q, item.m)),
        weights(call.weights.row(item.n, item.q, item.m)),
        part(device::lane_index() % 4) {}
};

__device__ __forceinline__ OwnSamples own_samples(const Call& call, const DeviceLevel& level, const StagedItem& item) {
  HalfPoint points[kOwnPoints];
  const int p = kOwnPoints * item.part;
  load_half_points(call, item.locations + level.location_at + p * call.locations.point,
                   item.weights + level.weight_at + p * call.weights.point, points);
  OwnSamples samples;
#pragma unroll
  for (int i = 0; i < kOwnPoints; ++i) samples.of[i] = half_sample(call, level, points[i]);
  return samples;
}

/// Brings the 64 tiles of a level: copy(to, from, there) for 8 bytes each, which become zeros unless `there`.
template <Padding padding, class Copy>
__device__ __forceinline__ void stage_level(const Call& call, const DeviceLevel& level, const StagedItem& item,
                                            const OwnSamples& samples, HalfStage<padding>& stage, const Copy& copy) {
  using Rows = StagedRows<padding>;
  const int lane = device::lane_index();
  const int corner = Rows::written_corner(lane);
  const int right = pixel_pieces(call);
  const int step = (corner % 2 != 0 ? right : 0) + (corner / 2 != 0 ? level.pitch * right : 0);
#pragma unroll 1
  for (int q = 0; q < Rows::kQueries; ++q) {
    const auto* map = static_cast<const __half*>(call.value.data) + __shfl_sync(0xffffffffu, item.map, 4 * q);
#pragma unroll
    for (int p = 0; p < kHalfPoints; ++p) {
      const HalfSample& own = samples.of[p % kOwnPoints];
      const int from = 4 * q + p / kOwnPoints;
      const int offset = __shfl_sync(0xffffffffu, own.offset, from) + step;
      const bool there = (__shfl_sync(0xffffffffu, own.inside, from) >> corner & 1u) != 0;
      const auto* words =
          reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const uint4*>(map) + (there ? offset : 0));
      copy(stage.words + Rows::at(p, corner, q) + Rows::written_word(lane), words + Rows::written_word(lane), there);
    }
  }
}

/// Adds the tiles of a level.
template <Padding padding>
__device__ __forceinline__ void add_stage(__half2 (&sum)[4], const OwnSamples& samples,
                                          const HalfStage<padding>& stage) {
  const int lane = device::lane_index();
#pragma unroll
  for (int p = 0; p < kHalfPoints; ++p) {
    const HalfSample& own = samples.of[p % kOwnPoints];
    HalfSample sample;
    sample.upper = as_halves(__shfl_sync(0xffffffffu, as_word(own.upper), p / kOwnPoints, 4));
    sample.lower = as_halves(__shfl_sync(0xffffffffu, as_word(own.lower), p / kOwnPoints, 4));
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const __half2 weight = corner_weight(sample, k);
#pragma unroll
      for (int word = 0; word < 4; ++word)
        sum[word] = __hfma2(weight, as_halves(stage.words[StagedRows<padding>::read(lane, p, k, word)]), sum[word]);
    }
  }
}

/// The whole kernel of blocks with one stage per warp.
template <Padding padding, int warps>
__device__ __forceinline__ void sum_staged(const Call& call, HalfStage<padding> (&stages)[warps]) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  HalfStage<padding>& stage = stages[device::warp_index()];
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * warps + device::warp_index()) * kStagedQueries;
  if (first >= call.items) return;
  const StagedItem item(call, first);
  __half2 sum[4] = {};
  for (int l = 0; l < call.level_count; ++l) {
    const OwnSamples samples = own_samples(call, call.levels[l], item);
    __syncwarp();  // all have read the level before
    stage_level(call, call.levels[l], item, samples, stage,
                [](std::uint32_t* to, const std::uint32_t* from, bool there) {
                  const uint2 two = there ? __ldg(reinterpret_cast<const uint2*>(from)) : make_uint2(0, 0);
                  to[0] = two.x, to[1] = two.y;
                });
    __syncwarp();
    add_stage(sum, samples, stage);
  }
  if (item.number < call.items) store_half_sums(call, item.item, item.part * device::kPerVector<__half>, sum);
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
