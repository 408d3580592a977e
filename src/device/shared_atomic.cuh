// Atomic additions to shared memory (PTX ISA "atom").
#pragma once

#include "device/shared_memory.cuh"

namespace tmaops::device {

/// Adds to a number in shared memory and returns its old value in the threads where the condition holds, and 0 in the
/// others. It is one instruction with a predicate; the compiler makes a branch of the same in C++.
__device__ __forceinline__ std::uint32_t add_where(bool condition, std::uint32_t& number, std::uint32_t summand) {
  std::uint32_t before = 0;
  asm volatile("{\n .reg .pred p;\n setp.ne.u32 p, %3, 0;\n @p atom.shared.add.u32 %0, [%1], %2;\n}"
               : "+r"(before)
               : "r"(shared_address(&number)), "r"(summand), "r"(static_cast<std::uint32_t>(condition))
               : "memory");
  return before;
}

}  // namespace tmaops::device
