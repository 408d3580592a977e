#include <gtest/gtest.h>

#include <set>

#include "probe/rule_examples.hpp"

namespace tmaops::tma {
namespace {

std::vector<Finding> findings_of(const probe::RuleExample& example) {
  if (rule(example.id).scope == Scope::load) {
    Report report = check(example.spec, example.load);
    report.errors.insert(report.errors.end(), report.warnings.begin(), report.warnings.end());
    return report.errors;
  }
  return find_violations(example.spec, example.compute_capability).all();
}

TEST(Rules, every_rule_has_a_breaking_and_a_boundary_example) {
  for (const Rule& each : rules()) {
    bool broken = false;
    bool kept = false;
    for (const probe::RuleExample& example : probe::rule_examples())
      if (&rule(example.id) == &each) (example.breaks ? broken : kept) = true;
    EXPECT_TRUE(broken) << "no specification in rule_examples.cpp breaks " << each.id;
    EXPECT_TRUE(kept) << "no specification in rule_examples.cpp lies just inside " << each.id;
  }
}

TEST(Rules, breaking_examples_are_found_and_boundary_examples_are_not) {
  for (const probe::RuleExample& example : probe::rule_examples()) {
    const Rule& wanted = rule(example.id);
    bool found = false;
    std::string others;
    for (const Finding& finding : findings_of(example)) {
      if (finding.rule == &wanted) {
        found = true;
        EXPECT_FALSE(finding.text.empty());
      } else if (finding.rule->severity == Severity::error) {
        others += std::string(finding.rule->id) + ": " + finding.text + "\n";
      }
    }
    EXPECT_EQ(found, example.breaks) << wanted.id << " on " << example.spec.text();
    // A boundary example shows nothing when another rule hides it.
    if (!example.breaks) {
      EXPECT_EQ(others, "") << wanted.id << " on " << example.spec.text();
    }
  }
}

TEST(Rules, the_table_is_complete_and_well_formed) {
  std::set<std::string_view> ids;
  for (const Rule& each : rules()) {
    EXPECT_TRUE(ids.insert(each.id).second) << each.id << " twice";
    EXPECT_FALSE(each.text.empty()) << each.id;
    EXPECT_FALSE(each.source.empty()) << each.id;
    EXPECT_EQ(each.driver == Driver::not_asked, each.scope == Scope::load) << each.id;
    if (each.severity == Severity::warning) {
      EXPECT_NE(each.driver, Driver::refuses) << each.id;
    }
  }
}

TEST(Rules, every_violation_is_reported_at_once) {
  TensorMapSpec spec = tiled_spec(ElementType::u16, {60, 32}, {300, 0});
  spec.strides = {121};
  spec.fill = Fill::nan;
  spec.swizzle = Swizzle::b64;
  spec.address = 0x1001;
  spec.element_strides = {1, 9};
  std::set<std::string_view> ids;
  for (const Finding& finding : check(spec).errors) ids.insert(finding.rule->id);
  EXPECT_EQ(ids, (std::set<std::string_view>{"address_16", "stride_16", "box_range", "box_inner_16",
                                             "element_stride_range", "fill_nan"}));
}

TEST(Rules, messages_carry_the_numbers) {
  const auto only = [](const TensorMapSpec& spec) {
    const Report report = check(spec);
    return report.errors.empty() ? std::string("none") : report.errors.front().text;
  };
  EXPECT_EQ(only(tiled_spec(ElementType::f16, {64, 4}, {2, 2})), "inner box 2 x 2 B = 4 B, not a multiple of 16 B");
  EXPECT_EQ(only(tiled_spec(ElementType::f32, {3, 4}, {4, 2})), "strides[0] = 12 B, not a multiple of 16 B");
  TensorMapSpec wide = tiled_spec(ElementType::f32, {64, 4}, {64, 2});
  wide.swizzle = Swizzle::b128;
  EXPECT_EQ(only(wide), "inner box 64 x 4 B = 256 B, more than the 128 B of swizzle 128B");
  EXPECT_EQ(only(tiled_spec(ElementType::f16, {64, 0}, {64, 1})),
            "dims[1] = 0, needs 1 to 4294967296 (an empty tensor has no map: skip the load)");
}

TEST(Rules, huge_and_negative_numbers_are_reported_not_computed_with) {
  constexpr std::int64_t most = INT64_MAX;
  for (const std::int64_t value : {most, -most, INT64_MIN, most - 7}) {
    TensorMapSpec spec = tiled_spec(ElementType::f64, {value, value, value}, {value, value, value});
    spec.strides = {value, value};
    spec.element_strides = {value, value, value};
    EXPECT_FALSE(check(spec).valid());
    spec.mode = Mode::im2col;
    spec.lower_corner = spec.upper_corner = {value};
    spec.channels_per_pixel = spec.pixels_per_column = value;
    EXPECT_FALSE(check(spec).valid());
    EXPECT_FALSE(check(tiled_spec(ElementType::f16, {64, 32, 8}, {64, 2, 2}), {{value, value, value}, 0}).valid());
  }
}

}  // namespace
}  // namespace tmaops::tma
