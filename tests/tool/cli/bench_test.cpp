// `tmaops bench` as a user runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <regex>
#include <thread>

#include "cli/bench_fixture.hpp"

namespace tmaops::test {
namespace {

TEST(Bench, writes_a_table_and_a_result_file) {
  const Scratch folder;
  const ToolResult result = run_tool(short_bench(folder / "r.json", {"--peers", "copy", "--all-variants"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_text(result.out, "operator", "RC 32", "tmaops (", "copy", "reference");
  expect_text(result.err, "results: ");
  EXPECT_EQ(folder.names(), (std::set<std::string>{"r.json"})) << "nothing else is left";
  const Json json = read_json(folder / "r.json");
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["status"], "complete");
  for (const char* key : {"cpu", "threads", "simd", "os", "compiler", "gpu", "driver"})
    EXPECT_TRUE(json["machine"].contains(key)) << key;
  EXPECT_EQ(json["config"]["problems"][0], kSmallProblem);
  const Json& row = json["rows"][0];
  EXPECT_EQ(row["implementation"], "tmaops");
  EXPECT_TRUE(row["selected"].is_string());
  EXPECT_EQ(row["us"]["n"], 5);
  EXPECT_GT(row["us"]["median"], 0);
  EXPECT_EQ(row["verified"], true);
  EXPECT_TRUE(row["sm_mhz"].is_null());
}

TEST(Bench, tuning_needs_a_gpu) {
  const Scratch folder;
  const ToolResult result = run_tool(short_bench(folder / "r.json", {"--tune", "--device", "cpu"}));
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "--tune", "--device cuda");
  EXPECT_TRUE(folder.names().empty());
}

TEST(Bench, json_goes_to_stdout_and_is_the_file) {
  const Scratch folder;
  const ToolResult result = run_tool(short_bench(folder / "r.json", {"--json", "--quiet"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, read_all(folder / "r.json"));
  EXPECT_EQ(result.err, "");
}

TEST(Bench, an_existing_file_is_kept_without_force) {
  const Scratch folder;
  folder.file("r.json", "precious");
  const ToolResult result = run_tool(short_bench(folder / "r.json"));
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "E050");
  EXPECT_EQ(read_all(folder / "r.json"), "precious");
  EXPECT_EQ(run_tool(short_bench(folder / "r.json", {"--force"})).exit_code, 0);
  // The default name is meant to be written again and again.
  const std::vector<std::string> there{"-C", folder.path(), TMAOPS_TOOL, "bench",
                                       "-p", kSmallProblem, "--samples", "5"};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Tool(there, {}, "env").wait().exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "out/results.json"));
}

TEST(Bench, mistakes_in_a_configuration_have_file_line_and_column) {
  const Scratch folder;
  const auto expect_failure = [&](const std::string& text, const std::string& number, const std::string& place) {
    const auto config = folder.file("c.yaml", text);
    const ToolResult result = run_tool({"bench", config.string(), "-o", (folder / "r.json").string()});
    EXPECT_EQ(result.exit_code, 2) << text;
    expect_text(result.err, number, "c.yaml:" + place);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(folder.names(), (std::set<std::string>{"c.yaml"})) << "nothing is written";
  };
  expect_failure("gemm: {size: 8\n", "E060", "");
  expect_failure("gemm: {size: 8, sise: 9}\n", "E061", "1:17: gemm: sise");
  expect_failure("gemm: {size: 8}\ngemm: {size: 9}\n", "E062", "2:1");
  expect_failure("gemm:\n  size: eight\n", "E063", "2:9");
  expect_failure("gemm:\n  size: -8\n", "E064", "2:9");
  expect_failure("ms_deform_attn: {case: enc9/detr}\n", "E065", "1:24");
  expect_failure("ms_deform_attn: {case: enc1/detr, fused: softmx}\n", "E064", "1:42");
  expect_failure("gemm: {size: 8, variant: magic}\n", "E024", "1:26");
  expect_failure("samples: 5\ngemm:\n", "E063", "2:1: gemm");
}

TEST(Bench, an_empty_name_is_no_output) {
  const Scratch folder;
  const ToolResult result = run_tool(short_bench("", {}));
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "E052");
}

TEST(Bench, a_missing_configuration_is_named) {
  const ToolResult result = run_tool({"bench", "no-such.yaml"});
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "E040", "no-such.yaml");
  EXPECT_EQ(run_tool({"bench"}).exit_code, 2);
}

TEST(Bench, flags_are_checked_like_the_configuration) {
  const Scratch folder;
  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{{"--samples", "2"},
                                                                                    {"--threads", "-1"},
                                                                                    {"--seed", "x"},
                                                                                    {"--temperature", "warm"},
                                                                                    {"--device", "gpu"},
                                                                                    {"--peers", "nunpy"},
                                                                                    {"--operator", "conv"},
                                                                                    {"--fail-if-slower", "5%"}}) {
    const ToolResult result = run_tool(short_bench(folder / "r.json", {flag, value}));
    EXPECT_EQ(result.exit_code, 2) << flag;
    expect_text(result.err, flag == "--peers" ? "peers" : flag);
    EXPECT_TRUE(folder.names().empty()) << flag;
  }
}

TEST(Bench, asking_for_a_gpu_where_none_is_ends_with_four) {
  if (std::filesystem::exists("/dev/nvidia0")) GTEST_SKIP() << "this machine has a GPU";
  const ToolResult result = run_tool({"bench", "-p", kSmallProblem, "--device", "cuda"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_TRUE(std::regex_search(result.err, std::regex("E07[0-7]"))) << result.err;
}

TEST(Bench, counters_need_a_gpu) {
  const Scratch folder;
  const ToolResult result = run_tool(short_bench(folder / "r.json", {"--counters", "--device", "cpu"}));
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "--counters", "a run on the CPU", "--device cuda");
  EXPECT_TRUE(folder.names().empty()) << "nothing is written";
  const auto config = folder.file("c.yaml", "device: cpu\ncounters: true\n" + kSmallProblem + "\n");
  const ToolResult configured = run_tool({"bench", config.string(), "-o", (folder / "r.json").string()});
  EXPECT_EQ(configured.exit_code, 2);
  expect_text(configured.err, "counters: true", "a run on the CPU");
}

TEST(Bench, a_single_run_is_checked_and_not_timed) {
  const Scratch folder;
  const ToolResult result =
      run_tool({"bench", "-p", kSmallProblem, "--single-run", "--json", "-o", (folder / "r.json").string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_text(result.err, "launched once: gemm RC 32 f32 tmaops");
  const Json json = read_json(folder / "r.json");
  ASSERT_EQ(json["rows"].size(), 1u);
  EXPECT_EQ(json["rows"][0]["verified"], true);
  EXPECT_TRUE(json["rows"][0]["us"].is_null());
}

TEST(Bench, a_single_run_takes_the_row_that_is_named) {
  const std::vector<std::string> command{"bench",          "-p",           kSmallProblem,
                                         "--all-variants", "--single-run", "--implementation"};
  const auto run = [&](const std::string& name) {
    std::vector<std::string> all = command;
    all.push_back(name);
    return run_tool(all);
  };
  for (const char* name : {"reference", "copy"}) {
    const ToolResult result = run(name);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_text(result.err, std::string("launched once: gemm RC 32 f32 ") + name);
    EXPECT_EQ(result.err.find("tmaops, inputs"), std::string::npos) << "launched something else too";
  }
  const ToolResult both = run("copy,reference");
  EXPECT_EQ(both.exit_code, 0) << both.err;
  expect_text(both.err, "launched once: gemm RC 32 f32 copy", "launched once: gemm RC 32 f32 reference");
  const ToolResult unknown = run("magic");
  EXPECT_EQ(unknown.exit_code, 2);
  expect_text(unknown.err, "magic is left out", "tmaops", "reference");
}

TEST(Bench, a_single_run_is_of_one_problem_without_times) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--single-run", "-p", "gemm: {size: 48, dtype: f32}"},
        {"--single-run", "--counters"},
        {"--single-run", "--compare", "base.json"},
        {"--implementation", "tmaops"}}) {
    std::vector<std::string> all{"bench", "-p", kSmallProblem};
    all.insert(all.end(), more.begin(), more.end());
    const ToolResult result = run_tool(all);
    EXPECT_EQ(result.exit_code, 2) << more.front();
    expect_text(result.err, "E100", "--single-run");
  }
}

TEST(Bench, ncu_runs_the_same_command_as_a_single_run) {
  const Scratch folder;
  const auto ncu = folder.file("ncu", "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$(dirname \"$0\")/arguments\"\nexit 7\n");
  std::filesystem::permissions(ncu, std::filesystem::perms::owner_all);
  const std::string report = (folder / "r").string();
  const std::vector<std::string> command{
      "bench", "-p", kSmallProblem, "--ncu", report, "--implementation", "reference", "--all-variants"};
  const std::string path = folder.path().string() + ":/usr/bin:/bin";
  EXPECT_EQ(run_tool(command, {{"PATH", path}}).exit_code, 7) << "ncu's own";
  const std::string got = read_all(folder / "arguments");
  expect_text(got, "--set\nfull\n", "--export\n" + report + ".ncu-rep\n", "--profile-from-start\noff\n");
  expect_text(got,
              "/tmaops\nbench\n-p\n" + kSmallProblem + "\n--implementation\nreference\n--all-variants\n--single-run\n");
  EXPECT_EQ(got.find("--ncu"), std::string::npos);

  const ToolResult without = run_tool(command, {{"PATH", "/nowhere"}});
  EXPECT_EQ(without.exit_code, 2);
  expect_text(without.err, "E040", "--ncu", "nsight-compute");
  folder.file("r.ncu-rep", "precious");
  expect_text(run_tool(command, {{"PATH", path}}).err, "E050", "r.ncu-rep");
}

TEST(Bench, a_bad_thread_count_is_named) {
  const Scratch folder;
  const ToolResult result = run_tool(short_bench(folder / "r.json"), {{"TMAOPS_NUM_THREADS", "0"}});
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "E101", "TMAOPS_NUM_THREADS");
  EXPECT_TRUE(folder.names().empty());
}

TEST(Bench, numbers_do_not_depend_on_the_locale) {
  const Scratch folder;
  const ToolResult result =
      run_tool(short_bench(folder / "r.json"), {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_FALSE(std::regex_search(result.out, std::regex("[0-9],[0-9]"))) << result.out;
  EXPECT_TRUE(read_json(folder / "r.json")["rows"][0]["us"]["median"].is_number());
}

TEST(Bench, a_problem_larger_than_the_memory_ends_with_five) {
  const Scratch folder;
  for (const char* size : {"300000", "4000000"}) {  // more than is free, and more than can be addressed
    const std::string problem = std::string("gemm: {dtype: f32, size: ") + size + "}";
    const ToolResult result = run_tool({"bench", "-p", problem, "-o", (folder / "r.json").string(), "--force"});
    EXPECT_EQ(result.exit_code, 5) << result.err;
    expect_text(result.err, "memory");
  }
}

TEST(Bench, without_python_its_peers_are_left_out) {
  const Scratch folder;
  const ToolResult result =
      run_tool(short_bench(folder / "r.json", {"--peers", "torch_eager,numpy", "--python", "/no/python"}));
  EXPECT_EQ(result.exit_code, 3);
  expect_text(result.err, "/no/python", "install python3-numpy");
  EXPECT_EQ(read_json(folder / "r.json")["rows"].size(), 1u);
}

TEST(Bench, a_peer_that_dies_does_not_end_the_run) {
  const Scratch folder;
  const auto python =
      folder.file("python", "#!/bin/sh\nread line\necho '{\"versions\": \"none\"}'\nread line\nexit 3\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const ToolResult result =
      run_tool(short_bench(folder / "r.json", {"--peers", "torch_eager", "--python", python.string()}));
  EXPECT_EQ(result.exit_code, 3);
  expect_text(result.err, "torch_eager is left out", "it ended");
}

TEST(Bench, a_python_peer_is_checked_and_timed) {
  const Scratch folder;
  const ToolResult result = run_tool({"bench", "-p", "resample: {case: '4,50->60,8'}", "--device", "cpu", "--samples",
                                      "5", "--min-time", "0", "--peers", "numpy", "-o", (folder / "r.json").string()});
  if (result.err.find("left out") != std::string::npos) GTEST_SKIP() << result.err;
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = read_json(folder / "r.json");
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][1]["implementation"], "numpy");
  EXPECT_EQ(json["rows"][1]["kind"], "peer");
  EXPECT_EQ(json["rows"][1]["verified"], true);
  EXPECT_LT(json["rows"][1]["error"]["relative"], 1e-5);
}

TEST(Configs, every_file_names_problems_there_are) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TMAOPS_SOURCE_DIR "/configs")) {
    const ToolResult result = run_tool({"list", "--config", entry.path().string(), "--device", "cpu", "--json"});
    EXPECT_EQ(result.exit_code, 0) << entry.path() << "\n" << result.err;
    const Json json = Json::parse(result.out, nullptr, false);
    ASSERT_TRUE(json.is_array()) << entry.path();
    ++count;
    const std::string name = entry.path().filename();
    for (const Json& problem : json) {
      const Json& variants = problem["variants"];
      if (std::ranges::all_of(variants, [](const Json& variant) { return variant["study"] == true; })) continue;
      if (name == "executor.yaml") continue;  // some of its problems name a kernel, which no CPU has
      EXPECT_EQ(problem["selected"].is_null(), name == "seed_gemm.yaml") << entry.path() << ": " << problem["case"];
    }
  }
  EXPECT_GE(count, 5);
}

TEST(Bench, a_file_name_needs_no_utf8) {
  const Scratch folder;
  const auto config = folder.file("\xff\xfe.yaml", kSmallProblem + "\nsamples: 5\nmin_time: 0\n");
  const ToolResult result = run_tool({"bench", config.string(), "-o", (folder / "\xff.json").string()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  expect_text(read_json(folder / "\xff.json")["config"]["file"].get<std::string>(), "\\xff\\xfe.yaml");
}

/// `signals` in quick succession: `timeout` sends one to the process and one to its group.
void expect_partial_file_after(int signals) {
  const Scratch folder;
  const auto output = folder / "r.json";
  Tool tool({"bench", "-p", kSmallProblem, "-p", "gemm: {size: 48, dtype: f32}", "--samples", "10000", "--min-time",
             "0.002", "--max-time", "3600", "-o", output.string()});
  while (!tool.ended() && !std::filesystem::exists(folder / ".r.json.tmaops-partial"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // now in the middle of the first case's samples
  for (int i = 0; i < signals; ++i) {
    tool.send(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const ToolResult result = tool.wait();
  EXPECT_EQ(result.exit_code, 130);
  expect_text(result.err, "interrupted");
  const Json json = read_json(output);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["status"], "partial");
  ASSERT_EQ(json["rows"].size(), 1u);
  EXPECT_LT(json["rows"][0]["us"]["n"], 10000);
  EXPECT_EQ(folder.names(), (std::set<std::string>{"r.json"}));
}

TEST(Bench, ctrl_c_leaves_a_valid_partial_file) { expect_partial_file_after(1); }

TEST(Bench, a_signal_that_arrives_twice_at_once_counts_once) { expect_partial_file_after(2); }

}  // namespace
}  // namespace tmaops::test
