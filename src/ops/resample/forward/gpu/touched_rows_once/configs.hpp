// How the variant cuts a call.
#pragma once

#include "ops/resample/forward/shared/plain.hpp"

namespace tmaops::ops::resample::touched_rows_once {

gpu::PlainCut plain_cut(const Problem& problem, const Config& config);

}  // namespace tmaops::ops::resample::touched_rows_once
