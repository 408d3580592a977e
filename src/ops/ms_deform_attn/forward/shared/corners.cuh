// A sample as kernels that read 16 bytes per thread take it: one address inside the map, four weights, no branches.
#pragma once

#include "ops/ms_deform_attn/forward/shared/definition.cuh"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Weights of pixels `base` and `base + 1`, both inside a level of at least two pixels a side; in a level of one pixel
/// the second weight is 0. What lies outside has weight 0.
struct Pair {
  int base = 0;
  float low = 0;
  float high = 0;
};

__device__ __forceinline__ Pair inside(const Side& side, int size) {
  Pair pair;
  pair.base = min(max(side.first, 0), max(size - 2, 0));
  const int moved = side.first - pair.base;  // -1 at the first border, 1 at the last one
  pair.low = moved == 0 ? side.low : moved < 0 ? side.high : 0.0f;
  pair.high = moved == 0 ? (size > 1 ? side.high : 0.0f) : moved > 0 ? side.low : 0.0f;
  return pair;
}

/// Pixel (row, column) of the level and the three next to it, with bilinear times attention weights.
struct Corners {
  int row = 0;
  int column = 0;
  float weight[4] = {0, 0, 0, 0};  // upper left, upper right, lower left, lower right
};

/// A skipped sample has four weights of 0 and stays inside the level.
__device__ __forceinline__ Corners corners_of(const Point3& point, int height, int width, bool nearest) {
  Side across;
  Side down;
  bool taken = false;
  if (nearest) {
    taken = locate_nearest(point.x, width, across.first) && locate_nearest(point.y, height, down.first);
    across.low = 1;
    down.low = 1;
  } else {
    taken = locate(point.x, width, across);
    taken = locate(point.y, height, down) && taken;
  }
  const Pair columns = inside(across, width);
  const Pair rows = inside(down, height);
  const float upper = taken ? point.weight * rows.low : 0.0f;
  const float lower = taken ? point.weight * rows.high : 0.0f;
  Corners corners;
  corners.row = taken ? rows.base : 0;
  corners.column = taken ? columns.base : 0;
  corners.weight[0] = upper * columns.low;
  corners.weight[1] = upper * columns.high;
  corners.weight[2] = lower * columns.low;
  corners.weight[3] = lower * columns.high;
  return corners;
}

/// Steps between the pixels of a level in units of 16 bytes; 0 where there is no second pixel.
struct Map {
  int right = 0;
  int down = 0;
};

template <class Value>
__device__ __forceinline__ Map map_of(const Call& call, const DeviceLevel& level) {
  const int pixel = static_cast<int>(call.value.row / device::kPerVector<Value>);
  return {level.width > 1 ? pixel : 0, level.height > 1 ? level.pitch * pixel : 0};
}

/// Of the upper left corner behind [n, 0, m, 0].
template <class Value>
__device__ __forceinline__ int offset_of(const Call& call, const DeviceLevel& level, const Corners& corners) {
  return static_cast<int>(level.value_at / device::kPerVector<Value>) +
         (corners.row * level.pitch + corners.column) * static_cast<int>(call.value.row / device::kPerVector<Value>);
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
