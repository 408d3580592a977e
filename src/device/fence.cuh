// Fences between ordinary memory accesses and the asynchronous proxy: the copy engine and the tensor cores
// (PTX ISA "membar / fence").
#pragma once

#include <cuda/ptx>

namespace tmaops::device {

/// Makes ordinary writes to shared memory visible to TMA stores, bulk copies and wgmma
/// (fence.proxy.async.shared::cta). Every thread that wrote calls it, then the threads synchronise, then one thread
/// issues the copy.
__device__ __forceinline__ void fence_async_shared() { cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); }

}  // namespace tmaops::device
