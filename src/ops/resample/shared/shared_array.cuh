// Arrays in a block's dynamic shared memory, in a kernel.
#pragma once

#include "ops/resample/shared/shared_layout.hpp"

namespace tmaops::ops::resample::gpu {

/// `bytes`: behind the fixed part of the storage.
template <class T>
__device__ __forceinline__ T* array_of(unsigned char* bytes, SharedArray<T> array) {
  return reinterpret_cast<T*>(bytes + array.at);
}
template <class T>
__device__ __forceinline__ const T* array_of(const unsigned char* bytes, SharedArray<T> array) {
  return reinterpret_cast<const T*>(bytes + array.at);
}

}  // namespace tmaops::ops::resample::gpu
