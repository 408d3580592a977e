// Where `tmaops bench` puts its result file, what it leaves out, and how that shows.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "cli/bench_fixture.hpp"

namespace tmaops::test {
namespace {

const std::string kTooLarge = "{m: 16777216, n: 1, k: 16777216}";

/// The tool in a folder, with arguments in the shell's syntax.
ToolResult in_folder(const Scratch& folder, const std::string& arguments) {
  return Tool({"-c", "cd \"$1\" && \"$0\" " + arguments, TMAOPS_TOOL, folder.path().string()}, {}, "bash").wait();
}
const std::string kBench = "bench -p '" + kSmallProblem + "' --samples 5 --min-time 0";

TEST(BenchOutput, none_is_written_when_none_is_wanted) {
  const Scratch folder;
  for (const char* none : {" --no-output", " -o /dev/null"}) {
    const ToolResult result = in_folder(folder, kBench + none);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_text(result.out, "RC 32");
    EXPECT_EQ(result.err.find("results:"), std::string::npos) << result.err;
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(BenchOutput, a_dash_is_stdout_and_a_file_of_that_name_has_a_folder) {
  const Scratch folder;
  const ToolResult piped = in_folder(folder, kBench + " -o -");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_EQ(Json::parse(piped.out, nullptr, false)["status"], "complete") << piped.out;
  expect_text(piped.err, "RC 32", "median");
  EXPECT_TRUE(folder.names().empty());
  EXPECT_EQ(in_folder(folder, kBench + " -o ./-").exit_code, 0);
  EXPECT_EQ(folder.names(), (std::set<std::string>{"-"}));
}

TEST(BenchOutput, a_configuration_comes_from_stdin_too) {
  const Scratch folder;
  const ToolResult result = in_folder(folder, "list - --json <<<'" + kSmallProblem + "'");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out, nullptr, false)[0]["case"], "RC 32");
  const ToolResult wrong = in_folder(folder, "verify - <<<'gemm: {sise: 8}'");
  expect_text(wrong.err, "E061", "stdin:1:8");
}

TEST(BenchOutput, a_folder_that_cannot_be_made_is_named_with_the_reason_and_the_way_out) {
  const Scratch folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  const auto run = [&](const std::string& more) {
    return in_child([&] {
      obey_permissions();
      const ToolResult result = in_folder(folder, kBench + more);
      const bool named =
          result.err.find("E052") != std::string::npos && result.err.find("Permission denied") != std::string::npos &&
          result.err.find("-o") != std::string::npos && result.err.find("--no-output") != std::string::npos;
      return result.exit_code == 2 && named ? 0 : 1;
    });
  };
  EXPECT_EQ(run(""), 0);
  EXPECT_EQ(run(" -o r.json"), 0);
}

TEST(BenchOutput, a_configuration_that_comes_with_tmaops_is_found_from_anywhere) {
  const Scratch folder;
  expect_text(in_folder(folder, "list quick --device cpu").out, "enc1/detr", "chosen");
  const ToolResult nothing = in_folder(folder, "verify");
  EXPECT_EQ(nothing.exit_code, 2);
  expect_text(nothing.err, "tmaops bench quick");
  const ToolResult quick = in_folder(folder, "verify quick --operator resample --device cpu");
  EXPECT_EQ(quick.exit_code, 0) << quick.err;
  expect_text(quick.out, "32,500->256,256");
  const ToolResult unknown = in_folder(folder, "bench quik");
  EXPECT_EQ(unknown.exit_code, 2);
  expect_text(unknown.err, "E040", "Did you mean 'quick'?");
  folder.file("quick", kSmallProblem);
  expect_text(in_folder(folder, "verify quick").out, "RC 32");
}

TEST(BenchMemory, a_problem_that_is_too_large_is_left_out_and_the_others_run) {
  const Scratch folder;
  const std::string both = "gemm:\n  - {size: 8, dtype: f32}\n  - " + kTooLarge + "\n";
  const std::string config = folder.file("c.yaml", both).string();
  const ToolResult bench =
      run_tool({"bench", config, "--samples", "5", "--min-time", "0", "-o", (folder / "r.json").string()});
  EXPECT_EQ(bench.exit_code, 3) << bench.err;
  expect_text(bench.err, "left out: not enough memory", "c.yaml:3:5", "m: 16777216");
  const Json json = read_json(folder / "r.json");
  EXPECT_EQ(json["rows"].size(), 1u);
  EXPECT_EQ(json["refused"].size(), 1u);
  EXPECT_EQ(run_tool({"verify", config}).exit_code, 3);
  EXPECT_EQ(run_tool({"verify", "-p", "gemm: " + kTooLarge}).exit_code, 5) << "nothing ran";
  EXPECT_EQ(run_tool({"list", config}).exit_code, 0) << "list needs no memory";
}

TEST(BenchMemory, list_reserves_none) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve terabytes";
#endif
  const ToolResult result =
      Tool({"-c", "ulimit -v 100000; \"$0\" list -p 'gemm: {size: 16384}'", TMAOPS_TOOL}, {}, "bash").wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_text(result.out, "chosen");
}

TEST(BenchMemory, sizes_that_overflow_have_a_line) {
  const Scratch folder;
  const std::string config =
      folder.file("c.yaml", "gemm: {size: 8}\nresample: {case: \"2147483647,2147483647->2147483647,2147483647\"}\n");
  for (const char* command : {"list", "verify"}) {
    const ToolResult result = run_tool({command, config});
    EXPECT_EQ(result.exit_code, 2);
    expect_text(result.err, "E0", "c.yaml:2:");
  }
}

TEST(BenchPeers, one_that_was_named_and_is_not_there_ends_with_three) {
  const Scratch folder;
  const std::string file = (folder / "r.json").string();
  const ToolResult result = run_tool(
      short_bench(file, {"-q", "--device", "cpu", "--peers", "copy,torch_eager,cublas", "--python", "/no/python"}));
  EXPECT_EQ(result.exit_code, 3);
  expect_text(result.err, "torch_eager is left out", "/no/python", "cublas is left out");
  std::set<std::string> refused;
  const Json json = read_json(file);
  for (const Json& one : json["refused"]) refused.insert(one["implementation"]);
  EXPECT_EQ(refused, (std::set<std::string>{"torch_eager", "cublas"}));
}

TEST(BenchPeers, of_a_configuration_are_wishes) {
  const Scratch folder;
  const std::string config = folder.file(
      "c.yaml", "device: cpu\nsamples: 5\nmin_time: 0\npeers: [torch_eager, cublas]\n" + kSmallProblem + "\n");
  const ToolResult result = run_tool({"bench", config, "--python", "/no/python", "-o", (folder / "r.json").string()});
  EXPECT_EQ(result.exit_code, 0);
  expect_text(result.err, "torch_eager is left out");
}

TEST(BenchPeers, a_reason_is_told_once_and_recorded_for_every_case) {
  const Scratch folder;
  const ToolResult result =
      run_tool(short_bench(folder / "r.json", {"--peers", "torch_eager", "--python", "/no/python"},
                           "gemm: {size: [8, 16, 24], dtype: f32}"));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.err.find("left out"), result.err.rfind("left out")) << result.err;
  EXPECT_EQ(read_json(folder / "r.json")["refused"].size(), 3u);
}

TEST(BenchCompare, a_bare_number_is_no_percentage) {
  for (const char* share : {"5", "1", "100"}) {
    const ToolResult result =
        run_tool({"bench", "-p", kSmallProblem, "--compare", "base.json", "--fail-if-slower", share});
    EXPECT_EQ(result.exit_code, 2);
    expect_text(result.err, "E100", "--fail-if-slower", "5%", "0.05", std::string("Write ") + share + "%");
  }
  for (const char* share : {"5%", "0.05", "150%"})
    expect_text(run_tool({"bench", "-p", kSmallProblem, "--compare", "/no/base.json", "--fail-if-slower", share}).err,
                "E040");
}

TEST(List, takes_a_configuration_and_the_variant_that_a_problem_names) {
  const Scratch folder;
  const std::string config = folder.file("c.yaml", kSmallProblem + "\n");
  const ToolResult listed = run_tool({"list", config, "--json"});
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_EQ(Json::parse(listed.out, nullptr, false)[0]["case"], "RC 32");
  const ToolResult unknown = run_tool({"list", "-p", "gemm: {size: 8, variant: foo}"});
  EXPECT_EQ(unknown.exit_code, 2);
  expect_text(unknown.err, "E024", "'foo'", "reference");
  const Json named = Json::parse(
      run_tool({"list", "-p", "gemm: {size: 8, dtype: f32, variant: reference}", "--json"}).out, nullptr, false);
  EXPECT_EQ(named[0]["selected"], "reference");
}

TEST(Verify, variants_that_need_a_gpu_share_one_line) {
  const ToolResult result = run_tool({"verify", "--device", "cpu", "-p", "gemm: {size: [8, 16], dtype: f16}"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::size_t first = result.err.find("GPU");
  ASSERT_NE(first, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("GPU", first + 1), std::string::npos) << result.err;
  expect_text(result.err, "left out, as they run on a GPU: gemm: ");
}

}  // namespace
}  // namespace tmaops::test
