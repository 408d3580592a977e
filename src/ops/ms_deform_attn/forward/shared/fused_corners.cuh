// Fused steps as kernels that read 16 bytes per thread take them. The softmax subtracts no largest logit: where
// its sum leaves the range of f32, the sums of the item are NaN, and made again by the definition.
#pragma once

#include "ops/ms_deform_attn/forward/shared/corners.cuh"
#include "ops/ms_deform_attn/forward/shared/fused_call.cuh"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Whether a kernel's call has fused steps.
template <class AnyCall>
constexpr bool kFused = std::is_same_v<AnyCall, FusedCall>;

/// The logit of a point that is not there.
inline constexpr float kNoLogit = -std::numeric_limits<float>::infinity();

/// A point as it is stored, with the origin of its level. The weight lacks the division.
template <class Value>
__device__ __forceinline__ Point3 fuse(const FusedCall& call, const Point3& stored, const Origin& origin) {
  const auto power = [](float logit) { return sizeof(Value) == 2 ? __expf(logit) : expf(logit); };
  return {fmaf(stored.x, origin.step_x, origin.x), fmaf(stored.y, origin.step_y, origin.y),
          call.softmax ? power(stored.weight) : stored.weight};
}

/// Gives masked pixels the weight 0. `first`: the level's first pixel in S. `right`, `down`: pixels to the neighbours.
__device__ __forceinline__ void drop_masked(const FusedCall& call, std::int64_t n, std::int64_t first, int pitch,
                                            int right, int down, Corners& corners) {
  if (call.mask == nullptr) return;
  const std::uint8_t* upper =
      call.mask + n * call.mask_image +
      (first + static_cast<std::int64_t>(corners.row) * pitch + corners.column) * call.mask_pixel;
  const std::uint8_t* lower = upper + down * call.mask_pixel;
  const std::uint8_t masked[4] = {__ldg(upper), __ldg(upper + right * call.mask_pixel), __ldg(lower),
                                  __ldg(lower + right * call.mask_pixel)};
#pragma unroll
  for (int k = 0; k < 4; ++k) corners.weight[k] = masked[k] != 0 ? 0.0f : corners.weight[k];
}

/// What the weights of an item are multiplied by. Its threads, `lanes` neighbours (a power of two), have parts of the
/// sum of the weights. Called by whole warps.
template <int lanes>
__device__ __forceinline__ float scale_of(const FusedCall& call, float part) {
  if (!call.softmax) return 1.0f;
  const float total = device::group_sum<lanes>(part);
  return total > 1e-30f && total < 1e30f ? __fdividef(1.0f, total) : std::numeric_limits<float>::quiet_NaN();
}

/// Calls fn with a null pointer of the output's type. With fused steps it may be f32 beside 16-bit values.
template <class Value, class AnyCall, class Fn>
__device__ __forceinline__ void with_output(const AnyCall& call, const Fn& fn) {
  if constexpr (kFused<AnyCall> && sizeof(Value) == 2)
    if (call.f32_output) return fn(static_cast<float*>(nullptr));
  fn(static_cast<Value*>(nullptr));
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
