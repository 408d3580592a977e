// The table of variants of the backward pass, from variants.def.
#include "ops/resample/problem_backward.hpp"

namespace tmaops::ops::resample_backward {
#define TMAOPS_VARIANTS_INC "resample_backward_variants.inc"
#include "core/variant_table.inc"
}  // namespace tmaops::ops::resample_backward
