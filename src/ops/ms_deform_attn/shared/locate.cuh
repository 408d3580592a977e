// Where a sample lies along one side of a level.
#pragma once

namespace tmaops::ops::ms_deform_attn::gpu {

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

}  // namespace tmaops::ops::ms_deform_attn::gpu
