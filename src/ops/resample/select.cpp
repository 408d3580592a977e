// Which variant runs a problem when the caller names none: on the CPU the first of the list that takes it, on a GPU the
// first of an order that depends on the problem.
#include <array>
#include <bit>

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample {
namespace {

/// GPU variants from best to worst, as measured (docs/findings/resample.md, R1). Fetching a guessed window of rows at
/// once wins where samples serve two targets each or more, and in short calls with a target per sample, which wait for
/// one memory latency instead of two. Else only the rows that are needed are read: with a target per sample random
/// stamps would cost 5 to 7 %, and even ones gain at most 2 %, so that only calls for which touched_rows has no kernel
/// with a search per lane (plain_plan.cuh) gain. Long calls whose narrow rows serve several targets each write most of
/// their bytes: there copies by all threads beat bulk ones by 2 to 9 %.
std::array<std::string_view, 5> order(const Problem& problem) {
  constexpr std::int64_t kShort = 8 << 20;  // bytes of output, some 6 us
  constexpr std::int64_t kWide = 512;       // bytes of a row
  constexpr std::int64_t kNarrow = 128;
  const std::int64_t row = problem.channels * static_cast<std::int64_t>(size_of(problem.values));
  const bool few = problem.batch * problem.target * row < kShort;
  if (!few && row <= kNarrow && problem.target >= 2 * problem.source)
    return {"async_pipeline", "bulk_window", "touched_rows", "narrow_rows", "warp_search"};
  const bool one_row = problem.groups.size() == 1 && (problem.groups[0].interpolation == Interpolation::previous ||
                                                      problem.groups[0].interpolation == Interpolation::next);
  const bool per_lane = problem.times == DType::f32 && std::has_single_bit(static_cast<std::uint64_t>(row));
  if (problem.target >= (few || !(per_lane || one_row || row >= kWide) ? 1 : 2) * problem.source)
    return {"bulk_window", "touched_rows", "narrow_rows", "async_pipeline", "warp_search"};
  return {"touched_rows", "bulk_window", "narrow_rows", "async_pipeline", "warp_search"};
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
