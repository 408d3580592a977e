// Dependent launch at its best, for calls whose blocks are all resident at once. The blocks of the next call start
// while those of this one run (let_next_kernel_start() first), and have the L2 fetch what they will read before they
// wait (wait_for_previous_kernel()): prefetches may come too early, as the L2 is where all writes meet, so the reads of
// one call hide behind the end of the one in front. This pays only if every multiprocessor takes the same number of
// blocks of one call and then of the next, so blocks ask for so much shared memory that no more than that number fit.
// With more, blocks of the calls that wait fill the multiprocessors unevenly (4096,100->50,7: 4.0 us with exactly one
// generation, 4.4 with one block more, 5.3 with two generations, 4.6 without all this).
#pragma once

#include "core/device_info.hpp"

namespace tmaops::ops::resample::cuda {

/// Shared memory per block with which ceil(blocks / multiprocessors) blocks fit on one, and no more; 0 if fewer fit
/// anyway. `needed`: bytes that a block uses; `most`: that it may ask for.
inline int one_generation(std::int64_t blocks, int threads, int needed, int most, const DeviceInfo& device) {
  constexpr std::int64_t kReserved = 1024;  // of every block, by the driver
  constexpr std::int64_t kMostThreads = 1536;
  if (device.multiprocessors <= 0) return 0;
  const std::int64_t each = (blocks + device.multiprocessors - 1) / device.multiprocessors;
  if (each * threads > kMostThreads) return 0;
  const std::int64_t fit = (device.shared_memory_per_block + kReserved) / each - kReserved;
  if (fit < needed) return 0;
  return static_cast<int>(std::min<std::int64_t>(fit / 128 * 128, most));
}

}  // namespace tmaops::ops::resample::cuda
