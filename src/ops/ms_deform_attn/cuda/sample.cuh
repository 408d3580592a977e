// Where a sample lies, and the definition one channel at a time.
#pragma once

#include "ops/ms_deform_attn/cuda/elements.cuh"

namespace tmaops::ops::ms_deform_attn::cuda {

/// A sample along one side of a level: pixels `first` and `first + 1` with their bilinear weights. Either pixel may lie
/// outside.
struct Side {
  int first = 0;
  float low = 0;   // weight of `first`
  float high = 0;  // weight of `first + 1`
};

/// False when no pixel is near: then the sample is skipped. Infinite and NaN locations never pass.
__device__ __forceinline__ bool locate(float location, int size, Side& side) {
  const float at = fmaf(location, static_cast<float>(size), -0.5f);
  if (!(at > -1.0f && at < static_cast<float>(size))) return false;
  const float below = floorf(at);
  side.first = static_cast<int>(below);
  side.high = at - below;
  side.low = 1.0f - side.high;
  return true;
}

/// The pixel of nearest sampling; false for a location that is not finite.
__device__ __forceinline__ bool locate_nearest(float location, int size, int& pixel) {
  if (!(fabsf(location) <= 3.402823466e38f)) return false;
  const float at = floorf(fmaf(location, static_cast<float>(size), 0.5f));
  pixel = static_cast<int>(fminf(fmaxf(at, 0.0f), static_cast<float>(size - 1)));
  pixel = min(pixel, size - 1);  // size - 1 may round up
  return true;
}

/// Channel d of an item, as reference.cpp defines it: pixels of weight 0 are not read.
template <class Value, class Point>
__device__ __forceinline__ float sum_channel(const Call& call, const Item& item, std::int64_t d) {
  const Value* value = static_cast<const Value*>(call.value.data) + call.value.at(item.n, 0, item.m) +
                       d * call.value.channel;
  const std::int64_t location_row = call.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = call.weights.row(item.n, item.q, item.m);
  float sum = 0;
  for (int l = 0; l < call.level_count; ++l) {
    const DeviceLevel level = call.level(l);
    const Value* map = value + level.value_at;
    const auto pixel = [&](int row, int column) {
      return widen(__ldg(map + (static_cast<std::int64_t>(row) * level.width + column) * call.value.row));
    };
    for (std::int64_t p = 0; p < level.points; ++p) {
      const std::int64_t at = location_row + level.location_at + p * call.locations.point;
      const float x = read_point<Point>(call.locations, at);
      const float y = read_point<Point>(call.locations, at + call.locations.axis);
      const float weight = read_point<Point>(call.weights, weight_row + level.weight_at + p * call.weights.point);
      if (call.nearest) {
        int row = 0;
        int column = 0;
        if (locate_nearest(x, level.width, column) && locate_nearest(y, level.height, row))
          sum = fmaf(weight, pixel(row, column), sum);
        continue;
      }
      Side across;
      Side down;
      if (!locate(x, level.width, across) || !locate(y, level.height, down)) continue;
      const bool left = across.first >= 0 && across.low != 0.0f;
      const bool right = across.first + 1 < level.width && across.high != 0.0f;
      const bool top = down.first >= 0 && down.low != 0.0f;
      const bool bottom = down.first + 1 < level.height && down.high != 0.0f;
      const float upper = weight * down.low;
      const float lower = weight * down.high;
      if (top && left) sum = fmaf(upper * across.low, pixel(down.first, across.first), sum);
      if (top && right) sum = fmaf(upper * across.high, pixel(down.first, across.first + 1), sum);
      if (bottom && left) sum = fmaf(lower * across.low, pixel(down.first + 1, across.first), sum);
      if (bottom && right) sum = fmaf(lower * across.high, pixel(down.first + 1, across.first + 1), sum);
    }
  }
  return sum;
}

}  // namespace tmaops::ops::ms_deform_attn::cuda
