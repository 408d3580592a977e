// Device memory that a plan keeps.
#pragma once

#include <memory>

#include "core/cuda_launch.hpp"
#include "ops/ms_deform_attn/shared/call.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Freed with the last copy. Throws Error device_out_of_memory; `what` is its place.
inline std::shared_ptr<void> device_memory(std::size_t bytes, Device device, const char* what) {
  const CurrentDevice current(device.index);
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), what);
  return {memory, [](void* at) { (void)cudaFree(at); }};
}

/// Brings the levels of a call that has no room for them to memory that `work` keeps.
inline void keep_levels(Work& work, Call& call, const Problem& problem, const ConstTensorView& value,
                        const ConstTensorView& locations, const ConstTensorView& weights) {
  if (call.level_count <= kInlineLevels) return;
  constexpr auto kWhat = "ms_deform_attn: levels of the plan";
  const CurrentDevice current(problem.device.index);
  const std::vector<DeviceLevel> levels = device_levels(problem, value, locations, weights);
  const std::size_t bytes = levels.size() * sizeof(DeviceLevel);
  const std::shared_ptr<void> memory = device_memory(bytes, problem.device, kWhat);
  check_cuda(cudaMemcpy(memory.get(), levels.data(), bytes, cudaMemcpyHostToDevice), kWhat);
  call.table = static_cast<const DeviceLevel*>(memory.get());
  work.keep(memory);
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
