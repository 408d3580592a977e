// How the variant cuts a call.
#pragma once

#include "ops/resample/forward/shared/narrow.hpp"

namespace tmaops::ops::resample::narrow_rows_plain {

/// Whether what every block writes is whole chunks, for blocks of `targets` targets one after the other.
bool stores_tiles(const Problem& problem, std::int64_t targets, bool whole);

}  // namespace tmaops::ops::resample::narrow_rows_plain
