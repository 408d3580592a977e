// Devices of a build without CUDA.
#include "core/device_info.hpp"
#include "tmaops/error.hpp"

namespace tmaops {

const DeviceInfo& cuda_device_info(Device device) {
  throw Error(ErrorCode::no_cuda_build, {.where = to_string(device), .got = {}, .needed = {}});
}

int cuda_device_count() { return 0; }

}  // namespace tmaops
