// The definition one channel at a time, as reference.cpp has it, and what kernels of 16-byte loads do with sums that
// are not finite: these are made again by the definition, whose weights of 0 do not touch what they multiply.
#pragma once

#include "ops/ms_deform_attn/shared/locate.cuh"
#include "ops/ms_deform_attn/shared/points.cuh"

namespace tmaops::ops::ms_deform_attn::gpu {

/// The samples of an item. What a call of another type fuses into them is a specialisation (fused_call.cuh).
template <class Point, class AnyCall, class T = float>
class Samples {
 public:
  static constexpr bool kMasks = false;         // whether there may be pixels of S that count as 0
  static constexpr bool kMayBeMissing = false;  // whether a level may not be there
  __device__ __forceinline__ Samples(const Call& call, const Item& item)
      : call_(call),
        locations_(call.locations.row(item.n, item.q, item.m)),
        weights_(call.weights.row(item.n, item.q, item.m)) {}

  /// Point p of level l.
  __device__ __forceinline__ PointOf<T> at(const DeviceLevel& level, int /*l*/, std::int64_t p) const {
    const std::int64_t at = locations_ + level.location_at + p * call_.locations.point;
    return {read_point<Point, T>(call_.locations, at), read_point<Point, T>(call_.locations, at + call_.locations.axis),
            read_point<Point, T>(call_.weights, weights_ + level.weight_at + p * call_.weights.point)};
  }

 private:
  const Call& call_;
  std::int64_t locations_;
  std::int64_t weights_;
};

/// Channel d of an item, as reference.cpp defines it: pixels of weight 0, and masked ones, are not read. NaN where a
/// level of shapes that only the device knows does not lie in S.
template <class Value, class Point, class AnyCall>
__device__ __forceinline__ Arithmetic<Value> sum_channel(const AnyCall& call, const Item& item, std::int64_t d) {
  const Value* value =
      static_cast<const Value*>(call.value.data) + call.value.at(item.n, 0, item.m) + d * call.value.channel;
  using T = Arithmetic<Value>;
  const Samples<Point, AnyCall, T> samples(call, item);
  T sum = 0;
  for (int l = 0; l < call.level_count; ++l) {
    const DeviceLevel level = call.level(l);
    if constexpr (Samples<Point, AnyCall, T>::kMayBeMissing)
      if (level.height == 0) return std::numeric_limits<T>::quiet_NaN();
    const Value* map = value + level.value_at;
    const std::int64_t below = level.pitch * call.value.row;  // elements from a row of pixels to the next
    const auto add = [&](int row, int column, std::int64_t at, T weight) {
      if constexpr (Samples<Point, AnyCall, T>::kMasks) {  // asks for the pixel's number: one register more than `at`
        const std::int64_t pixel = static_cast<std::int64_t>(row) * level.pitch + column;
        if (samples.masked(level.first_pixel + pixel)) return;
        at = pixel * call.value.row;
      }
      sum = fma(weight, device::widen(__ldg(map + at)), sum);
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
      SideOf<T> across;
      SideOf<T> down;
      if (!locate(x, level.width, across) || !locate(y, level.height, down)) continue;
      const bool left = across.first >= 0 && across.low != T(0);
      const bool right = across.first + 1 < level.width && across.high != T(0);
      const bool top = down.first >= 0 && down.low != T(0);
      const bool bottom = down.first + 1 < level.height && down.high != T(0);
      const T upper = weight * down.low;
      const T lower = weight * down.high;
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

/// Channel d of an item in the output, where channels lie next to each other.
template <class Value>
__device__ __forceinline__ Value* output_channel(const Call& call, const Item& item, int d) {
  return static_cast<Value*>(const_cast<void*>(call.output.data)) + call.output.at(item.n, item.q, item.m) + d;
}

/// Whether a sum may have met 0 * infinity, or a value that is not finite.
template <int count>
__device__ __forceinline__ bool all_finite(const float (&sum)[count]) {
  float zero = 0;
#pragma unroll
  for (int i = 0; i < count; ++i) zero = fmaf(sum[i], 0.0f, zero);
  return zero == 0.0f;
}

/// The channels d, d + 1, ... of an item by the definition. Rare.
template <class Value, class Point, class AnyCall>
__device__ __forceinline__ void sum_exactly(const AnyCall& call, const Item& item, int d,
                                            float (&sum)[device::kPerVector<Value>]) {
#pragma unroll 1
  for (int i = 0; i < device::kPerVector<Value>; ++i) {
    const float exact = sum_channel<Value, Point>(call, item, d + i);
#pragma unroll
    for (int k = 0; k < device::kPerVector<Value>; ++k)
      if (k == i) sum[k] = exact;
  }
}

/// Stores the channels d, d + 1, ... of an item by the definition, as many as 16 bytes of value hold. Rare; one by one,
/// and to memory, for the registers' sake.
template <class Value, class Point, class Output = Value, class AnyCall>
__device__ __forceinline__ void store_exactly(const AnyCall& call, const Item& item, int d) {
  Output* output = output_channel<Output>(call, item, d);
#pragma unroll 1
  for (int i = 0; i < device::kPerVector<Value>; ++i)
    output[i] = device::narrow<Output>(sum_channel<Value, Point>(call, item, d + i));
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
