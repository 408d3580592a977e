// A call with other steps fused in: a softmax of the weights, reference points, a padding mask. Kernels take it instead
// of Call where these are asked for, so that they cost the others nothing.
#pragma once

#include "ops/ms_deform_attn/forward/shared/definition.cuh"
#include "ops/ms_deform_attn/shared/device_shapes.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

struct FusedCall : Call {
  DeviceShapes shapes{};
  constexpr DeviceLevel level(int l) const { return shapes.level(*this, l); }

  bool softmax = false;
  int reference_components = 0;  // 2, 4, or 0 when there are none
  double offset_scale = 0;       // of 4 components
  float offset_scale_f32 = 0;
  PointRows reference{};  // `head` is the stride of levels, `axis` that of components
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_image = 0;  // strides
  std::int64_t mask_pixel = 0;
};

/// Where the offsets of a level start, and how far one of 1 reaches: in locations.
template <class T>
struct OriginOf {
  T x = 0;
  T y = 0;
  T step_x = 1;
  T step_y = 1;
};
using Origin = OriginOf<float>;

/// Of a level of an item that `row` says the query of, in the reference points. Without these locations are their own
/// offsets.
template <class T = float>
__device__ __forceinline__ OriginOf<T> origin_of(const FusedCall& call, std::int64_t row, int l, int height, int width,
                                                 int points) {
  OriginOf<T> origin;
  if (call.reference_components == 0) return origin;
  const std::int64_t at = row + l * call.reference.head;
  const std::int64_t axis = call.reference.axis;
  const auto read = [&](const auto* from) {
    origin.x = static_cast<T>(device::widen(__ldg(from + at)));
    origin.y = static_cast<T>(device::widen(__ldg(from + at + axis)));
    if (call.reference_components == 2) return;
    origin.step_x = static_cast<T>(device::widen(__ldg(from + at + 2 * axis)));
    origin.step_y = static_cast<T>(device::widen(__ldg(from + at + 3 * axis)));
  };
  if (call.reference.dtype == DType::f32)
    read(static_cast<const float*>(call.reference.data));
  else if (call.reference.dtype == DType::f16)
    read(static_cast<const __half*>(call.reference.data));
  else if (call.reference.dtype == DType::bf16)
    read(static_cast<const __nv_bfloat16*>(call.reference.data));
  else
    read(static_cast<const double*>(call.reference.data));
  if constexpr (std::is_same_v<T, float>) {
    if (call.reference_components == 2) {
      origin.step_x = __fdividef(1.0f, static_cast<float>(width));
      origin.step_y = __fdividef(1.0f, static_cast<float>(height));
    } else {
      const float step = __fdividef(call.offset_scale_f32, static_cast<float>(points));
      origin.step_x *= step;
      origin.step_y *= step;
    }
  } else {
    const T step = call.offset_scale / static_cast<T>(points);
    origin.step_x = call.reference_components == 2 ? T(1) / static_cast<T>(width) : origin.step_x * step;
    origin.step_y = call.reference_components == 2 ? T(1) / static_cast<T>(height) : origin.step_y * step;
  }
  return origin;
}

template <class Point, class T>
class Samples<Point, FusedCall, T> {
 public:
  static constexpr bool kMasks = true;
  static constexpr bool kMayBeMissing = true;
  __device__ __forceinline__ Samples(const FusedCall& call, const Item& item)
      : call_(call),
        locations_(call.locations.row(item.n, item.q, item.m)),
        weights_(call.weights.row(item.n, item.q, item.m)),
        references_(call.reference.row(item.n, item.q, 0)),
        mask_(call.mask == nullptr ? nullptr : call.mask + item.n * call.mask_image) {
    if (!call.softmax) return;
    // fmax passes over a NaN; the sum then is NaN, and with it every weight.
    largest_ = -std::numeric_limits<T>::infinity();
    for_each_weight([&](T weight) { largest_ = fmax(largest_, weight); });
    T sum = 0;
    for_each_weight([&](T weight) { sum += exp(weight - largest_); });
    scale_ = T(1) / sum;
  }
  __device__ __forceinline__ PointOf<T> at(const DeviceLevel& level, int l, std::int64_t p) const {
    const std::int64_t at = locations_ + level.location_at + p * call_.locations.point;
    const OriginOf<T> origin =
        origin_of<T>(call_, references_, l, level.height, level.width, static_cast<int>(level.points));
    const T weight = read_point<Point, T>(call_.weights, weights_ + level.weight_at + p * call_.weights.point);
    return {fma(read_point<Point, T>(call_.locations, at), origin.step_x, origin.x),
            fma(read_point<Point, T>(call_.locations, at + call_.locations.axis), origin.step_y, origin.y),
            call_.softmax ? exp(weight - largest_) * scale_ : weight};
  }
  /// Whether a pixel of S counts as 0.
  __device__ __forceinline__ bool masked(std::int64_t pixel) const {
    return mask_ != nullptr && __ldg(mask_ + pixel * call_.mask_pixel) != 0;
  }

 private:
  template <class Fn>
  __device__ __forceinline__ void for_each_weight(const Fn& fn) const {
    for (int l = 0; l < call_.level_count; ++l) {
      const DeviceLevel level = call_.level(l);
#pragma unroll 1
      for (std::int64_t p = 0; p < level.points; ++p)
        fn(read_point<Point, T>(call_.weights, weights_ + level.weight_at + p * call_.weights.point));
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
  call.reference_components = problem.reference_components;
  call.offset_scale = arguments.offset_scale;
  call.offset_scale_f32 = static_cast<float>(arguments.offset_scale);
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
