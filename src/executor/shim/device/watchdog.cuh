// Host twin of src/device/watchdog.cuh. A wait that never ends is a finding, so nothing counts its time.
#pragma once

#include <cstdint>
#include <cstdio>

namespace tmaops::device {

struct WaitSite {
  const char* barrier = "barrier";
  int stage = 0;
};

__device__ __forceinline__ std::uint64_t global_nanoseconds() { return static_cast<std::uint64_t>(executor::cycles()); }

__device__ __forceinline__ std::int64_t cycles() { return executor::cycles(); }

__device__ __forceinline__ void trap() { executor::trap(); }

}  // namespace tmaops::device
