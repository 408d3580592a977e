// The table of variants of the count of violations, from variants.def.
#include "ops/resample/problem_violations.hpp"

namespace tmaops::ops::resample_violations {
#define TMAOPS_VARIANTS_INC "resample_violations_variants.inc"
#include "core/variant_table.inc"
}  // namespace tmaops::ops::resample_violations
