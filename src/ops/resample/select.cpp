// Which variant runs a problem when the caller names none: on the CPU the first of the list that takes it, on a GPU the
// first of an order that depends on the problem.
#include <array>

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample {
namespace {

/// GPU variants from best to worst, as measured (docs/findings/resample_gpu.md). Fetching a guessed window of rows at
/// once wins while most rows of the window are needed, that is unless targets are sparser than samples; rows of 1 KB
/// are best copied by a warp each, and rows of 512 B that serve many targets come from the cache.
std::array<std::string_view, 3> order(const Problem& problem) {
  const std::int64_t row_bytes = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  if (4 * problem.target < 3 * problem.source)
    return row_bytes >= 1024 ? std::array<std::string_view, 3>{"warp_search", "touched_rows", "narrow_rows"}
                             : std::array<std::string_view, 3>{"touched_rows", "narrow_rows", "warp_search"};
  if (row_bytes >= 512 && problem.target >= 4 * problem.source) return {"touched_rows", "bulk_window", "narrow_rows"};
  return {"bulk_window", "touched_rows", "narrow_rows"};
}

}  // namespace

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_variant(variants(), name, problem, device);
  if (device.device.type == DeviceType::cuda)
    for (const std::string_view wanted : order(problem))
      for (const auto& variant : variants())
        if (variant.name == wanted && try_variant(variant, problem, device)) return variant;
  return first_variant(variants(), problem, device);
}

}  // namespace tmaops::ops::resample
