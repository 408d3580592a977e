// GPUs that are not there, for tests of what would be chosen on them.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/device_info.hpp"

namespace tmaops::test {

/// One GPU of each compute capability. Most shared memory per block is from the table "Technical Specifications per
/// Compute Capability" of the CUDA programming guide; the rest is that of a product.
inline std::vector<DeviceInfo> made_up_gpus() {
  struct Row {
    int compute_capability;
    int multiprocessors;
    std::int64_t shared_kib;  // of a block
    std::int64_t l2_mib;
    std::int64_t memory_gib;
  };
  constexpr std::array<Row, 6> rows{{{80, 108, 163, 40, 80},
                                     {86, 82, 99, 6, 24},
                                     {89, 142, 99, 96, 48},
                                     {90, 132, 227, 50, 141},
                                     {100, 148, 227, 126, 180},
                                     {120, 170, 99, 96, 32}}};
  std::vector<DeviceInfo> all;
  for (const Row& row : rows)
    all.push_back({.device = {DeviceType::cuda, 0},
                   .name = "made-up GPU " + std::to_string(row.compute_capability),
                   .compute_capability = row.compute_capability,
                   .multiprocessors = row.multiprocessors,
                   .shared_memory_per_block = row.shared_kib << 10,
                   .l2_bytes = row.l2_mib << 20,
                   .memory_bytes = row.memory_gib << 30});
  return all;
}

inline DeviceInfo made_up_gpu(int compute_capability) {
  for (const DeviceInfo& device : made_up_gpus())
    if (device.compute_capability == compute_capability) return device;
  return {};
}

}  // namespace tmaops::test
