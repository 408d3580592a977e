// The operators of this build and their variants, for everything that only lists them.
#include "tmaops/registry.hpp"

#include "tmaops/error.hpp"

namespace tmaops {

#define TMAOPS_OPERATOR(op)                \
  namespace ops::op {                      \
  std::vector<VariantInfo> variant_list(); \
  }
#include "operators.inc"
#undef TMAOPS_OPERATOR

std::vector<std::string_view> operators() {
  return {
#define TMAOPS_OPERATOR(op) #op,
#include "operators.inc"
#undef TMAOPS_OPERATOR
  };
}

std::vector<VariantInfo> variants(std::string_view op) {
#define TMAOPS_OPERATOR(name) \
  if (op == #name) return ops::name::variant_list();
#include "operators.inc"
#undef TMAOPS_OPERATOR
  std::string known;
  for (const std::string_view name : operators()) known += (known.empty() ? "" : ", ") + std::string(name);
  throw Error(ErrorCode::unknown_variant,
              {.where = "operator", .got = "'" + std::string(op) + "'", .needed = "one of " + known});
}

}  // namespace tmaops
