#include "probe/descriptors.hpp"

#include "probe/random_spec.hpp"
#include "probe/rule_examples.hpp"

namespace tmaops::probe {

std::string_view to_string(Agreement agreement) {
  switch (agreement) {
    case Agreement::agrees:
      return "agrees";
    case Agreement::quirk:
      return "quirk";
    case Agreement::disagrees:
      return "disagrees";
    case Agreement::not_asked:
      return "not asked";
  }
  return "";
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

}  // namespace tmaops::probe
