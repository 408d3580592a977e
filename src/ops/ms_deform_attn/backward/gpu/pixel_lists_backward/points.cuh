// Gradients of locations and weights, which need no atomic additions, and the samples' entries in their lists.
#pragma once

#include "ops/ms_deform_attn/backward/gpu/pixel_lists_backward/lists.cuh"
#include "ops/ms_deform_attn/backward/shared/item_order.cuh"
#include "ops/ms_deform_attn/backward/shared/vectors.cuh"

namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

/// 2^lane_bits threads per item, 16 bytes of its channels each; one sample of the item per thread is worked out and
/// written by it, and its corners are read by all.
template <class Value, int lane_bits>
__global__ void __launch_bounds__(kBackwardThreads, sizeof(Value) == 2 && lane_bits > 2 ? 2 : 3)
    point_gradients(const __grid_constant__ BackwardCall call, const __grid_constant__ Lists lists,
                    const ItemOrder order) {
  constexpr int kLanes = 1 << lane_bits;
  // Four samples at a time (two and more blocks: slower), two where a bf16's conversion takes the registers.
  constexpr int kMostBits = std::is_same_v<Value, __nv_bfloat16> ? 1 : 2;
  constexpr int kBatchBits = lane_bits < kMostBits ? lane_bits : kMostBits;
  constexpr int kBatch = 1 << kBatchBits;
  const Call& in = call.inputs;
  const int part = device::lane_index() & (kLanes - 1);
  const auto items = static_cast<unsigned>(lists.images * in.queries * in.heads);
  const unsigned first = (blockIdx.x * kBackwardWarps + static_cast<unsigned>(device::warp_index())) << (5 - lane_bits);
  if (first >= items) return;
  const unsigned number = first + (static_cast<unsigned>(device::lane_index()) >> lane_bits);
  const bool there = number < items;
  Item item = order.item(in, min(number, items - 1));
  const auto local = static_cast<unsigned>((item.n * in.queries + item.q) * in.heads + item.m);
  item.n += lists.first_image;
  const int d = part * device::kPerVector<Value>;
  const auto* value =
      reinterpret_cast<const uint4*>(static_cast<const Value*>(in.value.data) + in.value.at(item.n, 0, item.m) + d);
  const int pixel_step = static_cast<int>(in.value.row / device::kPerVector<Value>);

  float gradient[device::kPerVector<Value>];
  load_gradient<Value>(call, item, d, gradient);

  const std::int64_t location_row = in.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = in.weights.row(item.n, item.q, item.m);
  for (int l = 0; l < in.level_count; ++l) {
    const DeviceLevel& level = in.levels[l];
    const uint4* map = value + level.value_at / device::kPerVector<Value>;
    const int points = static_cast<int>(level.points);
    for (int p0 = 0; p0 < points; p0 += kLanes) {
      const int mine = p0 + part;
      const bool taken = there && mine < points;
      Point3 own;
      Footprint where;
      if (taken) {
        own = load_point<AnyType>(in, location_row + level.location_at + mine * in.locations.point,
                                  weight_row + level.weight_at + mine * in.weights.point);
        where = footprint(own.x, own.y, level, in.nearest);
        if (where.inside == 0) own.weight = 0;
      }
      if (where.inside != 0 && lists.ranks != nullptr) {
        const unsigned list = lists.at(in, item, l, level.width, where.row, where.column);
        const unsigned rank = __ldg(lists.ranks + local * static_cast<unsigned>(in.points) +
                                    static_cast<unsigned>(level.last_point - points + mine));
        const Listed entry{static_cast<int>(item.q), own.weight, where.across, where.down};
        device::store_16(lists.samples + __ldg(&lists.ranges[list].x) + rank, *reinterpret_cast<const uint4*>(&entry));
      }
      if (call.locations.data == nullptr && call.weights.data == nullptr) continue;

      // The first corner inside the level, and whether the other column and row are one further.
      const int corner_at = where.inside == 0
                                ? 0
                                : (max(where.row, 0) * level.width + max(where.column, 0)) << 2 |
                                      (where.has(0) && where.has(1) || where.has(2) && where.has(3) ? 1 : 0) |
                                      (where.has(0) && where.has(2) || where.has(1) && where.has(3) ? 2 : 0);
      float c[4] = {0, 0, 0, 0};
#pragma unroll 1
      for (int b = 0; b < kLanes; b += kBatch) {
        if (p0 + b >= points) break;
        float sums[kBatch][4];
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          const int at = __shfl_sync(0xffffffffu, corner_at, b + i, kLanes);
          const uint4* from = map + static_cast<std::int64_t>(at >> 2) * pixel_step;
          const int right = (at & 1) != 0 ? pixel_step : 0;
          const int down = (at & 2) != 0 ? level.width * pixel_step : 0;
#pragma unroll
          for (int k = 0; k < 4; ++k)
            sums[i][k] = dot_vector<Value>(gradient, device::load_16(from + (k % 2 ? right : 0) + (k / 2 ? down : 0)));
        }
        float made[4];
        sum_transposed<kBatchBits, lane_bits>(sums, part, made);
#pragma unroll
        for (int k = 0; k < 4; ++k)
          if (part >> kBatchBits == b >> kBatchBits) c[k] = made[k];
      }
      if (!taken) continue;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (!where.has(k)) c[k] = 0;
      write_point(call, item, l, mine, level, own.weight, where.inside != 0 ? point_sums(where, c) : PointSums{});
    }
  }
}

}  // namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward
