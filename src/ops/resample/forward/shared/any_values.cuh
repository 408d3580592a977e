// Values of any interpolation by the formulas for every case: what the short ways of the curve kernels leave.
#pragma once

#include "ops/resample/forward/shared/curves.cuh"
#include "ops/resample/shared/values.cuh"

namespace tmaops::ops::resample::gpu {

/// Bit kLaterBit + previous, next or nearest of the flags: of the two samples it is the later one.
inline constexpr std::uint32_t kLaterBit = 16;

/// The first `count` values of a piece one after the other: every kind, any memory, any alignment. Everything by value:
/// what goes to a function by reference is stored to local memory first.
template <class Value>
__device__ __noinline__ void write_values(unsigned char* to, const unsigned char* from, int width, int count,
                                          std::uint32_t modes, float w, std::uint32_t flags, float before,
                                          float after) {
  auto* out = reinterpret_cast<Value*>(to);
  const auto at = [&](int row, int k) {
    return widen(reinterpret_cast<const Value*>(from + row * static_cast<std::int64_t>(width))[k]);
  };
  const Neighbours around{before, after};
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
    const std::uint32_t mode = modes >> (4 * k) & 15u;
    if (w != w) {  // there may be no row at all
      out[k] = narrow<Value>(missing());
    } else if (mode >= 8) {
      const int first = k - static_cast<int>(mode - 8);
      const auto quaternion = [&](int row) {
        return float4{at(row, first), at(row, first + 1), at(row, first + 2), at(row, first + 3)};
      };
      const float4 q = w == 0.0f ? normalized(quaternion(0)) : slerp(quaternion(0), quaternion(1), w);
      const int end = min(first + 4, count);
      for (; k < end; ++k) out[k] = narrow<Value>(k == first ? q.x : k == first + 1 ? q.y : k == first + 2 ? q.z : q.w);
      --k;
    } else if (mode == 0 || (mode == 4 && !(before >= 0 || after >= 0))) {
      out[k] = narrow<Value>(w == 0.0f ? at(0, k) : fmaf(w, at(1, k) - at(0, k), at(0, k)));
    } else if (mode == 4 && w != 0.0f) {
      const float y = at(0, k);
      const float next = at(1, k);
      out[k] = narrow<Value>(pchip(around, w, y, next, before >= 0 ? (y - at(-1, k)) * before : 0.0f,
                                   after >= 0 ? (at(2, k) - next) * after : 0.0f));
    } else {
      out[k] = narrow<Value>(at(mode != 4 && (flags >> (kLaterBit + mode) & 1u) != 0 ? 1 : 0, k));
    }
  }
}

}  // namespace tmaops::ops::resample::gpu
