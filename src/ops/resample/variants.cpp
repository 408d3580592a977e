// The table of variants, from variants.def.
#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample {
#define TMAOPS_VARIANTS_INC "resample_variants.inc"
#include "core/variant_table.inc"
}  // namespace tmaops::ops::resample
