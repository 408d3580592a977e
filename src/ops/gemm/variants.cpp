// The table of the gemm variants.
#include <vector>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

#define TMAOPS_VARIANTS_INC "gemm_variants.inc"
#include "core/variant_table.inc"

}  // namespace tmaops::ops::gemm
