// Which variant runs when the caller names none.
#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_variant(variants(), name, problem, device);
  // The list is best first at every size: oneDNN runs on our threads, so it has no start-up cost that would make the
  // blocked kernel win on small problems.
  return first_variant(variants(), problem, device);
}

}  // namespace tmaops::ops::gemm
