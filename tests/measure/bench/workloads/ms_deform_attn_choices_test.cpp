// What runs for every measured attention when nobody names a variant: on an H200, and on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/run/options.hpp"
#include "bench/workloads/workload.hpp"
#include "config/config.hpp"
#include "ops/ms_deform_attn/problem.hpp"
#include "ops/ms_deform_attn/shared/half_arithmetic.hpp"
#include "support/gpus.hpp"

namespace tmaops::bench {
namespace {

bool all_built() {
  return std::ranges::all_of(ops::ms_deform_attn::variants(), [](const auto& variant) { return variant.built(); });
}

/// "<file>: <problem> -> <GPU>, <CPU>" for every attention of the configurations, in the order of the files' names.
std::vector<std::string> choices_now() {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(TMAOPS_SOURCE_DIR "/configs"))
    if (file.path().filename() != "executor.yaml") files.push_back(file);  // which has sizes that nobody measures
  std::ranges::sort(files);
  std::vector<std::string> lines;
  for (const std::filesystem::path& file : files)
    for (const Settings& problem :
         io::read_configuration(file, {option_keys(), option_list_keys(), workload_operators()}).problems) {
      if (problem.section() != "ms_deform_attn") continue;
      lines.push_back(file.filename().string() + ": " + problem.to_text() + " -> " +
                      make_workload(problem, {DeviceType::cuda, 0})->selected() + ", " +
                      make_workload(problem, {DeviceType::cpu, 0})->selected());
    }
  return lines;
}

TEST(MsDeformAttnChoices, are_those_of_the_list_for_every_measured_case) {
  if (!all_built()) GTEST_SKIP() << "the list is for builds with all variants";
  const PretendedDevice h200(test::made_up_gpu(90));
  std::vector<std::string> wanted;
  std::ifstream file(TMAOPS_SOURCE_DIR "/tests/measure/bench/workloads/ms_deform_attn_choices.txt");
  for (std::string line; std::getline(file, line);) wanted.push_back(line);
  std::vector<std::string> got = choices_now();
  const std::size_t lines = std::max(got.size(), wanted.size());
  got.resize(lines);
  wanted.resize(lines);
  for (std::size_t i = 0; i < lines; ++i) EXPECT_EQ(got[i], wanted[i]);
}

TEST(MsDeformAttnChoices, only_published_kernels_in_f16_may_be_off_by_more_than_the_rounding_of_the_output) {
  const PretendedDevice h200(test::made_up_gpu(90));
  const auto problems = io::parse_problems("ms_deform_attn: {case: seed/uniform, dtype: f16, fused: border}", "a test",
                                           workload_operators());
  const auto workload = make_workload(problems.front(), {DeviceType::cuda, 0});
  for (const VariantChoice& variant : workload->variants()) {
    const std::string name(variant.info.name);
    const double allowed = workload->variant_tolerance(name);
    if (ops::ms_deform_attn::computes_in_f16(name)) {
      EXPECT_TRUE(variant.info.study) << name;
      EXPECT_GT(allowed, 1e-3) << name;
      EXPECT_LT(allowed, 0.1) << name;
    } else {
      EXPECT_EQ(allowed, 0) << name;
    }
  }
}

}  // namespace
}  // namespace tmaops::bench
