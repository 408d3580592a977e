#include "io/config.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace tmaops::io {
namespace {

using test::expect_error;

constexpr std::string_view kOperators[] = {"gemm", "resample"};

RunConfig parse(const std::string& text) { return parse_config(parse_yaml(text, "c.yaml"), kOperators); }

std::vector<std::string> texts(const std::vector<Settings>& problems) {
  std::vector<std::string> all;
  for (const Settings& problem : problems) all.push_back(problem.to_text());
  return all;
}

TEST(Config, lists_expand_to_products_with_the_last_key_fastest) {
  const RunConfig config = parse("gemm: {mode: [RC, CR], size: [256, 512], dtype: f16}\n");
  EXPECT_EQ(
      texts(config.problems),
      (std::vector<std::string>{"gemm: {mode: RC, size: 256, dtype: f16}", "gemm: {mode: RC, size: 512, dtype: f16}",
                                "gemm: {mode: CR, size: 256, dtype: f16}", "gemm: {mode: CR, size: 512, dtype: f16}"}));
}

TEST(Config, versions_and_variants_stay_together) {
  const RunConfig config = parse("gemm: {version: [1, 2], size: [256, 512], variant: simd}\n");
  ASSERT_EQ(config.problems.size(), 2u);
  EXPECT_EQ(config.problems[1].find_all("version").size(), 2u);
  EXPECT_EQ(config.problems[1].find("size")->value, "512");
}

TEST(Config, a_section_may_be_a_list_of_sections) {
  const RunConfig config = parse("resample:\n  - {case: a}\n  - {case: [b, c]}\ngemm: {size: 1}\n");
  EXPECT_EQ(texts(config.problems), (std::vector<std::string>{"resample: {case: a}", "resample: {case: b}",
                                                              "resample: {case: c}", "gemm: {size: 1}"}));
}

TEST(Config, run_keys_are_read) {
  const RunConfig config = parse(
      "device: cpu\ntemperature: both\nsamples: 7\nmin_time: 0.5\nseed: 9\npeers: [copy, numpy]\nthreads: 3\nvariants: "
      "all\ncounters: true\n");
  EXPECT_EQ(config.device, "cpu");
  EXPECT_EQ(config.temperature, "both");
  EXPECT_EQ(config.samples, 7);
  EXPECT_EQ(config.min_time, 0.5);
  EXPECT_EQ(config.seed, 9u);
  EXPECT_EQ(config.peers, (std::vector<std::string>{"copy", "numpy"}));
  EXPECT_EQ(config.threads, 3);
  EXPECT_TRUE(config.all_variants);
  EXPECT_TRUE(config.counters);
  EXPECT_FALSE(parse("gemm: {size: 1}\n").counters);
}

TEST(Config, mistakes_are_named_with_their_place) {
  expect_error(
      ErrorCode::unknown_key, [] { parse("gemm: {size: 1}\ntempertaure: hot\n"); }, "c.yaml:2:1",
      "Did you mean 'temperature'?");
  expect_error(
      ErrorCode::unknown_key, [] { parse("gem: {size: 1}\n"); }, "c.yaml:1:1", "Did you mean 'gemm'?");
  expect_error(
      ErrorCode::wrong_type, [] { parse("samples: many\n"); }, "c.yaml:1:10", "'many'");
  expect_error(
      ErrorCode::wrong_type, [] { parse("samples: [1, 2]\n"); }, "c.yaml:1:10", "a list");
  expect_error(
      ErrorCode::wrong_type, [] { parse("gemm: {size: {a: 1}}\n"); }, "c.yaml:1:14", "a mapping");
  expect_error(
      ErrorCode::wrong_type, [] { parse("gemm: {size: [1, [2]]}\n"); }, "c.yaml:1:18");
  expect_error(
      ErrorCode::wrong_type, [] { parse("gemm: {size: []}\n"); }, "c.yaml:1:14");
  expect_error(
      ErrorCode::wrong_type, [] { parse("gemm: 5\n"); }, "c.yaml:1:7");
  expect_error(
      ErrorCode::wrong_type, [] { parse("gemm: {size: }\n"); }, "nothing");
  expect_error(
      ErrorCode::wrong_type, [] { parse("- 1\n"); }, "a list");
  expect_error(
      ErrorCode::bad_value, [] { parse("samples: 2\n"); }, "c.yaml:1:10", "5 to");
  expect_error(
      ErrorCode::bad_value, [] { parse("device: gpu\n"); }, "auto, cpu, cuda");
  expect_error(
      ErrorCode::bad_value, [] { parse("operators: [gemm, conv]\n"); }, "c.yaml:1:19", "'conv'");
}

TEST(Config, a_product_without_end_is_refused) {
  std::string list = "[0";
  for (int i = 1; i < 200; ++i) list += ", " + std::to_string(i);
  list += "]";
  expect_error(
      ErrorCode::bad_value, [&] { parse("gemm: {m: " + list + ", n: " + list + "}\n"); }, "10000");
}

TEST(Config, problems_of_an_option_name_the_option) {
  EXPECT_EQ(texts(parse_problems("gemm: {size: [1, 2]}", "-p", kOperators)),
            (std::vector<std::string>{"gemm: {size: 1}", "gemm: {size: 2}"}));
  expect_error(
      ErrorCode::unknown_key, [] { parse_problems("seed: 1", "-p #2", kOperators); }, "-p #2:1:1");
  expect_error(
      ErrorCode::wrong_type, [] { parse_problems("gemm", "-p", kOperators); }, "-p:1:1");
}

}  // namespace
}  // namespace tmaops::io
