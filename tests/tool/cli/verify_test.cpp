// `tmaops verify` as a user runs it.
#include <gtest/gtest.h>

#include "cli/bench_fixture.hpp"

namespace tmaops::test {
namespace {

TEST(Verify, checks_every_variant) {
  const ToolResult result = run_tool({"verify", "-p", kSmallProblem, "--seed", "7"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_text(result.out, "RC 32", "reference", "ok");
}

TEST(Verify, a_wrong_result_ends_with_one_and_the_command_that_repeats_it) {
  // No f32 result keeps within 1e-12 of the reference, so this tolerance makes every variant fail.
  const ToolResult result =
      run_tool({"verify", "-p", "resample: {case: '4,50->60,8'}", "--tolerance", "1e-12", "--seed", "7"});
  EXPECT_EQ(result.exit_code, 1);
  expect_text(result.out, "WRONG");
  expect_text(result.err, "E090", "tmaops verify -p 'resample: {case: \"4,50->60,8\"}' --seed 7");
}

TEST(Verify, the_repeating_command_is_the_same_problem) {
  const ToolResult first = run_tool({"verify", "-p", "resample: {case: \"4,50->60,8\"}", "--seed", "7", "--json"});
  const ToolResult second = run_tool({"verify", "-p", "resample: {case: \"4,50->60,8\"}", "--seed", "7", "--json"});
  EXPECT_EQ(Json::parse(first.out)["rows"], Json::parse(second.out)["rows"]) << "the same seed gives the same errors";
}

TEST(Verify, says_how_to_get_the_executor) {
  const ToolResult result = run_tool({"verify", "executor", "--seeds", "8", "--schedule", "lazy"});
  EXPECT_EQ(result.exit_code, 4);
  expect_text(result.err, "E078", "make executor", "build-executor/bin/tmaops");
}

TEST(Verify, refuses_a_schedule_that_does_not_exist) {
  const ToolResult result = run_tool({"verify", "executor", "--schedule", "fair"});
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "--schedule", "starving");
}

}  // namespace
}  // namespace tmaops::test
