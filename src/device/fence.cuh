// Fences between ordinary memory accesses and the asynchronous proxy: the copy engine and the tensor cores
// (PTX ISA "membar / fence").
#pragma once

#include <cuda/ptx>

namespace tmaops::device {

/// Makes ordinary writes to shared memory visible to TMA stores, bulk copies and wgmma
/// (fence.proxy.async.shared::cta). Every thread that wrote calls it, then the threads synchronise, then one thread
/// issues the copy.
__device__ __forceinline__ void fence_async_shared() { cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); }

/// The same for global memory (fence.proxy.async.global). It stands between ordinary writes and a TMA load of the same
/// bytes in one kernel.
__device__ __forceinline__ void fence_async_global() { cuda::ptx::fence_proxy_async(cuda::ptx::space_global); }

/// The same for all state spaces (fence.proxy.async).
__device__ __forceinline__ void fence_async() { cuda::ptx::fence_proxy_async(); }

/// Call it before using a tensor map in global memory that another kernel or thread may have written
/// (fence.proxy.tensormap::generic.acquire.gpu). A map that is a `const __grid_constant__` parameter needs no fence.
__device__ __forceinline__ void fence_tensor_map_acquire(const void* map) {
  cuda::ptx::fence_proxy_tensormap_generic(cuda::ptx::sem_acquire, cuda::ptx::scope_gpu, map, cuda::ptx::n32_t<128>{});
}

/// Call it after writing a tensor map in global memory (fence.proxy.tensormap::generic.release.gpu).
__device__ __forceinline__ void fence_tensor_map_release() {
  cuda::ptx::fence_proxy_tensormap_generic(cuda::ptx::sem_release, cuda::ptx::scope_gpu);
}

}  // namespace tmaops::device
