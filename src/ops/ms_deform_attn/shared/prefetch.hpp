// Asking for memory ahead of its use, where the processor does not foresee it.
#pragma once

#include <cstddef>

namespace tmaops::ops::ms_deform_attn {

inline constexpr std::size_t kCacheLine = 64;

/// Asks for one cache line. GCC takes functions that do nothing else for ones without effects and drops the calls; the
/// empty assembly is an effect.
inline void prefetch_line(const void* address) {
  __builtin_prefetch(address);
  __asm__ volatile("");
}
inline void prefetch_line_to_write(const void* address) {
  __builtin_prefetch(address, 1);
  __asm__ volatile("");
}

/// Asks for the cache lines of `bytes` from `address` on.
inline void prefetch(const void* address, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kCacheLine) prefetch_line(static_cast<const char*>(address) + i);
}
inline void prefetch_to_write(const void* address, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kCacheLine) prefetch_line_to_write(static_cast<const char*>(address) + i);
}

}  // namespace tmaops::ops::ms_deform_attn
