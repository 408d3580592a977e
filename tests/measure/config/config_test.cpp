#include "config/config.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace tmaops::io {
namespace {

using test::expect_error;

constexpr std::string_view kOperators[] = {"gemm", "resample"};

constexpr std::string_view kOptions[] = {"samples", "temperature", "peers"};
constexpr std::string_view kLists[] = {"peers"};

Configuration parse(const std::string& text) {
  return parse_configuration(parse_yaml(text, "c.yaml"), {kOptions, kLists, kOperators});
}

std::vector<std::string> texts(const std::vector<Settings>& problems) {
  std::vector<std::string> all;
  for (const Settings& problem : problems) all.push_back(problem.to_text());
  return all;
}

TEST(Config, lists_expand_to_products_with_the_last_key_fastest) {
  const Configuration config = parse("gemm: {mode: [RC, CR], size: [256, 512], dtype: f16}\n");
  EXPECT_EQ(
      texts(config.problems),
      (std::vector<std::string>{"gemm: {mode: RC, size: 256, dtype: f16}", "gemm: {mode: RC, size: 512, dtype: f16}",
                                "gemm: {mode: CR, size: 256, dtype: f16}", "gemm: {mode: CR, size: 512, dtype: f16}"}));
}

TEST(Config, versions_and_variants_stay_together) {
  const Configuration config = parse("gemm: {version: [1, 2], size: [256, 512], variant: simd}\n");
  ASSERT_EQ(config.problems.size(), 2u);
  EXPECT_EQ(config.problems[1].find_all("version").size(), 2u);
  EXPECT_EQ(config.problems[1].find("size")->value, "512");
}

TEST(Config, a_section_may_be_a_list_of_sections) {
  const Configuration config = parse("resample:\n  - {case: a}\n  - {case: [b, c]}\ngemm: {size: 1}\n");
  EXPECT_EQ(texts(config.problems), (std::vector<std::string>{"resample: {case: a}", "resample: {case: b}",
                                                              "resample: {case: c}", "gemm: {size: 1}"}));
}

TEST(Config, options_are_kept_as_they_were_written) {
  const Configuration config = parse("samples: 7\npeers: [copy, numpy]\ngemm: {size: 1}\n");
  EXPECT_EQ(config.options.integer("samples", 30, 5, 100), 7);
  ASSERT_EQ(config.options.find_all("peers").size(), 2u);
  EXPECT_EQ(config.options.find_all("peers")[1]->value, "numpy");
  EXPECT_FALSE(config.options.has("temperature"));
  EXPECT_FALSE(parse("peers: []\n").options.has("peers"));
}

TEST(Config, mistakes_are_named_with_their_place) {
  expect_error(
      ErrorCode::unknown_key, [] { parse("gemm: {size: 1}\ntempertaure: hot\n"); }, "c.yaml:2:1",
      "Did you mean 'temperature'?");
  expect_error(ErrorCode::unknown_key, [] { parse("gem: {size: 1}\n"); }, "c.yaml:1:1", "Did you mean 'gemm'?");
  expect_error(ErrorCode::wrong_type, [] { parse("samples: [1, 2]\n"); }, "c.yaml:1:10", "a list");
  expect_error(ErrorCode::wrong_type, [] { parse("gemm: {size: {a: 1}}\n"); }, "c.yaml:1:14", "a mapping");
  expect_error(ErrorCode::wrong_type, [] { parse("gemm: {size: [1, [2]]}\n"); }, "c.yaml:1:18");
  expect_error(ErrorCode::wrong_type, [] { parse("gemm: {size: []}\n"); }, "c.yaml:1:14");
  expect_error(ErrorCode::wrong_type, [] { parse("gemm: 5\n"); }, "c.yaml:1:7");
  expect_error(ErrorCode::wrong_type, [] { parse("gemm: {size: }\n"); }, "nothing");
  expect_error(ErrorCode::wrong_type, [] { parse("- 1\n"); }, "a list");
}

TEST(Config, a_product_without_end_is_refused) {
  std::string list = "[0";
  for (int i = 1; i < 200; ++i) list += ", " + std::to_string(i);
  list += "]";
  expect_error(ErrorCode::bad_value, [&] { parse("gemm: {m: " + list + ", n: " + list + "}\n"); }, "10000");
}

TEST(Config, problems_of_an_option_name_the_option) {
  EXPECT_EQ(texts(parse_problems("gemm: {size: [1, 2]}", "-p", kOperators)),
            (std::vector<std::string>{"gemm: {size: 1}", "gemm: {size: 2}"}));
  expect_error(ErrorCode::unknown_key, [] { parse_problems("seed: 1", "-p #2", kOperators); }, "-p #2:1:1");
  expect_error(ErrorCode::wrong_type, [] { parse_problems("gemm", "-p", kOperators); }, "-p:1:1");
}

}  // namespace
}  // namespace tmaops::io
