// Hints about misspelt words, also where other words stand beside them.
#include <gtest/gtest.h>

#include "support/tool.hpp"

namespace tmaops::test {
namespace {

void expect_hint(const std::vector<std::string>& arguments, const std::string& hint) {
  const ToolResult result = run_tool(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  expect_text(result.err, "Did you mean '" + hint + "'?");
}

TEST(Suggestions, a_misspelt_word_may_have_company) {
  expect_hint({"resample", "x.csv", "-o", "y.csv", "--hz", "3", "--outsid", "hold"}, "--outside");
  expect_hint({"resample", "x.csv", "-o", "y.csv", "--hz", "3", "--outsid=hold"}, "--outside");
  expect_hint({"tensormap", "--dims", "8,8", "--dtypes", "f16"}, "--dtype");
  expect_hint({"resmple", "x.csv", "-o", "y.csv"}, "resample");
  expect_hint({"bench", "-p", "gemm: {size: 8}", "--sampels", "5", "--no-output"}, "--samples");
}

TEST(Suggestions, a_misspelt_option_is_found_where_another_is_missing_for_it) {
  expect_hint({"resample", "x.csv", "--outptu", "y.csv", "--hz", "3"}, "--output");
}

TEST(Suggestions, options_of_groups_are_known) {
  expect_hint({"resample", "x.csv", "-o", "y.csv", "--liek", "z.csv"}, "--like");
}

TEST(Suggestions, a_value_too) {
  expect_hint({"--color", "alwyas", "doctor"}, "always");
  expect_hint({"resample", "x.csv", "-o", "y.csv", "--hz", "3", "--outside", "hodl"}, "hold");
}

TEST(Suggestions, words_stand_in_their_order) {
  expect_text(run_tool({"doctor", "--outsid", "hold"}).err, "--outsid hold");
}

TEST(Suggestions, a_gpu_is_called_cuda) {
  for (const char* name : {"gpu", "cuda:0", "GPU"})
    expect_hint({"bench", "-p", "gemm: {size: 8}", "--no-output", "--device", name}, "cuda");
  expect_hint({"bench", "-p", "gemm: {size: 8}", "--no-output", "--device", "cpuu"}, "cpu");
}

TEST(Suggestions, no_option_is_named_that_a_command_does_not_have) {
  const ToolResult probe = run_tool({"probe", "--specs", "10", "--loads", "10", "--skip-faults"});
  EXPECT_EQ(probe.err.find("--device"), std::string::npos) << probe.err;
  const ToolResult bench = run_tool({"bench", "-p", "gemm: {size: 8}", "--no-output", "--device", "cuda"});
  if (bench.exit_code == 4) expect_text(bench.err, "--device cpu");
}

}  // namespace
}  // namespace tmaops::test
