// The table of backward variants, made from variants.def.
#include <vector>

#include "ops/ms_deform_attn/problem_backward.hpp"

namespace tmaops::ops::ms_deform_attn_backward {
#define TMAOPS_VARIANTS_INC "ms_deform_attn_backward_variants.inc"
#include "core/variant_table.inc"
}  // namespace tmaops::ops::ms_deform_attn_backward
