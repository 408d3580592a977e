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

/// x, y and attention weight of a sample.
struct Point3 {
  float x = 0;
  float y = 0;
  float weight = 0;
};

/// The samples of an item. What a call of another type fuses into them is a specialisation (fused_call.cuh).
template <class Point, class AnyCall>
class Samples {
 public:
  static constexpr bool kMasks = false;  // whether there may be pixels of S that count as 0
  __device__ __forceinline__ Samples(const Call& call, const Item& item)
      : call_(call),
        locations_(call.locations.row(item.n, item.q, item.m)),
        weights_(call.weights.row(item.n, item.q, item.m)) {}

  /// Point p of level l.
  __device__ __forceinline__ Point3 at(const DeviceLevel& level, int /*l*/, std::int64_t p) const {
    const std::int64_t at = locations_ + level.location_at + p * call_.locations.point;
    return {read_point<Point>(call_.locations, at), read_point<Point>(call_.locations, at + call_.locations.axis),
            read_point<Point>(call_.weights, weights_ + level.weight_at + p * call_.weights.point)};
  }

 private:
  const Call& call_;
  std::int64_t locations_;
  std::int64_t weights_;
};

/// Channel d of an item, as reference.cpp defines it: pixels of weight 0, and masked ones, are not read.
template <class Value, class Point, class AnyCall>
__device__ __forceinline__ float sum_channel(const AnyCall& call, const Item& item, std::int64_t d) {
  const Value* value =
      static_cast<const Value*>(call.value.data) + call.value.at(item.n, 0, item.m) + d * call.value.channel;
  const Samples<Point, AnyCall> samples(call, item);
  float sum = 0;
  for (int l = 0; l < call.level_count; ++l) {
    const DeviceLevel level = call.level(l);
    const Value* map = value + level.value_at;
    const std::int64_t below = level.pitch * call.value.row;  // elements from a row of pixels to the next
    const auto add = [&](int row, int column, std::int64_t at, float weight) {
      if constexpr (Samples<Point, AnyCall>::kMasks) {  // asks for the pixel's number: one register more than `at`
        const std::int64_t pixel = static_cast<std::int64_t>(row) * level.pitch + column;
        if (samples.masked(level.first_pixel + pixel)) return;
        at = pixel * call.value.row;
      }
      sum = fmaf(weight, widen(__ldg(map + at)), sum);
    };
    for (std::int64_t p = 0; p < level.points; ++p) {
      const auto [x, y, weight] = samples.at(level, l, p);
      if (call.nearest) {
        int row = 0;
        int column = 0;
        if (locate_nearest(x, level.width, column) && locate_nearest(y, level.height, row))
          add(row, column, row * below + column * call.value.row, weight);
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
      // The first pixel may lie outside: then its place is not read.
      const std::int64_t at = down.first * below + across.first * call.value.row;
      if (top && left) add(down.first, across.first, at, upper * across.low);
      if (top && right) add(down.first, across.first + 1, at + call.value.row, upper * across.high);
      if (bottom && left) add(down.first + 1, across.first, at + below, lower * across.low);
      if (bottom && right) add(down.first + 1, across.first + 1, at + below + call.value.row, lower * across.high);
    }
  }
  return sum;
}

}  // namespace tmaops::ops::ms_deform_attn::cuda
