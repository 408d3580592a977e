// Where a sample lies along one side of a level.
#pragma once

#include <limits>

namespace tmaops::ops::ms_deform_attn::gpu {

/// A sample along one side of a level: pixels `first` and `first + 1` with their bilinear weights. Either pixel may lie
/// outside.
template <class T>
struct SideOf {
  int first = 0;
  T low = 0;   // weight of `first`
  T high = 0;  // weight of `first + 1`
};
using Side = SideOf<float>;

/// False when no pixel is near: then the sample is skipped. Infinite and NaN locations never pass.
template <class T>
__device__ __forceinline__ bool locate(T location, int size, SideOf<T>& side) {
  const T at = fma(location, static_cast<T>(size), T(-0.5));
  if (!(at > T(-1) && at < static_cast<T>(size))) return false;
  const T below = floor(at);
  side.first = static_cast<int>(below);
  side.high = at - below;
  side.low = T(1) - side.high;
  return true;
}

/// The pixel of nearest sampling; false for a location that is not finite.
template <class T>
__device__ __forceinline__ bool locate_nearest(T location, int size, int& pixel) {
  constexpr T kLargest = std::numeric_limits<T>::max();
  if (!(fabs(location) <= kLargest)) return false;
  const T at = floor(fma(location, static_cast<T>(size), T(0.5)));
  pixel = static_cast<int>(fmin(fmax(at, T(0)), static_cast<T>(size - 1)));
  pixel = min(pixel, size - 1);  // size - 1 may round up
  return true;
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
