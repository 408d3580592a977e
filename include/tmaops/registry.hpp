// What operators and variants this build has.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tmaops/export.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops {

/// One line of an operator's variants.def.
struct VariantInfo {
  std::string_view op;           // "gemm"
  std::string_view name;         // "onednn"
  DeviceType device;             // where it runs
  std::string_view arch;         // "any", "sm80", "sm90", "sm90a"
  std::string_view description;  // one line
  int version = 0;               // N of the ladder ("version: N" in a configuration); 0: none
  bool built = true;             // false: left out of this build
  std::string_view missing{};    // why it was left out, and how to get it
  bool study = false;            // there to be compared: never chosen by itself
};

/// Operators in alphabetical order, backward passes apart ("ms_deform_attn_backward").
TMAOPS_API std::vector<std::string_view> operators();
/// Variants of one operator, best first, reference last. Throws Error (unknown_variant) for an unknown operator.
TMAOPS_API std::vector<VariantInfo> variants(std::string_view op);

}  // namespace tmaops
