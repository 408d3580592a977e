#include "probe/descriptors.hpp"

#include "core/enum_name.hpp"
#include "probe/random_spec.hpp"
#include "probe/rule_examples.hpp"

namespace tmaops::probe {
namespace {

enum class QuirkId : std::size_t {
#define TMAOPS_TMA_QUIRK(id, driver, text) id,
#include "probe/quirks.def"
#undef TMAOPS_TMA_QUIRK
};

constexpr Quirk kQuirks[] = {
#define TMAOPS_TMA_QUIRK(id, driver, text) {#id, tma::Driver::driver, text},
#include "probe/quirks.def"
#undef TMAOPS_TMA_QUIRK
};

const Quirk& quirk(QuirkId id) { return kQuirks[static_cast<std::size_t>(id)]; }

/// Bytes of a load as the driver counts them, for a box that is in range.
std::int64_t bytes_by_driver(const tma::TensorMapSpec& spec) {
  std::int64_t bytes = bits_of(spec.dtype) / 8;
  for (std::size_t i = 0; i < spec.box.size(); ++i)  // at most 256 elements each: no overflow
    bytes *= spec.box[i] / (spec.element_strides.empty() ? 1 : spec.element_strides[i]);
  return bytes;
}

/// The quirk that lets a specification pass although it breaks this rule.
const Quirk* quirk_about(const tma::Rule& broken, const tma::TensorMapSpec& spec) {
  if (&broken == &tma::rule(tma::RuleId::interleave_32_swizzle)) return &quirk(QuirkId::interleave_32_any_swizzle);
  if (&broken == &tma::rule(tma::RuleId::tile_bytes) && spec.mode == tma::Mode::tiled &&
      bytes_by_driver(spec) <= tma::kLargestTile)
    return &quirk(QuirkId::element_strides_round_down);
  return nullptr;
}

}  // namespace

std::string_view to_string(Agreement agreement) {
  constexpr std::string_view names[] = {"agrees", "quirk", "disagrees", "not asked"};
  return enum_name(names, agreement);
}

Verdict put_to_driver(const tma::TensorMapSpec& spec, int compute_capability, const AskDriver& ask) {
  Verdict verdict{.spec = spec};
  const tma::Findings found = tma::find_violations(spec, compute_capability);
  for (const tma::Finding& finding : found.all())
    if (finding.rule->severity == tma::Severity::error &&
        (verdict.broken.empty() || verdict.broken.back() != finding.rule->id))
      verdict.broken.emplace_back(finding.rule->id);
  verdict.valid = verdict.broken.empty();
  if (!tma::fits_driver(spec)) return verdict;
  verdict.driver = ask(spec);
  if (verdict.driver.accepted() == verdict.valid) {
    verdict.agreement = Agreement::agrees;
    return verdict;
  }
  verdict.quirk = quirk_of(spec, found, verdict.driver.accepted());
  verdict.agreement = verdict.quirk != nullptr ? Agreement::quirk : Agreement::disagrees;
  return verdict;
}

std::vector<MatrixRow> run_matrix(std::uint64_t address, int compute_capability, const AskDriver& ask) {
  std::vector<MatrixRow> rows;
  for (const RuleExample& example : rule_examples()) {
    const tma::Rule& rule = tma::rule(example.id);
    if (rule.scope == tma::Scope::load) continue;
    tma::TensorMapSpec spec = example.spec;
    if (spec.address == 0) spec.address = address;
    rows.push_back({&rule, example.breaks, put_to_driver(spec, compute_capability, ask)});
  }
  return rows;
}

SpecificationRun run_specifications(const SpecificationOptions& options, int compute_capability, const AskDriver& ask,
                                    const Observer& observer) {
  RandomSpecs random({.seed = options.seed, .base_address = options.address, .blackwell = compute_capability >= 100});
  SpecificationRun run;
  while (run.count < options.count && !observer.stop()) {
    if (run.count % 1000 == 0) observer.progress(run.count, options.count, "random specifications");
    Verdict verdict = put_to_driver(random.near_edge(), compute_capability, ask);
    ++run.count;
    run.tiled += verdict.spec.mode == tma::Mode::tiled ? 1 : 0;
    run.accepted += verdict.driver.accepted() ? 1 : 0;
    if (verdict.agreement == Agreement::agrees) {
      ++run.agreed;
    } else if (verdict.agreement == Agreement::quirk) {
      ++run.quirks[std::string(verdict.quirk->id)];
    } else {
      ++run.disagreed;
      if (run.disagreements.size() < SpecificationRun::kMostShown) run.disagreements.push_back(std::move(verdict));
    }
  }
  return run;
}

std::span<const Quirk> quirks() { return kQuirks; }

const Quirk* quirk_of(const tma::TensorMapSpec& spec, const tma::Findings& found, bool accepted) {
  if (!accepted) return nullptr;  // no quirk is known where the driver refuses what the rules allow
  const Quirk* last = nullptr;
  for (const tma::Finding& finding : found.all()) {
    if (finding.rule->severity != tma::Severity::error) continue;
    last = quirk_about(*finding.rule, spec);
    if (last == nullptr) return nullptr;
  }
  return last;
}

}  // namespace tmaops::probe
