// Which variant runs a problem when the caller names none: on the CPU the first of the table that takes it, on a GPU
// the first of an order that depends on the problem (docs/findings/resample.md, R1 to R3).
#include <array>
#include <bit>

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample {
namespace {

constexpr std::int64_t kShort = 8 << 20;  // bytes of output
constexpr std::int64_t kWide = 512;       // bytes of a row

/// Kernels that guess which rows a tile needs and fetch them with its times, best first: they wait for one memory
/// latency.
constexpr std::array<std::string_view, 3> kWindows{"bulk_window_lane", "bulk_window_block", "bulk_window"};
/// Kernels that read only the rows they need, best first.
constexpr std::array<std::string_view, 2> kTouched{"touched_rows_lane", "touched_rows"};
/// Kernels for rows that are not whole chunks, best first.
constexpr std::array<std::string_view, 2> kNarrowRows{"narrow_rows_plain", "narrow_rows"};

bool is_short(const Problem& problem) { return problem.batch * problem.target * problem.row_bytes() < kShort; }

/// Whether the lanes of a warp can share a row, each with a search of its own.
bool suits_lanes(const Problem& problem) {
  return problem.times == DType::f32 && std::has_single_bit(static_cast<std::uint64_t>(problem.row_bytes()));
}

/// Whether a target needs one row.
bool takes_one_row(const Problem& problem) {
  return problem.groups.size() == 1 && (problem.groups[0].interpolation == Interpolation::previous ||
                                        problem.groups[0].interpolation == Interpolation::next);
}

/// Whether a guessed window of rows beats reading those that are needed: where samples serve two targets each or more,
/// and in short calls with a target per sample. A long call with a target per sample gains only where no kernel with a
/// search per lane takes its rows.
bool windows_win(const Problem& problem) {
  const bool one_is_enough =
      is_short(problem) || !(suits_lanes(problem) || takes_one_row(problem) || problem.row_bytes() >= kWide);
  return problem.target >= (one_is_enough ? 1 : 2) * problem.source;
}

/// Place of a GPU variant in the order for a problem; nothing for a variant that is not known here.
std::optional<double> rank(std::string_view variant, const Problem& problem) {
  constexpr double kLast = 100;
  // In long calls it loses to the next of its family.
  const double lost = variant == "bulk_window_lane" && !is_short(problem) ? kLast : 0;
  const bool windows = windows_win(problem);
  // Where lanes cannot search, a short plain call with a target per two samples wants one memory latency, not two.
  if (variant == "bulk_window_block" && is_short(problem) && !suits_lanes(problem) && !takes_one_row(problem) &&
      2 * problem.target >= problem.source)
    return 5;
  for (std::size_t i = 0; i < kWindows.size(); ++i)
    if (variant == kWindows[i]) return lost + (windows ? 10 : 20) + static_cast<double>(i);
  for (std::size_t i = 0; i < kTouched.size(); ++i)
    if (variant == kTouched[i]) return (windows ? 20 : 10) + static_cast<double>(i);
  for (std::size_t i = 0; i < kNarrowRows.size(); ++i)
    if (variant == kNarrowRows[i]) return 30 + static_cast<double>(i);
  if (variant == "warp_search") return 50;
  if (variant == "curve_window") return 60;
  if (variant == "element_search") return kLast - 1;
  return std::nullopt;
}

}  // namespace

Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name,
                                          VariantTable<Problem, Arguments, Config> table) {
  const auto estimate = [&](const auto& variant, const Config&) -> std::optional<double> {
    return variant.device == DeviceType::cuda ? rank(variant.name, problem) : std::nullopt;
  };
  return name.empty() ? best_choice(table, problem, device, estimate)
                      : named_choice(table, name, problem, device, estimate);
}

}  // namespace tmaops::ops::resample
