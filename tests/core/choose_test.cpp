#include "core/choose.hpp"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <string>

#include "core/plan.hpp"
#include "support/expect_error.hpp"

namespace tmaops::choose_test {
namespace {

struct Problem {
  int size = 0;
  std::string text() const { return "toy: {size: " + std::to_string(size) + "}"; }
};
struct Arguments {
  int* out = nullptr;
};
struct Config {
  int width = 1;
  std::string text() const { return std::to_string(width) + " wide"; }
  friend bool operator==(const Config&, const Config&) = default;
};
using Toy = Variant<Problem, Arguments, Config>;
using Toys = VariantTable<Problem, Arguments, Config>;

Support any(const Problem&, const DeviceInfo&) { return Support::yes(); }
Support even(const Problem& problem, const DeviceInfo&) {
  return problem.size % 2 == 0 ? Support::yes() : Support::no("size is odd");
}
Work write_width(const Problem&, const Arguments& arguments, const Config& config) {
  return Work([arguments, config] { *arguments.out = config.width; });
}
std::vector<Config> two_and_four(const Problem&, const DeviceInfo&) { return {{2}, {4}}; }

Toy toy(std::string_view name, Support (*supports)(const Problem&, const DeviceInfo&) = any, bool configs = false,
        bool study = false) {
  return {"toy",
          name,
          DeviceType::cpu,
          "any",
          "",
          {.study = study},
          "",
          supports,
          write_width,
          configs ? two_and_four : nullptr};
}

const DeviceInfo& cpu() { return device_info({}); }

using Costs = std::map<std::string, double>;
std::string best(const std::vector<Toy>& table, const Costs& costs, int size = 2) {
  return best_choice(Toys(table), Problem{size}, cpu(),
                     [&](const Toy& variant, const Config& config) {
                       const auto found = costs.find(std::string(variant.name) + "/" + config.text());
                       return found == costs.end() ? std::optional<double>() : found->second;
                     })
      .name();
}

TEST(Choose, takes_the_first_that_accepts_where_there_is_no_model) {
  EXPECT_EQ(best({toy("a", even), toy("b")}, {}), "a/1 wide");
  EXPECT_EQ(best({toy("a", even), toy("b")}, {}, 3), "b/1 wide");
}

TEST(Choose, takes_the_cheapest_configuration_of_all_variants) {
  EXPECT_EQ(best({toy("a", any, true), toy("b")}, {{"a/2 wide", 3}, {"a/4 wide", 2}, {"b/1 wide", 2}}), "a/4 wide");
  EXPECT_EQ(best({toy("a", any, true), toy("b")}, {{"a/2 wide", 3}, {"a/4 wide", 2}, {"b/1 wide", 1}}), "b/1 wide");
}

TEST(Choose, takes_a_variant_without_a_model_only_above_those_with_one) {
  const Costs costs{{"b/1 wide", 5}};
  EXPECT_EQ(best({toy("new"), toy("b")}, costs), "new/1 wide");
  EXPECT_EQ(best({toy("b"), toy("new")}, costs), "b/1 wide");
}

TEST(Choose, never_takes_a_study) {
  EXPECT_EQ(best({toy("a", any, false, true), toy("b")}, {}), "b/1 wide");
  EXPECT_EQ(named_choice(Toys(std::array{toy("a", any, false, true)}), "a", Problem{}, cpu()).variant->name, "a");
}

TEST(Choose, refuses_with_every_reason) {
  const std::array table{toy("a", even)};
  test::expect_error(
      ErrorCode::variant_refuses, [&] { best_choice(Toys(table), Problem{3}, cpu()); }, "a: size is odd",
      "toy: {size: 3}");
}

TEST(Choose, takes_a_variant_and_its_configuration_by_name) {
  const std::array table{toy("a", any, true), toy("b", even)};
  const auto named = [&](std::string_view name) { return named_choice(Toys(table), name, Problem{3}, cpu()).name(); };
  EXPECT_EQ(named("a"), "a/2 wide");
  EXPECT_EQ(named("a/4 wide"), "a/4 wide");
  test::expect_error(ErrorCode::variant_refuses, [&] { named("a/8 wide"); }, "a/8 wide", "2 wide, 4 wide");
  test::expect_error(ErrorCode::variant_refuses, [&] { named("b"); }, "size is odd");
  test::expect_error(ErrorCode::unknown_variant, [&] { named("c"); }, "'c'", "a, b");
}

TEST(Plan, runs_what_was_chosen_and_says_what_it_was) {
  const std::array table{toy("a", any, true)};
  int out = 0;
  const Plan plan =
      make_plan(named_choice(Toys(table), "a/4 wide", Problem{}, cpu()), Problem{}, Arguments{.out = &out});
  EXPECT_EQ(plan.variant(), "a");
  EXPECT_EQ(plan.config(), "4 wide");
  EXPECT_EQ(out, 0);
  plan.run();
  EXPECT_EQ(out, 4);
}

}  // namespace
}  // namespace tmaops::choose_test
