// `tmaops probe` where it has nothing to probe; with a GPU, a short run.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "support/scratch.hpp"
#include "support/tool.hpp"

namespace tmaops::test {
namespace {

bool no_device(const ToolResult& result) {
  if (result.exit_code != 4) return false;
  EXPECT_TRUE(std::regex_search(result.err, std::regex("E07[0-7]"))) << result.err;
  EXPECT_EQ(result.out, "");
  return true;
}

TEST(ProbeCommand, without_a_gpu_says_why_and_leaves_no_file) {
  const Scratch scratch;
  const std::string file = (scratch / "probe.json").string();
  const ToolResult result = run_tool({"probe", "-o", file}, {{"CUDA_VISIBLE_DEVICES", ""}});
  ASSERT_TRUE(no_device(result)) << result.exit_code << result.err;
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(ProbeCommand, short_run) {
  const ToolResult result = run_tool({"probe", "--json", "--specs", "2000", "--loads", "100", "--skip-faults"});
  if (no_device(result)) GTEST_SKIP() << result.err;
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_EQ(nlohmann::json::parse(result.out)["loads"]["exact"], 100);
}

TEST(ProbeCommand, the_faults_command_is_hidden_and_works) {
  const ToolResult help = run_tool({"--help"});
  EXPECT_EQ(help.out.find("probe-fault"), std::string::npos);
  EXPECT_EQ(run_tool({"completion", "bash"}).out.find("probe-fault"), std::string::npos);
  const ToolResult unknown = run_tool({"probe-fault", "no_such_fault"});
  EXPECT_TRUE(unknown.exit_code == 2 || unknown.exit_code == 4) << unknown.err;  // 4: built without CUDA
}

TEST(ProbeCommand, refuses_numbers_out_of_range) {
  EXPECT_EQ(run_tool({"probe", "--specs", "-1"}).exit_code, 2);
  EXPECT_EQ(run_tool({"probe", "--loads", "many"}).exit_code, 2);
}

}  // namespace
}  // namespace tmaops::test
