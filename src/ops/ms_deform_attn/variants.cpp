// The table of forward variants, made from variants.def.
#include <vector>

#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn {
#define TMAOPS_VARIANTS_INC "ms_deform_attn_variants.inc"
#include "core/variant_table.inc"
}  // namespace tmaops::ops::ms_deform_attn
