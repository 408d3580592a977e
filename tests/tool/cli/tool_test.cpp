// Exit codes, output streams, colours and environment of the program.
#include "support/tool.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "executor/rules.hpp"
#include "support/scratch.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::test {
namespace {

using Json = nlohmann::ordered_json;

Json parsed(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << text;
  return json;
}

TEST(Tool, version_has_the_revision) {
  const ToolResult result = run_tool({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  expect_text(result.out, "tmaops 0.", " (");
  EXPECT_EQ(result.err, "");
}

TEST(Tool, without_arguments_it_prints_its_help) {
  const ToolResult result = run_tool({});
  EXPECT_EQ(result.exit_code, 0);
  expect_text(result.out, "doctor", "bench", "verify", "resample", "explain", "completion", "Exit codes");
}

TEST(Tool, unknown_words_end_with_two_and_a_hint) {
  ToolResult result = run_tool({"doctor", "--jsno"});
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "E100", "--jsno", "Did you mean '--json'?", "tmaops doctor --help");
  EXPECT_EQ(result.out, "");
  result = run_tool({"bnech"});
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "E100", "Did you mean 'bench'?");
  result = run_tool({"--color", "sometimes", "doctor"});
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "--color");
}

TEST(Tool, commands_of_the_python_package_say_where_they_come_from) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"report", "run.json", "-o", "page.html", "--compare", "old.json"},
           {"dataset", "resample", "in", "out", "--hz", "30"},
           {"resample", "in.csv", "-o", "out.csv", "--hz", "1", "--plot", "p.html"}}) {
    const ToolResult result = run_tool(arguments);
    EXPECT_EQ(result.exit_code, 2);
    expect_text(result.err, "E100", arguments[0], "the Python package tmaops", "make wheel", "pip install");
    EXPECT_EQ(result.out, "");
  }
  expect_text(run_tool({"--help"}).out, "dataset", "report", "(Python package)");
}

TEST(Explain, prints_a_page_by_number_or_name) {
  const ToolResult by_number = run_tool({"explain", "e012"});
  EXPECT_EQ(by_number.exit_code, 0);
  expect_text(by_number.out, "E012", "dtype_mismatch", "exit code: 2", "What to do:");
  EXPECT_EQ(run_tool({"explain", "dtype_mismatch"}).out, by_number.out);
  EXPECT_EQ(run_tool({"explain", "12"}).out, by_number.out);
  EXPECT_EQ(run_tool({"explain", "E12"}).out, by_number.out);
  EXPECT_EQ(parsed(run_tool({"explain", "E012", "--json"}).out)["number"], "E012");
}

TEST(Explain, knows_every_rule_of_tensor_maps_and_every_result_of_cuda_in_the_document) {
  for (const tma::Rule& rule : tma::rules()) {
    const ToolResult result = run_tool({"explain", std::string(rule.id)}, {{"COLUMNS", "1000"}});
    EXPECT_EQ(result.exit_code, 0) << rule.id;
    expect_text(result.out, "rule " + std::string(rule.id), rule.text, rule.source);
  }
  std::istringstream document(read_all(TMAOPS_SOURCE_DIR "/docs/tma.md"));
  int rows = 0;
  for (std::string line; std::getline(document, line);) {
    if (!line.starts_with("| `CUDA_ERROR_") && !line.starts_with("| `cudaError")) continue;
    ++rows;
    const std::string cause = line.substr(line.find(") | ") + 4, line.size() - line.find(") | ") - 6);
    for (std::size_t at = line.find('`'); at < line.find(" ("); at = line.find('`', line.find('`', at + 1) + 1))
      expect_text(
          run_tool({"explain", line.substr(at + 1, line.find('`', at + 1) - at - 1)}, {{"COLUMNS", "1000"}}).out,
          cause);
  }
  EXPECT_EQ(rows, 9);
  EXPECT_EQ(parsed(run_tool({"explain", "cudaErrorIllegalAddress", "--json"}).out)["number"], "700");
  const ToolResult wrong = run_tool({"explain", "box_inner_61"});
  EXPECT_EQ(wrong.exit_code, 2);
  expect_text(wrong.err, "'box_inner_61'", "Did you mean 'box_inner_16'?");
}

TEST(Explain, knows_every_rule_of_the_executor_in_the_words_of_the_document) {
  std::istringstream document(read_all(TMAOPS_SOURCE_DIR "/docs/executor.md"));
  std::string line;
  while (std::getline(document, line) && line != "| rule | what it says |") {
  }
  std::getline(document, line);
  std::size_t rows = 0;
  for (; std::getline(document, line) && line.starts_with("| `"); ++rows) {
    const std::string name = line.substr(3, line.find('`', 3) - 3);
    std::string words = line.substr(line.find(" | ") + 3);
    words.resize(words.size() - 2);
    words =
        std::regex_replace(std::regex_replace(words, std::regex("`"), ""), std::regex(R"(\[(\w+)\]\([^)]*\))"), "$1");
    expect_text(run_tool({"explain", name}, {{"COLUMNS", "1000"}}).out, "rule " + name, words, "docs/executor.md");
  }
  EXPECT_EQ(rows, std::size(executor::kRules));
}

TEST(Explain, lists_everything_without_argument) {
  const ToolResult result = run_tool({"explain"});
  EXPECT_EQ(result.exit_code, 0);
  expect_text(result.out, "E001", "E012", "E093");
  EXPECT_GT(parsed(run_tool({"--json", "explain"}).out).size(), 50u);
}

TEST(Explain, an_unknown_error_is_wrong_usage) {
  const ToolResult result = run_tool({"explain", "dtype_missmatch"});
  EXPECT_EQ(result.exit_code, 2);
  expect_text(result.err, "E100", "Did you mean 'dtype_mismatch'?");
  EXPECT_EQ(run_tool({"explain", "E999"}).exit_code, 2);
}

/// Exit code 1 goes with a problem, and with nothing else.
Json doctor(const Tool::Environment& environment = {}) {
  const ToolResult result = run_tool({"doctor", "--json"}, environment);
  Json json = parsed(result.out);
  bool problem = false;
  for (const Json& check : json["checks"]) problem = problem || check["state"] == "problem";
  EXPECT_EQ(result.exit_code, problem ? 1 : 0) << result.out;
  return json;
}

std::string state_of(const Json& json, const std::string& name) {
  for (const Json& check : json["checks"])
    if (check["name"] == name) return check["state"];
  ADD_FAILURE() << "no " << name << " in " << json.dump(1);
  return "";
}

TEST(Doctor, says_what_is_there) {
  const ToolResult result = run_tool({"doctor"});
  expect_text(result.out, "compiler", "SIMD", "threads", "oneDNN", "zstd", "NVIDIA driver", "GPU", "NVML", "CUPTI",
              "ncu", "CUTLASS", "Python");
  EXPECT_EQ(result.err, "");
  const auto found = doctor();
  for (const Json& check : found["checks"]) EXPECT_TRUE(check["state"] == "ok" || check["how"] != "") << check["name"];
}

TEST(Doctor, a_bad_environment_is_a_problem_and_ends_with_one) {
  const ToolResult result = run_tool({"doctor"}, {{"TMAOPS_NUM_THREADS", "0"}});
  EXPECT_EQ(result.exit_code, 1);
  expect_text(result.out, "problem", "E101");
  EXPECT_EQ(state_of(doctor({{"TMAOPS_NUM_THREADS", "0"}}), "threads"), "problem");
  const ToolResult two = run_tool({"doctor"}, {{"TMAOPS_NUM_THREADS", "2"}});
  expect_text(two.out, "2 (TMAOPS_NUM_THREADS)");
  // Variables of other programs about threads have no effect.
  EXPECT_EQ(state_of(doctor({{"OMP_NUM_THREADS", "0"}}), "threads"), "ok");
}

TEST(Doctor, python_without_torch_is_not_all_that_the_peers_need) {
  const Scratch folder;
  const auto python = [&](const std::string& answer) {
    const auto file = folder.file("python", "#!/bin/sh\nread line\necho '" + answer + "'\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return doctor({{"TMAOPS_PYTHON", file.string()}});
  };
  const Json absent =
      python(R"({"python": "3.11.2", "numpy": "1.26.0", "torch_problem": "No module named \u0027torch\u0027"})");
  EXPECT_EQ(state_of(absent, "Python"), "ok");
  EXPECT_EQ(state_of(absent, "NumPy"), "ok");
  EXPECT_EQ(state_of(absent, "PyTorch"), "missing");
  EXPECT_EQ(state_of(python(R"({"python": "3.11.2", "numpy": "1.26.0", "torch_problem": "libtorch.so: bad ELF"})"),
                     "PyTorch"),
            "problem");
  EXPECT_EQ(state_of(doctor({{"TMAOPS_PYTHON", "/no/python"}}), "Python"), "problem");
}

TEST(Color, is_off_in_a_pipe_and_on_when_asked) {
  EXPECT_EQ(run_tool({"doctor"}).out.find('\033'), std::string::npos);
  EXPECT_NE(run_tool({"doctor", "--color", "always"}).out.find('\033'), std::string::npos);
  EXPECT_NE(run_tool({"doctor", "--color", "always"}, {{"NO_COLOR", "1"}}).out.find('\033'), std::string::npos)
      << "an option beats the environment";
  EXPECT_EQ(run_tool({"doctor", "--color", "never"}).out.find('\033'), std::string::npos);
}

TEST(List, names_operators_and_variants) {
  const ToolResult result = run_tool({"list"});
  EXPECT_EQ(result.exit_code, 0);
  expect_text(result.out, "gemm", "ms_deform_attn_backward", "resample", "reference");
  const Json json = parsed(run_tool({"list", "gemm", "--json"}).out);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["variants"].back()["name"], "reference");
  const ToolResult unknown = run_tool({"list", "conv"});
  EXPECT_EQ(unknown.exit_code, 2);
  expect_text(unknown.err, "E024", "gemm");
  expect_text(run_tool({"list", "resampel"}).err, "E024", "Did you mean 'resample'?");
}

TEST(List, a_version_number_names_one_variant) {
  int numbered = 0;
  for (const Json& op : parsed(run_tool({"list", "--json"}).out)) {
    std::map<int, std::string> names;
    for (const Json& variant : op["variants"]) {
      if (variant["version"].is_null()) continue;
      ++numbered;
      const auto [other, first] = names.emplace(variant["version"], variant["name"]);
      EXPECT_TRUE(first) << op["operator"] << ": " << other->second << " and " << variant["name"];
    }
  }
  EXPECT_GT(numbered, 20);
}

TEST(List, says_which_variant_a_problem_gets) {
  const Json json = parsed(run_tool({"list", "-p", "gemm: {mode: RC, size: 64, dtype: f32}", "--json"}).out);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(json[0]["case"], "RC 64");
  bool chosen_takes = false;
  for (const Json& variant : json[0]["variants"]) {
    if (variant["name"] == json[0]["selected"]) chosen_takes = variant["takes"];
    EXPECT_TRUE(variant["takes"] || variant["reason"] != "") << variant["name"];
  }
  EXPECT_TRUE(chosen_takes);
  expect_text(run_tool({"list", "-p", "gemm: {size: 64}"}).out, "chosen");
}

TEST(Pipe, a_reader_that_left_is_no_failure) {
  const std::string script = "set -o pipefail; \"$0\" explain | { exec <&-; sleep 0.3; }";
  const ToolResult result = Tool({"-c", script, TMAOPS_TOOL}, {}, "bash").wait();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(Pipe, output_that_cannot_be_written_is_a_failure) {
  for (const std::string arguments : {"explain", "list --json", "doctor", "--version", "bench --help"}) {
    const ToolResult result = Tool({"-c", "\"$0\" " + arguments + " > /dev/full", TMAOPS_TOOL}, {}, "bash").wait();
    EXPECT_EQ(result.exit_code, 2) << arguments;
    expect_text(result.err, "E053", "standard output", "No space left");
  }
}

TEST(Pipe, closed_streams_do_not_end_in_the_result_file) {
  const Scratch folder;
  const std::string command = "\"$0\" bench -p 'gemm: {size: 8}' --all-variants --samples 5 --min-time 0 -o \"$1\"";
  for (const std::string closed : {" 2>&-", " >&- 2>&-", " <&- >&- 2>&-"}) {
    const std::string file = (folder / "r.json").string();
    EXPECT_EQ(Tool({"-c", command + closed, TMAOPS_TOOL, file}, {}, "bash").wait().exit_code, 0) << closed;
    EXPECT_EQ(parsed(read_all(file))["status"], "complete") << closed;
    std::filesystem::remove(file);
  }
}

}  // namespace
}  // namespace tmaops::test
