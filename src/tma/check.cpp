// The report about a specification or a load, and its text.
#include <limits>

#include "core/entry.hpp"
#include "tma/rules.hpp"
#include "tma/sizes.hpp"
#include "tma/swizzle.hpp"

namespace tmaops::tma {
namespace {

Report sorted(const Findings& found) {
  Report report;
  for (const Finding& finding : found.all())
    (finding.rule->severity == Severity::error ? report.errors : report.warnings).push_back(finding);
  return report;
}

Findings find_load_violations(const TensorMapSpec& spec, const TileLoad& load) {
  Findings found;
  const std::vector<std::int64_t>& at = load.coordinates;
  if (at.size() != spec.dims.size())
    found.add(RuleId::load_coordinates,
              std::to_string(at.size()) + " coordinates, rank " + std::to_string(spec.rank()));
  for (std::size_t i = 0; i < at.size(); ++i)
    if (at[i] < std::numeric_limits<std::int32_t>::min() || at[i] > std::numeric_limits<std::int32_t>::max())
      found.add(RuleId::load_coordinates,
                "coordinate[" + std::to_string(i) + "] = " + std::to_string(at[i]) + " does not fit in 32 bits");
  // The same holds for negative coordinates, which are counted from the start of the row.
  if (!at.empty() && found.all().empty() && spec.mode == Mode::tiled && spec.interleave == Interleave::none &&
      !is_packed(spec.dtype) && at[0] % (128 / bits_of(spec.dtype)) != 0)
    found.add(RuleId::load_inner_16,
              "coordinate[0] = " + std::to_string(at[0]) + " x " + std::to_string(bits_of(spec.dtype) / 8) +
                  " B = " + std::to_string(at[0] * (bits_of(spec.dtype) / 8)) + " B, not a multiple of 16 B");
  if (load.shared_address % 128 != 0)
    found.add(RuleId::load_destination_128, "destination " + hex(load.shared_address) + " is " +
                                                std::to_string(load.shared_address % 128) + " past a multiple of 128");
  else if (const std::uint32_t period = swizzle_period(spec.swizzle); load.shared_address % period != 0)
    found.add(RuleId::load_swizzle_phase, "destination " + hex(load.shared_address) + " is " +
                                              std::to_string(load.shared_address % period) + " past a multiple of " +
                                              std::to_string(period) + ": the pattern starts at row " +
                                              std::to_string(load.shared_address % period / 128) + " of it");
  return found;
}

}  // namespace

Report check(const TensorMapSpec& spec, int compute_capability) {
  return public_entry("tensor map", [&] {
    const Findings found = find_violations(spec, compute_capability);
    Report report = sorted(found);
    if (!report.valid()) report.proposal = propose(spec, found, compute_capability);
    return report;
  });
}

Report check(const TensorMapSpec& spec, const TileLoad& load) {
  return public_entry("tensor map", [&] { return sorted(find_load_violations(spec, load)); });
}

std::string Report::text() const {
  return public_entry("tensor map", [&] {
    std::string lines;
    const auto list = [&](const std::vector<Finding>& findings, std::string_view word) {
      for (const Finding& finding : findings)
        lines += std::string(word) + " [" + std::string(finding.rule->id) + "] " + finding.text + "\n";
    };
    list(errors, "error");
    list(warnings, "warning");
    if (proposal) lines += "valid instead: " + proposal->change + "\n  " + proposal->spec.text() + "\n";
    return lines;
  });
}

}  // namespace tmaops::tma
