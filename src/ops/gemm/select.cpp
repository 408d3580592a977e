// Which variant runs when the caller names none: on the CPU the first of the list that takes the problem, on a GPU the
// one that the model of tiling.hpp expects to be fastest.
#include "ops/gemm/problem.hpp"
#include "ops/gemm/tiling.hpp"

namespace tmaops::ops::gemm {

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_variant(variants(), name, problem, device);
  // On the CPU the list is best first at every size: oneDNN runs on our threads, so it has no start-up cost that would
  // make the blocked kernel win on small problems.
  if (device.device.type != DeviceType::cuda) return first_variant(variants(), problem, device);

  const Problem row_major = problem.d.order == Order::column ? transposed(problem) : problem;
  const Variant<Problem, Arguments>* best = nullptr;
  double least = 0;
  for (const auto& variant : variants()) {
    if (!try_variant(variant, problem, device)) continue;
    const Tiling& tiling = best_tiling(variant.name, row_major, device.multiprocessors);
    const double time = microseconds(tiling, row_major, device.multiprocessors);
    if (best != nullptr && time >= least) continue;
    best = &variant;
    least = time;
  }
  if (best != nullptr) return *best;
  return first_variant(variants(), problem, device);  // throws with every reason
}

}  // namespace tmaops::ops::gemm
