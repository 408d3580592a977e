#include "cli/probe_output.hpp"

#include "cli/table.hpp"

namespace tmaops::cli {
namespace {

Style style_of(std::string_view verdict) {
  if (verdict == "agrees") return Style::good;
  if (verdict == "disagrees") return Style::bad;
  return verdict == "quirk" ? Style::bold : Style::faint;
}

std::string of(int count, int all) { return all == 0 ? "-" : std::to_string(count) + " of " + std::to_string(all); }

std::string matrix_text(const probe::Report& report, bool color) {
  Table table("rule|accepted inside|refused outside|verdict");
  for (const probe::RuleSummary& one : probe::summarise(report.matrix))
    table.add({{std::string(one.rule->id)},
               {of(one.inside_accepted, one.inside)},
               {of(one.outside_refused, one.outside)},
               {std::string(one.verdict()), style_of(one.verdict())}});
  std::string text = table.text(color);
  for (const probe::MatrixRow& row : report.matrix)
    if (row.verdict.agreement == probe::Agreement::disagrees)
      text += "disagrees: " + std::string(row.rule->id) + (row.outside ? " outside" : " inside") + ", the driver " +
              (row.verdict.driver.accepted() ? "accepts" : "refuses") + "\n  tmaops tensormap " +
              row.verdict.spec.text() + "\n";
  return text;
}

std::string specifications_text(const probe::SpecificationRun& run) {
  std::string text = "random specifications: " + std::to_string(run.count) + ", " + std::to_string(run.agreed) +
                     " agree, " + std::to_string(run.disagreed) + " disagree; the driver accepts " +
                     std::to_string(run.accepted) + "\n";
  for (const auto& [id, count] : run.quirks) text += "  quirk " + id + ": " + std::to_string(count) + "\n";
  for (const probe::Verdict& verdict : run.disagreements)
    text += "  the driver " + std::string(verdict.driver.accepted() ? "accepts" : "refuses") + " tmaops tensormap " +
            verdict.spec.text() + "\n";
  return text;
}

std::string loads_text(const probe::LoadRun& run) {
  std::string text = "loads against the model: " + std::to_string(run.exact) + " of " + std::to_string(run.count) +
                     " exact to the bit\n";
  for (const probe::LoadMismatch& one : run.mismatches) {
    std::string at;
    for (const std::int64_t c : one.load.load.coordinates) at += (at.empty() ? "" : ",") + std::to_string(c);
    text += "  byte " + std::to_string(one.first_byte) + " is " + std::to_string(one.got) + ", not " +
            std::to_string(one.want) + ": tmaops tensormap " + one.load.spec.text() + " --at " + at + " --base " +
            std::to_string(one.load.load.shared_address) + "\n";
  }
  return text;
}

}  // namespace

std::string probe_text(const probe::Report& report, bool color) {
  std::string text =
      matrix_text(report, color) + "\n" + specifications_text(report.specifications) + loads_text(report.loads);
  if (report.faults.empty()) return text;
  Table table("fault|symptom|what is wrong");
  for (const probe::FaultRun& run : report.faults)
    table.add({{std::string(run.fault->name)},
               {run.outcome, run.expected ? Style::plain : Style::bad},
               {std::string(run.fault->text), Style::faint}});
  return text + "\n" + table.text(color);
}

}  // namespace tmaops::cli
