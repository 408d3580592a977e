// Which variant runs a problem when the caller names none: on the CPU the first of the list that takes it, on a GPU the
// first of an order that depends on the problem.
#include <array>

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample {
namespace {

/// Whether fetching a guessed window of rows at once beats loading only the rows that are needed: when most rows of the
/// window are needed, that is unless targets are much sparser than samples. (Copies of what is not needed cost
/// 64,1000->500,512 a tenth; waiting for the search first costs 64,1024->4096,64 half.)
bool most_rows_are_needed(const Problem& problem) { return 4 * problem.target >= 3 * problem.source; }

std::array<std::string_view, 3> order(const Problem& problem) {
  if (most_rows_are_needed(problem)) return {"bulk_window", "touched_rows", "narrow_rows"};
  return {"touched_rows", "bulk_window", "narrow_rows"};
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
