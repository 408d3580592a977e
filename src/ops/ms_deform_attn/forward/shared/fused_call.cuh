// A call with other steps fused in: a softmax of the weights, reference points, a padding mask. Kernels take it instead
// of Call where these are asked for, so that they cost the others nothing.
#pragma once

#include "ops/ms_deform_attn/forward/shared/definition.cuh"
#include "ops/ms_deform_attn/shared/device_shapes.hpp"
#include "ops/ms_deform_attn/shared/elements.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

struct FusedCall : Call {
  DeviceShapes shapes{};
  constexpr DeviceLevel level(int l) const { return shapes.level(*this, l); }

  bool softmax = false;
  std::int64_t logit = 0;        // stride of the logits of an item, in whatever level; 0 when there is no such stride
  int reference_components = 0;  // 2, 4, or 0 when there are none
  double offset_scale = 0;       // of 4 components
  PointRows reference{};         // `head` is the stride of levels, `axis` that of components
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_image = 0;  // strides
  std::int64_t mask_pixel = 0;
};

/// Largest or sum over the `lanes` threads (a power of two, neighbours) that share an item. One thread alone may call
/// it anywhere, several with their whole warp.
template <class T, class Combine>
__device__ __forceinline__ T over_lanes(T value, int lanes, const Combine& combine) {
  for (int step = lanes / 2; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(~0u, value, step));
  return value;
}

template <class Point, class T>
class Samples<Point, FusedCall, T> {
 public:
  static constexpr bool kMasks = true;
  static constexpr bool kMayBeMissing = true;
  __device__ __forceinline__ Samples(const FusedCall& call, const Item& item) : Samples(call, item, 0, 1) {
    if (!call.softmax) return;
    T sum = 0;
    for_each_weight(0, 1, [&](T weight) { sum += exp(weight - largest_); });
    scale_ = T(1) / sum;
  }
  /// `lanes` threads look for the largest logit together, this one is number `part`. The weights lack the division by
  /// their sum.
  __device__ __forceinline__ Samples(const FusedCall& call, const Item& item, int part, int lanes)
      : call_(call),
        locations_(call.locations.row(item.n, item.q, item.m)),
        weights_(call.weights.row(item.n, item.q, item.m)),
        references_(item.n * call.reference.image + item.q * call.reference.query),
        mask_(call.mask == nullptr ? nullptr : call.mask + item.n * call.mask_image) {
    if (!call.softmax) return;
    // fmax passes over a NaN; the sum then is NaN, and with it every weight.
    T largest = -std::numeric_limits<T>::infinity();
    for_each_weight(part, lanes, [&](T weight) { largest = fmax(largest, weight); });
    largest_ = over_lanes(largest, lanes, [](T a, T b) { return fmax(a, b); });
  }

  __device__ __forceinline__ std::int64_t location_at(const DeviceLevel& level, std::int64_t p) const {
    return locations_ + level.location_at + p * call_.locations.point;
  }
  __device__ __forceinline__ std::int64_t weight_at(const DeviceLevel& level, std::int64_t p) const {
    return weights_ + level.weight_at + p * call_.weights.point;
  }
  /// A point of level l as it is stored: offset and logit where these are what the call has.
  __device__ __forceinline__ PointOf<T> finish(const PointOf<T>& stored, const DeviceLevel& level, int l) const {
    PointOf<T> point = stored;
    if (call_.softmax) point.weight = exp(stored.weight - largest_) * scale_;
    if (call_.reference_components == 0) return point;
    const std::int64_t row = references_ + l * call_.reference.head;
    const auto part = [&](int component) {
      return read_point<AnyType, T>(call_.reference, row + component * call_.reference.axis);
    };
    if (call_.reference_components == 2) {
      point.x = part(0) + divide(stored.x, static_cast<T>(level.width));
      point.y = part(1) + divide(stored.y, static_cast<T>(level.height));
    } else {
      const T step = static_cast<T>(call_.offset_scale) / static_cast<T>(level.points);
      point.x = fma(stored.x, part(2) * step, part(0));
      point.y = fma(stored.y, part(3) * step, part(1));
    }
    return point;
  }
  __device__ __forceinline__ PointOf<T> at(const DeviceLevel& level, int l, std::int64_t p) const {
    const std::int64_t at = location_at(level, p);
    return finish(
        {read_point<Point, T>(call_.locations, at), read_point<Point, T>(call_.locations, at + call_.locations.axis),
         read_point<Point, T>(call_.weights, weight_at(level, p))},
        level, l);
  }
  /// Whether a pixel of S counts as 0.
  __device__ __forceinline__ bool masked(std::int64_t pixel) const {
    return mask_ != nullptr && __ldg(mask_ + pixel * call_.mask_pixel) != 0;
  }

 private:
  static __device__ __forceinline__ T divide(T a, T b) {
    if constexpr (std::is_same_v<T, float>)
      return __fdividef(a, b);
    else
      return a / b;
  }
  template <class Fn>
  __device__ __forceinline__ void for_each_weight(int part, int lanes, const Fn& fn) const {
    if (lanes > 1 && call_.logit != 0) {  // one thread alone is rare and wants few registers
      const auto points = static_cast<int>(call_.points);
#pragma unroll 4
      for (int s = part; s < points; s += lanes) fn(read_point<Point, T>(call_.weights, weights_ + s * call_.logit));
      return;
    }
    for (int l = 0; l < call_.level_count; ++l) {
      const DeviceLevel level = call_.level(l);
#pragma unroll 1
      for (std::int64_t p = part; p < level.points; p += lanes)
        fn(read_point<Point, T>(call_.weights, weight_at(level, p)));
    }
  }

  const FusedCall& call_;
  std::int64_t locations_;
  std::int64_t weights_;
  std::int64_t references_;
  const std::uint8_t* mask_;
  T largest_ = 0;
  T scale_ = 1;
};

/// A forward call with what the problem fuses into it.
inline FusedCall fused_call(const Problem& problem, const Arguments& arguments) {
  FusedCall call{forward_call(problem, arguments)};
  call.softmax = problem.softmax;
  bool even = problem.points <= INT32_MAX / 2;
  const ConstTensorView& weights = arguments.attention_weights;
  for (const Level& level : problem.levels)
    even = even && point_offset(problem, level, 0, weights) == level.first_point * call.weights.point;
  if (even) call.logit = call.weights.point;
  call.reference_components = problem.reference_components;
  call.offset_scale = arguments.offset_scale;
  call.shapes = device_shapes(problem, arguments.level_views);
  if (problem.reference_components != 0) {
    const ConstTensorView& points = arguments.reference_points;
    call.reference = {.data = points.data,
                      .dtype = points.dtype,
                      .image = points.strides[0],
                      .query = points.strides[1],
                      .head = points.strides[2],
                      .axis = points.strides[3]};
  }
  if (problem.masked) {
    call.mask = static_cast<const std::uint8_t*>(arguments.padding_mask.data);
    call.mask_image = arguments.padding_mask.strides[0];
    call.mask_pixel = arguments.padding_mask.strides[1];
  }
  return call;
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
