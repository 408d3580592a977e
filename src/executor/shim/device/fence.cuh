// Host twin of src/device/fence.cuh.
#pragma once

namespace tmaops::device {

__device__ __forceinline__ void fence_async_shared() { executor::fence_async(); }

}  // namespace tmaops::device
