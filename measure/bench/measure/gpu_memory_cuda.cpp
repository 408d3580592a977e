#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "bench/measure/gpu_memory.hpp"
#include "bench/measure/nvml.hpp"

namespace tmaops::bench {
namespace {

/// 0 where the runtime does not know.
double attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) (void)cudaGetLastError();
  return value;
}

GpuMemory query(int device) {
  GpuMemory found{.clock_mhz = attribute(cudaDevAttrMemoryClockRate, device) * 1e-3,
                  .bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, device)};
  if (found.peak_gbps() > 0) return found;
  char bus_id[32] = {};
  if (cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), device) != cudaSuccess) (void)cudaGetLastError();
  const Nvml nvml(bus_id);
  if (!(found.clock_mhz > 0)) found.clock_mhz = nvml.highest_memory_mhz();
  if (!(found.bus_bits > 0)) found.bus_bits = nvml.memory_bus_bits();
  return found;
}

}  // namespace

const GpuMemory& gpu_memory(Device device) {
  static std::mutex mutex;
  static std::map<int, GpuMemory> known;
  static const GpuMemory none;
  if (device.type != DeviceType::cuda) return none;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(device.index);
  return found != known.end() ? found->second : known.emplace(device.index, query(device.index)).first->second;
}

}  // namespace tmaops::bench
