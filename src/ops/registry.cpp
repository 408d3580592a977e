// The operators of this build and their variants, for everything that only lists them.
#include "tmaops/registry.hpp"

#include "core/entry.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"

namespace tmaops {

#define TMAOPS_OPERATOR(op)                \
  namespace ops::op {                      \
  std::vector<VariantInfo> variant_list(); \
  }
#include "operators.inc"
#undef TMAOPS_OPERATOR

std::vector<std::string_view> operators() {
  return public_entry("operators", [] {
    return std::vector<std::string_view>{
#define TMAOPS_OPERATOR(op) #op,
#include "operators.inc"
#undef TMAOPS_OPERATOR
    };
  });
}

std::vector<VariantInfo> variants(std::string_view op) {
  return public_entry("variants", [&] {
#define TMAOPS_OPERATOR(name) \
  if (op == #name) return ops::name::variant_list();
#include "operators.inc"
#undef TMAOPS_OPERATOR
    const std::vector<std::string_view> known = operators();
    fail(ErrorCode::unknown_variant, "operator", "'" + std::string(op) + "'", "one of " + joined(known),
         did_you_mean(op, known));
  });
}

}  // namespace tmaops
