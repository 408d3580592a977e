// Host twin of src/device/approximate.cuh.
#pragma once

#include <cmath>

namespace tmaops::device {

/// Subnormal numbers count as 0.
inline float flushed(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }

__device__ __forceinline__ float reciprocal(float x) { return flushed(1.0f / flushed(x)); }

__device__ __forceinline__ float reciprocal_root(float x) { return flushed(1.0f / std::sqrt(flushed(x))); }

__device__ __forceinline__ float power_of_two(float x) { return flushed(std::exp2(flushed(x))); }

}  // namespace tmaops::device
