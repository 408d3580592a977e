// The operators of this build and their variants, for everything that only lists them.
#include "tmaops/registry.hpp"

#include "core/entry.hpp"
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
    throw Error(ErrorCode::unknown_variant, {.where = "operator",
                                             .got = "'" + std::string(op) + "'",
                                             .needed = "one of " + joined(known),
                                             .mend = did_you_mean(op, known)});
  });
}

}  // namespace tmaops
