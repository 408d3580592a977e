// Result files name the variants that are chosen today: a table of a variant that nobody gets says nothing about a
// call.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/run/code_digest.hpp"
#include "bench/run/options.hpp"
#include "bench/workloads/workload.hpp"
#include "config/config.hpp"
#include "support/gpus.hpp"
#include "tmaops/registry.hpp"

namespace tmaops::bench {
namespace {

using Case = std::tuple<std::string, std::string, std::string>;  // operator, case, type

std::vector<std::filesystem::path> result_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(TMAOPS_SOURCE_DIR "/results"))
    if (file.path().extension() == ".json") files.push_back(file.path());
  std::ranges::sort(files);
  return files;
}

/// The rows of the default whose code has a digest: older ones are said to be old below their tables.
std::map<Case, std::string> measured(const nlohmann::json& document) {
  std::map<Case, std::string> found;
  for (const nlohmann::json& row : document.at("rows"))
    if (row.contains("code") && row.at("implementation") == "tmaops")
      found[{row.at("operator"), row.at("case"), row.at("dtype")}] = row.at("selected");
  return found;
}

/// "<operator> <case> <type>: measured A, today B" for every row that names another variant.
std::vector<std::string> other_choices(const nlohmann::json& document, Device device) {
  std::vector<std::string> found;
  const std::map<Case, std::string> rows = measured(document);
  if (rows.empty()) return found;
  for (const nlohmann::json& text : document.at("config").at("problems"))
    for (const Settings& problem : io::parse_problems(text.get<std::string>(), "a result file", workload_operators())) {
      const auto workload = make_workload(problem, device);
      const CaseInfo& info = workload->info();
      const auto row = rows.find({info.op, info.name, info.dtype});
      if (row == rows.end()) continue;
      if (const std::string today = workload->selected(); today != row->second)
        found.push_back(info.op + " " + info.name + " " + info.dtype + ": measured " + row->second + ", today " +
                        today);
    }
  return found;
}

bool has_kernels() {
  return std::ranges::any_of(
      variants("gemm"), [](const VariantInfo& variant) { return variant.device == DeviceType::cuda && variant.built; });
}

TEST(MeasuredChoices, are_what_is_chosen_today) {
  if (!has_kernels()) GTEST_SKIP() << "a build without kernels chooses none";
  for (const std::filesystem::path& file : result_files()) {
    const nlohmann::json document = nlohmann::json::parse(std::ifstream(file));
    if (!document.contains("config") || !document["config"].contains("problems") || document["rows"].empty()) continue;
    const std::string device = document["rows"][0].at("device");
    if (!device.starts_with("cuda")) continue;  // what a CPU runs depends on what it can do
    DeviceInfo gpu = test::made_up_gpu(90);
    gpu.name = document["machine"]["gpu"]["name"];  // the tables of measured choices are of some GPUs
    const PretendedDevice pretended(gpu);
    for (const std::string& other : other_choices(document, {DeviceType::cuda, 0}))
      ADD_FAILURE() << file.filename() << ": " << other << ". Measure the file again";
  }
}

TEST(MeasuredChoices, another_variant_than_todays_is_found) {
  if (!has_kernels()) GTEST_SKIP() << "a build without kernels chooses none";
  const PretendedDevice hopper(test::made_up_gpu(90));
  const std::string problem = "gemm: {mode: RC, size: 4096, dtype: f16}";
  const auto problems = io::parse_problems(problem, "a test", workload_operators());
  const auto workload = make_workload(problems.front(), {DeviceType::cuda, 0});
  nlohmann::json row{
      {"operator", "gemm"}, {"case", workload->info().name}, {"dtype", "f16"}, {"implementation", "tmaops"}};
  row["selected"] = "mma_sync";
  row["code"] = {{"digest", "0"}};
  nlohmann::json document{{"config", {{"problems", {problem}}}}, {"rows", {row}}};
  ASSERT_EQ(other_choices(document, {DeviceType::cuda, 0}).size(), 1U);
  document["rows"][0]["selected"] = workload->selected();
  EXPECT_TRUE(other_choices(document, {DeviceType::cuda, 0}).empty());
}

TEST(CodeDigest, every_variant_of_the_cpu_has_one_and_no_other_name_has) {
  const Device cpu{DeviceType::cpu, 0};
  for (const std::string_view op : operators())
    for (const VariantInfo& variant : variants(op))
      if (variant.device == DeviceType::cpu) {
        const auto code = code_digest(op, variant.name, cpu);
        ASSERT_TRUE(code) << op << " " << variant.name;
        EXPECT_EQ(code->digest.size(), 16U);
        EXPECT_FALSE(code->compiler.empty());
        EXPECT_EQ(code_digest(op, std::string(variant.name) + "/64x64", cpu)->digest, code->digest);
      }
  EXPECT_FALSE(code_digest("gemm", "copy", cpu));
  EXPECT_FALSE(code_digest("resample", "blocked", cpu));
}

}  // namespace
}  // namespace tmaops::bench
