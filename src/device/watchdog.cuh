// A wait that never ends hangs the GPU without a message. With the option TMAOPS_WATCHDOG every barrier wait that lasts
// longer than TMAOPS_WATCHDOG_NS prints the barrier, the stage and the phase, and traps.
#pragma once

#include <cstdint>
#include <cstdio>

#ifndef TMAOPS_WATCHDOG
#define TMAOPS_WATCHDOG 0
#endif
#ifndef TMAOPS_WATCHDOG_NS
#define TMAOPS_WATCHDOG_NS 2000000000ull  // longer than any kernel of this project
#endif

namespace tmaops::device {

/// What a wait is for, in the words of the message.
struct WaitSite {
  const char* barrier = "barrier";
  int stage = 0;
};

/// Nanoseconds of a clock that the whole device shares. It ticks about once per microsecond (PTX ISA "%globaltimer").
__device__ __forceinline__ std::uint64_t global_nanoseconds() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

/// Cycles of this multiprocessor (PTX ISA "%clock64").
__device__ __forceinline__ std::int64_t cycles() { return clock64(); }

/// Ends the kernel with an error (PTX ISA "trap").
__device__ __forceinline__ void trap() { asm volatile("trap;"); }

/// Counts the time of one wait. It compiles to nothing unless TMAOPS_WATCHDOG is set.
class Watchdog {
 public:
  __device__ __forceinline__ Watchdog(const WaitSite& site, std::uint32_t parity) {
#if TMAOPS_WATCHDOG
    site_ = site;
    parity_ = parity;
    start_ = global_nanoseconds();
#else
    (void)site;
    (void)parity;
#endif
  }
  __device__ __forceinline__ void check() const {
#if TMAOPS_WATCHDOG
    if (global_nanoseconds() - start_ < TMAOPS_WATCHDOG_NS) return;
    printf("tmaops: wait for %s, stage %d, phase parity %u did not end: block (%d, %d, %d), thread %d\n", site_.barrier,
           site_.stage, parity_, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x);
    trap();
#endif
  }

 private:
#if TMAOPS_WATCHDOG
  WaitSite site_;
  std::uint32_t parity_;
  std::uint64_t start_;
#endif
};

}  // namespace tmaops::device
