// Which variant runs when the caller names none: the first of variants.def that takes the problem.
#include "ops/ms_deform_attn/problem.hpp"
#include "ops/ms_deform_attn/problem_backward.hpp"

namespace tmaops::ops {

namespace ms_deform_attn {
const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  return name.empty() ? first_variant(variants(), problem, device) : named_variant(variants(), name, problem, device);
}
}  // namespace ms_deform_attn

namespace ms_deform_attn_backward {
const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  return name.empty() ? first_variant(variants(), problem, device) : named_variant(variants(), name, problem, device);
}
}  // namespace ms_deform_attn_backward

}  // namespace tmaops::ops
