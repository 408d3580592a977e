// How the variant cuts a call.
#pragma once

#include "ops/resample/forward/shared/narrow.hpp"

namespace tmaops::ops::resample::narrow_rows_plain {

/// Whether what every block writes is whole chunks, for blocks of `targets` targets one after the other.
bool stores_tiles(const Problem& problem, std::int64_t targets, bool whole);
/// Shared memory per block with which ceil(blocks / multiprocessors) blocks fit on one, and no more; 0 if fewer fit
/// anyway. `needed`: bytes that a block uses; `most`: that it may ask for.
int one_generation(std::int64_t blocks, int threads, int needed, int most, const DeviceInfo& device);

}  // namespace tmaops::ops::resample::narrow_rows_plain
