// The matrix and the random specifications with simulated drivers: one that keeps the rules, and some that do not.
#include <gtest/gtest.h>

#include <set>

#include "probe/report.hpp"

namespace tmaops::probe {
namespace {

constexpr std::uint64_t kAddress = 1U << 20;

tma::DriverAnswer answer(bool accepts) { return accepts ? tma::DriverAnswer{} : tma::DriverAnswer{1, "refused"}; }

/// Refuses specifications that break a rule with `refuses` in rules.def.
AskDriver faithful_driver(int compute_capability) {
  return [=](const tma::TensorMapSpec& spec) {
    const tma::Findings found = tma::find_violations(spec, compute_capability);
    bool refuses = false;
    for (const tma::Finding& finding : found.all()) refuses = refuses || finding.rule->driver == tma::Driver::refuses;
    return answer(!refuses);
  };
}

TEST(DescriptorMatrix, has_every_map_rule_on_both_sides) {
  const auto summaries = summarise(run_matrix(kAddress, 100, faithful_driver(100)));
  std::set<std::string_view> ids;
  for (const RuleSummary& one : summaries) {
    EXPECT_GT(one.inside, 0) << one.rule->id;
    EXPECT_GT(one.outside, 0) << one.rule->id;
    ids.insert(one.rule->id);
  }
  for (const tma::Rule& rule : tma::rules()) {
    EXPECT_EQ(ids.contains(rule.id), rule.scope != tma::Scope::load) << rule.id;
  }
}

TEST(DescriptorMatrix, a_faithful_driver_agrees) {
  for (const RuleSummary& one : summarise(run_matrix(kAddress, 100, faithful_driver(100)))) {
    // Lists of wrong lengths cannot be passed; the quirk is what rules.def says the driver accepts.
    const std::string_view wanted = one.rule->id == "list_lengths"            ? "not asked"
                                    : one.rule->id == "interleave_32_swizzle" ? "quirk"
                                                                              : "agrees";
    // The architecture's examples are those of a Hopper.
    if (one.rule->id != "architecture") {
      EXPECT_EQ(one.verdict(), wanted) << one.rule->id;
    }
  }
}

TEST(DescriptorMatrix, what_a_hopper_cannot_show_is_hidden) {
  for (const RuleSummary& one : summarise(run_matrix(kAddress, 90, faithful_driver(90)))) {
    if (one.rule->id == "packed4_swizzle" || one.rule->id == "dim_packed_128") {
      EXPECT_EQ(one.verdict(), "hidden") << one.rule->id;
    }
    EXPECT_NE(one.verdict(), "disagrees") << one.rule->id;
  }
}

TEST(DescriptorMatrix, a_driver_that_differs_at_one_edge_is_found) {
  const AskDriver faithful = faithful_driver(90);
  const auto rows = run_matrix(kAddress, 90, [&](const tma::TensorMapSpec& spec) {
    return spec.box.size() > 1 && spec.box[1] == 256 ? answer(false) : faithful(spec);
  });
  std::set<std::string_view> found;
  for (const RuleSummary& one : summarise(rows))
    if (one.verdict() == "disagrees") found.insert(one.rule->id);
  EXPECT_TRUE(found.contains("box_range")) << "the box of 256 elements was refused";
  EXPECT_FALSE(found.contains("stride_16"));
  EXPECT_EQ((Report{.matrix = rows}).exit_code(), 1);
}

TEST(RandomSpecifications, are_counted_by_verdict) {
  const AskDriver faithful = faithful_driver(90);
  const SpecificationRun agreeing =
      run_specifications({.seed = 3, .count = 5000, .address = kAddress}, 90, faithful, {});
  EXPECT_EQ(agreeing.count, 5000U);
  EXPECT_EQ(agreeing.disagreed, 0U);
  std::size_t quirks = 0;
  for (const auto& [id, count] : agreeing.quirks) quirks += count;
  EXPECT_GT(quirks, 0U) << "interleave 32B with another swizzle is drawn now and then";
  EXPECT_EQ(agreeing.agreed + quirks, 5000U);
  EXPECT_GT(agreeing.tiled, 2500U);
  EXPECT_LT(agreeing.tiled, 5000U);

  const SpecificationRun never = run_specifications({.seed = 3, .count = 5000, .address = kAddress}, 90,
                                                    [](const auto&) { return answer(false); }, {});
  EXPECT_EQ(never.accepted, 0U);
  EXPECT_GT(never.disagreed, 1000U);
  EXPECT_EQ(never.disagreements.size(), SpecificationRun::kMostShown);
  EXPECT_TRUE(never.disagreements.front().valid);
}

TEST(RandomSpecifications, stop_when_asked_to) {
  Observer observer;
  observer.stop = [calls = 0]() mutable { return ++calls > 100; };
  EXPECT_EQ(run_specifications({.count = 5000, .address = kAddress}, 90, faithful_driver(90), observer).count, 100U);
}

}  // namespace
}  // namespace tmaops::probe
