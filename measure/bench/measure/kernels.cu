#include "bench/measure/kernels.hpp"
#include "core/cuda_launch.hpp"
#include "device/vector.cuh"
#include "device/watchdog.cuh"

namespace tmaops::bench {
namespace {

constexpr unsigned kThreads = 256;

__global__ void __launch_bounds__(kThreads) copy_kernel(uint4* to, const uint4* from, std::int64_t chunks) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < chunks) device::store_16(to + i, device::load_16(from + i));
}
__global__ void empty_kernel() {}

/// From one tick of the timer to another, since its ticks are up to a microsecond long.
__global__ void clock_kernel(ClockSpan* span) {
  constexpr std::uint64_t kNanoseconds = 20'000;
  const std::uint64_t before = device::global_nanoseconds();
  std::uint64_t first = before;
  while (first == before) first = device::global_nanoseconds();
  const std::int64_t begin = device::cycles();
  std::uint64_t last = first;
  while (last - first < kNanoseconds) last = device::global_nanoseconds();
  *span = {device::cycles() - begin, static_cast<std::int64_t>(last - first)};
}

}  // namespace

void launch_copy(void* to, const void* from, std::int64_t chunks, Stream stream) {
  if (chunks == 0) return;
  launch_kernel<copy_kernel>("copy",
                             {.grid = static_cast<unsigned>((chunks + kThreads - 1) / kThreads), .block = kThreads},
                             stream, static_cast<uint4*>(to), static_cast<const uint4*>(from), chunks);
}

void launch_empty(Stream stream, bool dependent) {
  launch_kernel<empty_kernel>("empty kernel", {.grid = 1, .block = 32, .dependent = dependent}, stream);
}

void launch_clock(ClockSpan* span, Stream stream) {
  launch_kernel<clock_kernel>("clock", {.grid = 1, .block = 1}, stream, span);
}

}  // namespace tmaops::bench
