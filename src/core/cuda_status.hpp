// From a CUDA status to our errors. Only for files that are compiled with a CUDA toolkit.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace tmaops {

/// Returns when the status is success. Otherwise clears it and throws Error: no_driver, driver_too_old, no_device,
/// device_hidden, earlier_cuda_error (a kernel launched before had broken the context), device_out_of_memory or
/// cuda_failed. `where` names the call or what it was for.
void check_cuda(cudaError_t status, std::string_view where);

}  // namespace tmaops
