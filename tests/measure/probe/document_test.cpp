// What docs/tma.md says about hardware is what the committed result of `tmaops probe` says.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "probe/report.hpp"

namespace tmaops::probe {
namespace {

std::string content(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(TMAOPS_SOURCE_DIR "/" + path).rdbuf();
  return text.str();
}

nlohmann::ordered_json results() { return nlohmann::ordered_json::parse(content("results/h100/probe.json")); }

TEST(ProbeDocument, the_committed_run_is_complete_and_explained) {
  const auto json = results();
  EXPECT_EQ(json["status"], "complete");
  EXPECT_GE(json["specifications"]["count"], 100'000);
  EXPECT_EQ(json["specifications"]["disagreed"], 0);
  EXPECT_EQ(json["loads"]["exact"], json["loads"]["count"]);
  for (const auto& rule : json["matrix"]["rules"]) EXPECT_NE(rule["verdict"], "disagrees") << rule["rule"];
  for (const Quirk& quirk : quirks())
    EXPECT_TRUE(json["specifications"]["quirks"].contains(std::string(quirk.id))) << quirk.id;
}

TEST(ProbeDocument, has_the_symptom_of_every_fault) {
  const std::string document = content("docs/tma.md");
  const auto json = results();
  for (const Fault& fault : faults()) {
    const bool in_run =
        std::ranges::any_of(json["faults"], [&](const auto& run) { return run["fault"] == fault.name; });
    const std::string row = "| `" + std::string(fault.name) + "` | " + std::string(fault.text) + " | ";
    EXPECT_NE(document.find(row + (in_run ? "" : "not in this run")), std::string::npos) << row;
  }
  for (const auto& run : json["faults"]) {
    const std::string row = "| `" + run["fault"].get<std::string>() + "` | " + run["text"].get<std::string>() + " | " +
                            run["outcome"].get<std::string>() + " |\n";
    EXPECT_NE(document.find(row), std::string::npos) << "docs/tma.md has no row\n" << row;
    EXPECT_EQ(run["expected"], true) << run["fault"];
  }
}

TEST(ProbeDocument, has_the_quirk_table) {
  std::string table = "| quirk | the driver | when |\n|---|---|---|\n";
  for (const Quirk& one : quirks())
    table += "| `" + std::string(one.id) + "` | " + std::string(to_string(one.driver)) + " | " + std::string(one.text) +
             " |\n";
  EXPECT_NE(content("docs/tma.md").find("\n" + table + "\n"), std::string::npos)
      << "the table in docs/tma.md differs from measure/probe/quirks.def; it should be\n"
      << table;
}

TEST(ProbeDocument, has_its_numbers) {
  const std::string document = content("docs/tma.md");
  const auto json = results();
  const auto with_commas = [](std::int64_t number) {
    std::string text = std::to_string(number);
    for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
    return text;
  };
  const auto& specifications = json["specifications"];
  std::string wanted =
      with_commas(specifications["agreed"]) + " of " + with_commas(specifications["count"]) + " random specifications";
  EXPECT_NE(document.find(wanted), std::string::npos) << wanted;
  for (const auto& [quirk, count] : specifications["quirks"].items()) {
    wanted = with_commas(count) + " are `" + quirk + "`";
    EXPECT_NE(document.find(wanted), std::string::npos) << wanted;
  }
  wanted = "All " + with_commas(json["loads"]["count"]) + " random loads";
  EXPECT_NE(document.find(wanted), std::string::npos) << wanted;
}

}  // namespace
}  // namespace tmaops::probe
