// What a GPU's memory can move at most, by its clock and its bus.
#pragma once

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

struct GpuMemory {
  double clock_mhz = 0;  // 0: neither the runtime nor NVML knows it
  double bus_bits = 0;

  /// 1e9 bytes per second: two transfers per clock. 0: not known.
  double peak_gbps() const { return clock_mhz * 1e6 * 2 * bus_bits / 8 * 1e-9; }
};

/// Asks the runtime, and NVML for what it says is 0. Cached for the process. Knows nothing of a CPU.
const GpuMemory& gpu_memory(Device device);

}  // namespace tmaops::bench
