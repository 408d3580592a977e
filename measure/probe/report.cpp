#include "probe/report.hpp"

#include <algorithm>

#include "tmaops/version.hpp"

namespace tmaops::probe {
namespace {

using Json = nlohmann::ordered_json;

Json verdict_json(const Verdict& verdict) {
  Json json{{"specification", verdict.spec.text()}, {"rules", verdict.valid ? "allow" : "forbid"}};
  json["broken"] = verdict.broken;
  json["driver"] = verdict.agreement == Agreement::not_asked ? Json(nullptr) : Json(verdict.driver.name);
  json["verdict"] = to_string(verdict.agreement);
  json["quirk"] = verdict.quirk != nullptr ? Json(verdict.quirk->id) : Json(nullptr);
  return json;
}

Json matrix_json(const std::vector<MatrixRow>& matrix) {
  Json rules = Json::array();
  for (const RuleSummary& one : summarise(matrix))
    rules.push_back({{"rule", one.rule->id},
                     {"inside", {{"examples", one.inside}, {"accepted", one.inside_accepted}}},
                     {"outside", {{"examples", one.outside}, {"refused", one.outside_refused}}},
                     {"verdict", one.verdict()}});
  Json examples = Json::array();
  for (const MatrixRow& row : matrix) {
    Json example{{"rule", row.rule->id}, {"side", row.outside ? "outside" : "inside"}};
    example.update(verdict_json(row.verdict));
    examples.push_back(std::move(example));
  }
  return {{"rules", std::move(rules)}, {"examples", std::move(examples)}};
}

Json specifications_json(const SpecificationRun& run) {
  Json json{{"count", run.count},
            {"tiled", run.tiled},
            {"im2col", run.count - run.tiled},
            {"accepted", run.accepted},
            {"agreed", run.agreed}};
  json["quirks"] = Json::object();
  for (const Quirk& quirk : quirks()) {
    const auto found = run.quirks.find(std::string(quirk.id));
    json["quirks"][std::string(quirk.id)] = found == run.quirks.end() ? 0 : found->second;
  }
  json["disagreed"] = run.disagreed;
  json["disagreements"] = Json::array();
  for (const Verdict& verdict : run.disagreements) json["disagreements"].push_back(verdict_json(verdict));
  return json;
}

Json loads_json(const LoadRun& run) {
  Json json{{"count", run.count}, {"exact", run.exact}, {"bytes_compared", run.bytes}};
  json["covered"] = run.covered;
  json["mismatches"] = Json::array();
  for (const LoadMismatch& one : run.mismatches)
    json["mismatches"].push_back({{"specification", one.load.spec.text()},
                                  {"at", one.load.load.coordinates},
                                  {"base", one.load.load.shared_address},
                                  {"first_byte", one.first_byte},
                                  {"got", one.got},
                                  {"want", one.want}});
  return json;
}

}  // namespace

int Report::exit_code() const {
  if (!complete) return 130;
  const bool explained =
      std::ranges::none_of(matrix,
                           [](const MatrixRow& row) { return row.verdict.agreement == Agreement::disagrees; }) &&
      specifications.disagreed == 0 && loads.exact == loads.count &&
      std::ranges::all_of(faults, [](const FaultRun& run) { return run.expected; });
  return explained ? 0 : 1;
}

std::string_view RuleSummary::verdict() const {
  if (disagreements > 0) return "disagrees";
  if (quirks > 0) return "quirk";
  if (outside_asked == 0) return "not asked";
  if (inside > 0 && inside_accepted == 0 && rule->driver == tma::Driver::refuses) return "hidden";
  return "agrees";
}

std::vector<RuleSummary> summarise(const std::vector<MatrixRow>& matrix) {
  std::vector<RuleSummary> rules;
  for (const MatrixRow& row : matrix) {
    auto found = std::ranges::find(rules, row.rule, &RuleSummary::rule);
    if (found == rules.end()) found = rules.insert(rules.end(), {.rule = row.rule});
    const bool accepted = row.verdict.driver.accepted();
    found->quirks += row.verdict.agreement == Agreement::quirk ? 1 : 0;
    found->disagreements += row.verdict.agreement == Agreement::disagrees ? 1 : 0;
    ++(row.outside ? found->outside : found->inside);
    if (row.verdict.agreement == Agreement::not_asked) continue;
    if (row.outside) ++found->outside_asked;
    if (row.outside && !accepted) ++found->outside_refused;
    if (!row.outside && accepted) ++found->inside_accepted;
  }
  return rules;
}

Json to_json(const Report& report, const Json& machine) {
  Json document{{"schema", 1}, {"status", report.complete ? "complete" : "partial"}};
  document["machine"] = machine;
  document["revision"] = revision();
  document["seed"] = report.seed;
  document["compute_capability"] = report.compute_capability;
  document["matrix"] = matrix_json(report.matrix);
  document["specifications"] = specifications_json(report.specifications);
  document["loads"] = loads_json(report.loads);
  document["faults"] = Json::array();
  for (const FaultRun& run : report.faults)
    document["faults"].push_back(
        {{"fault", run.fault->name}, {"text", run.fault->text}, {"outcome", run.outcome}, {"expected", run.expected}});
  return document;
}

}  // namespace tmaops::probe
