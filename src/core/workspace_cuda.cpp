// The library's own device memory: a pool per device, in the order of streams.
#include <cstdint>
#include <map>
#include <mutex>

#include "core/cuda_launch.hpp"
#include "core/work_device.hpp"

namespace tmaops {
namespace {

/// Bytes that a pool keeps of what was given back; the rest goes to the system when a stream or the device is waited
/// for.
constexpr std::uint64_t kKept = 256ULL << 20;

struct DeviceMemory {
  cudaMemPool_t pool{};
  cudaStream_t stream{};  // of plans
};

/// Made once per device, and never freed: plans may end after everything else.
const DeviceMemory& memory_of(Device device, std::string_view where) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::map<int, DeviceMemory>;
  const std::scoped_lock lock(mutex);
  if (const auto known = all.find(device.index); known != all.end()) return known->second;
  const RelaxedCapture relaxed;
  DeviceMemory made;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {.type = cudaMemLocationTypeDevice, .id = device.index};
  check_cuda(cudaMemPoolCreate(&made.pool, &properties), where);
  std::uint64_t kept = kKept;
  check_cuda(cudaMemPoolSetAttribute(made.pool, cudaMemPoolAttrReleaseThreshold, &kept), where);
  // Otherwise the stream of plans could be made to wait for that of a call whose memory it gets.
  int no = 0;
  check_cuda(cudaMemPoolSetAttribute(made.pool, cudaMemPoolReuseAllowInternalDependencies, &no), where);
  check_cuda(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking), where);
  return all.emplace(device.index, made).first->second;
}

}  // namespace

void* allocate_on_device(Device device, std::size_t bytes, Stream stream, std::string_view where) {
  const CurrentDevice current(device.index);
  void* memory = nullptr;
  check_cuda(cudaMallocFromPoolAsync(&memory, bytes, memory_of(device, where).pool, static_cast<cudaStream_t>(stream)),
             where);
  return memory;
}

void release_on_device(Device device, void* memory, Stream stream) noexcept {
  int before = 0;  // nothing may throw here
  const bool changed = cudaGetDevice(&before) == cudaSuccess && before != device.index;
  if (changed) (void)cudaSetDevice(device.index);
  (void)cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
  if (changed) (void)cudaSetDevice(before);
}

Stream stream_of_plans(Device device) {
  const CurrentDevice current(device.index);
  return memory_of(device, "memory of a plan").stream;
}

}  // namespace tmaops
