// Global loads and stores that leave the L1 alone (PTX ISA "Cache Operators", .cg).
#pragma once

#include <cuda_runtime.h>

namespace tmaops::device {

/// Reads 2, 4, 8 or 16 bytes from the L2 (ld.global.cg).
template <class T>
__device__ __forceinline__ T load_l2(const T* from) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  return __ldcg(from);
}

/// Writes 16 bytes to the L2 (st.global.cg).
__device__ __forceinline__ void store_16_l2(void* to, const uint4& value) { __stcg(static_cast<uint4*>(to), value); }

}  // namespace tmaops::device
