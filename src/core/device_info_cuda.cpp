// Devices of a build with CUDA. Five different messages for a GPU that cannot be used: no driver, driver too old,
// no device, device hidden, and (in the variants) wrong architecture.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "core/device_info.hpp"
#include "tmaops/error.hpp"

namespace tmaops {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

[[noreturn]] void fail(cudaError_t status) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string runtime = version_text(CUDART_VERSION);
  switch (status) {
    case cudaErrorInsufficientDriver:
      if (driver == 0)
        throw Error(ErrorCode::no_driver,
                    {.where = "CUDA", .got = "no driver library (libcuda.so.1)", .needed = "one for CUDA " + runtime});
      throw Error(ErrorCode::driver_too_old, {.where = "CUDA",
                                              .got = "a driver for CUDA " + version_text(driver),
                                              .needed = "CUDA " + runtime + " or newer"});
    case cudaErrorNoDevice:
      if (visible != nullptr)
        throw Error(ErrorCode::device_hidden, {.where = "CUDA",
                                               .got = "CUDA_VISIBLE_DEVICES='" + std::string(visible) + "'",
                                               .needed = "a device in it"});
      throw Error(ErrorCode::no_device, {.where = "CUDA", .got = "0 devices", .needed = "1"});
    default:
      throw Error(ErrorCode::earlier_cuda_error,
                  {.where = "CUDA",
                   .got = cudaGetErrorName(status) + std::string(": ") + cudaGetErrorString(status),
                   .needed = "a working context"});
  }
}

void check(cudaError_t status) {
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    fail(status);
  }
}

DeviceInfo query(Device device) {
  int count = 0;
  check(cudaGetDeviceCount(&count));
  if (device.index < 0 || device.index >= count)
    throw Error(ErrorCode::bad_parameter,
                {.where = "device index", .got = to_string(device), .needed = "0 to " + std::to_string(count - 1)});
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index));
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

const DeviceInfo& device_info(Device device) {
  static const DeviceInfo cpu{};
  if (device.type == DeviceType::cpu) return cpu;
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
