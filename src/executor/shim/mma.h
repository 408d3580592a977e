// Unknown to the executor.
#error "nvcuda::wmma is unknown to the executor: device/mma.cuh and device/wgmma.cuh are"
