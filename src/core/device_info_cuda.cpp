// Devices of a build with CUDA.
#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "core/cuda_status.hpp"
#include "core/device_info.hpp"
#include "core/fail.hpp"

namespace tmaops {
namespace {

DeviceInfo query(Device device) {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "CUDA");
  if (device.index < 0 || device.index >= count)
    fail(ErrorCode::bad_parameter, "device index", to_string(device), "0 to " + std::to_string(count - 1));
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device.index), "CUDA device " + std::to_string(device.index));
  DeviceInfo info;
  info.device = device;
  info.name = properties.name;
  info.compute_capability = properties.major * 10 + properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  info.shared_memory_per_block = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  info.l2_bytes = properties.l2CacheSize;
  info.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  return info;
}

}  // namespace

const DeviceInfo& cuda_device_info(Device device) {
  static std::mutex mutex;
  static std::map<int, DeviceInfo> known;
  const std::scoped_lock lock(mutex);
  if (const auto found = known.find(device.index); found != known.end()) return found->second;
  return known.emplace(device.index, query(device)).first->second;
}

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();
  return 0;
}

}  // namespace tmaops
