// What the executor holds kernels to, as `tmaops explain NAME` prints it in every build.
#pragma once

#include <string_view>

namespace tmaops::executor {

struct RulePage {
  std::string_view id, text;
};
inline constexpr RulePage kRules[] = {
#define TMAOPS_RULE(id, text) {#id, text},
#include "executor/rules.def"
#undef TMAOPS_RULE
};

}  // namespace tmaops::executor
