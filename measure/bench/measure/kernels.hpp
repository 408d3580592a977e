// The kernels of the ceilings and of the timer.
#pragma once

#include <cstdint>

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// One 16-byte load and store per thread. `chunks` of 16 bytes.
void launch_copy(void* to, const void* from, std::int64_t chunks, Stream stream);
/// A kernel that does nothing. `dependent`: by programmatic dependent launch.
void launch_empty(Stream stream, bool dependent = false);

/// Cycles of a multiprocessor, and the nanoseconds of its timer in which they passed.
struct ClockSpan {
  std::int64_t cycles = 0;
  std::int64_t nanoseconds = 0;
};
/// One thread counts both for a short while. `span` is memory that the GPU can write.
void launch_clock(ClockSpan* span, Stream stream);

}  // namespace tmaops::bench
