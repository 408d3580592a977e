// Devices of a build without CUDA.
#include "core/device_info.hpp"
#include "tmaops/error.hpp"

namespace tmaops {

const DeviceInfo& device_info(Device device) {
  static const DeviceInfo cpu{};
  if (device.type == DeviceType::cpu) return cpu;
  throw Error(ErrorCode::no_cuda_build, {.where = to_string(device), .got = {}, .needed = {}});
}

int cuda_device_count() { return 0; }

}  // namespace tmaops
