// Levels in device memory.
#pragma once

#include "core/upload.cuh"
#include "ops/ms_deform_attn/shared/call.hpp"

namespace tmaops::ops::ms_deform_attn::gpu {

/// Brings the levels of a call that has no room for them to device memory.
inline void upload_levels(Work& work, Call& call, const Problem& problem, const ConstTensorView& value,
                          const ConstTensorView& locations, const ConstTensorView& weights) {
  if (call.level_count <= kInlineLevels) return;
  const std::vector<DeviceLevel> levels = device_levels(problem, value, locations, weights);
  const auto* bytes = reinterpret_cast<const unsigned char*>(levels.data());
  call.table = reinterpret_cast<const DeviceLevel*>(upload(work, {bytes, bytes + levels.size() * sizeof(DeviceLevel)}));
}

}  // namespace tmaops::ops::ms_deform_attn::gpu
