// The workloads on a GPU: every variant that takes a small case passes the check, also with dependent launch.
#include "bench/run/runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/run/tuning.hpp"
#include "bench/workloads/wanted_variants.hpp"
#include "core/device_info.hpp"
#include "support/scratch.hpp"

namespace tmaops::bench {
namespace {

Settings problem(const std::string& op, const std::vector<std::pair<std::string, std::string>>& values) {
  Settings settings(op, {"c.yaml", 1, 1});
  for (const auto& [name, value] : values) settings.add({name, value, {"c.yaml", 1, 1}, false});
  return settings;
}

constexpr Device kGpu{DeviceType::cuda, 0};

Report run_on_gpu(const std::vector<Settings>& problems, RunOptions options) {
  options.all_variants = true;
  return run(problems, kGpu, options, {});
}

class BenchOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU that can be used";
  }
};

TEST_F(BenchOnGpu, every_resample_variant_passes_with_and_without_dependent_launch) {
  std::vector<Settings> problems;
  for (const char* dtype : {"f32", "f16", "bf16"})
    for (const char* name : {"3,50->40,8", "3,50->40,5/random", "2,700->300,64/random"})
      for (const char* interpolation : {"linear", "nearest", "cubic"})
        problems.push_back(problem(
            "resample", {{"case", name}, {"dtype", dtype}, {"interpolation", interpolation}, {"times", "f64"}}));
  const Report report = run_on_gpu(problems, {.time = false});
  for (const Row& row : report.failed)
    ADD_FAILURE() << row.info.problem << ": " << row.implementation << ": " << row.error.problem;
  EXPECT_GE(report.rows.size(), 4 * problems.size()) << "the chosen variant and one other, plain and dependent";
  for (const Row& row : report.rows) EXPECT_EQ(row.info.device.type, DeviceType::cuda);
}

TEST_F(BenchOnGpu, dependent_launch_can_be_left_out) {
  const Report report =
      run_on_gpu({problem("resample", {{"case", "3,50->40,8"}})}, {.dependent_launch = false, .time = false});
  EXPECT_GE(report.rows.size(), 2u);
  for (const Row& row : report.rows) EXPECT_FALSE(row.implementation.ends_with("_pdl")) << row.implementation;
}

TEST_F(BenchOnGpu, a_problem_runs_where_what_it_asks_for_does) {
  const auto runs = [](const std::string& op, const std::vector<std::pair<std::string, std::string>>& values) {
    return runs_on(problem(op, values), kGpu);
  };
  EXPECT_TRUE(runs("resample", {{"case", "3,50->40,8"}}));
  EXPECT_TRUE(runs("gemm", {{"case", "RC 64"}, {"dtype", "f16"}}));
  EXPECT_TRUE(runs("gemm", {{"case", "RC 64"}, {"dtype", "f16"}, {"variant", "blocked"}, {"variant", "wgmma_tma"}}));
  EXPECT_FALSE(runs("gemm", {{"case", "RC 64"}, {"dtype", "f16"}, {"variant", "blocked"}}));
  EXPECT_FALSE(runs("gemm", {{"case", "RC 64"}, {"dtype", "f32"}})) << "no GPU variant multiplies f32";
}

TEST_F(BenchOnGpu, cute_multiplies_in_both_modes_and_versions_and_says_what_it_needs) {
  std::vector<Settings> problems;
  for (const char* name : {"RC 128", "CR 128", "RC 384x256x704", "CR 256x384x64"})
    problems.push_back(problem("gemm", {{"case", name}, {"impl", "cute"}}));
  EXPECT_TRUE(runs_on(problems.front(), kGpu));
  const Report report = run_on_gpu(problems, {.time = false});
#ifdef TMAOPS_HAVE_CUTLASS
  for (const Refusal& refusal : report.refused) ADD_FAILURE() << refusal.implementation << ": " << refusal.reason;
  EXPECT_EQ(report.rows.size(), 2 * problems.size());
  const Report small = run_on_gpu({problem("gemm", {{"case", "RC 64"}, {"impl", "cute"}})}, {.time = false});
  ASSERT_EQ(small.refused.size(), 2u);
  EXPECT_NE(small.refused[0].reason.find("multiples of 128"), std::string::npos) << small.refused[0].reason;
#else
  ASSERT_EQ(report.refused.size(), 2 * problems.size());
  EXPECT_NE(report.refused[0].reason.find("built without CUTLASS"), std::string::npos) << report.refused[0].reason;
  EXPECT_EQ(report.exit_code(), 2);
#endif
}

TEST_F(BenchOnGpu, tuning_times_every_tile_and_its_table_decides) {
  const Settings product = problem("gemm", {{"case", "RC 256"}, {"dtype", "f16"}});
  const Report report = run_on_gpu({product}, {.samples = 5, .min_time = 0, .tune = true});
  EXPECT_TRUE(report.failed.empty());
  for (const Refusal& refusal : report.refused) ADD_FAILURE() << refusal.implementation << ": " << refusal.reason;
  const std::vector<std::string> candidates = make_workload(product, kGpu)->candidates();
  EXPECT_EQ(report.rows.size(), candidates.size());
  const auto choices = fastest(report.rows, device_info(kGpu).name);
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_EQ(choices[0].product, "RC 256");

  ops::gemm::TuningTable table;
  ops::gemm::TunedChoice other = choices[0];
  other.choice =
      *std::ranges::find_if(candidates, [](const std::string& one) { return one.starts_with("wgmma_cp_async"); });
  table.set(other);
  const test::Scratch folder;
  setenv("TMAOPS_GEMM_TUNING", folder.file("table.yaml", table.text()).c_str(), 1);
  EXPECT_EQ(make_workload(product, kGpu)->selected(), "wgmma_cp_async");
  setenv("TMAOPS_GEMM_TUNING", "off", 1);
  EXPECT_NE(make_workload(product, kGpu)->selected(), "wgmma_cp_async");
  unsetenv("TMAOPS_GEMM_TUNING");
}

TEST_F(BenchOnGpu, every_variant_of_every_operator_passes) {
  std::vector<Settings> problems;
  for (const char* dtype : {"f16", "bf16"})
    for (const char* name : {"RC 256", "CR 256", "RR 129x70x33", "CC 129x70x33"})
      problems.push_back(problem("gemm", {{"case", name}, {"dtype", dtype}}));
  for (const char* dtype : {"f32", "f16", "bf16"})
    for (const char* sampling : {"bilinear", "nearest"})
      for (const char* direction : {"forward", "backward"})
        for (const char* channels : {"32", "7"})
          problems.push_back(problem("ms_deform_attn", {{"levels", "9x7 4x3"},
                                                        {"queries", "75"},
                                                        {"channels", channels},
                                                        {"dtype", dtype},
                                                        {"sampling", sampling},
                                                        {"direction", direction}}));
  for (const char* dtype : {"f32", "f16", "bf16"})
    problems.push_back(
        problem("resample", {{"case", "3,50->40,8/random"}, {"dtype", dtype}, {"direction", "backward"}}));
  const Report report = run_on_gpu(problems, {.time = false});
  for (const Row& row : report.failed)
    ADD_FAILURE() << row.info.problem << ": " << row.implementation << ": " << row.error.problem;
  for (const Settings& one : problems) {
    const auto workload = make_workload(one, kGpu);
    if (std::ranges::none_of(workload->variants(), [](const VariantChoice& v) { return v.support.ok; })) continue;
    EXPECT_TRUE(std::ranges::any_of(
        report.rows,
        [&](const Row& row) { return row.info.problem == workload->info().problem && row.implementation == "tmaops"; }))
        << workload->info().problem << ": a variant takes it, and none was chosen";
  }
}

TEST_F(BenchOnGpu, ceilings_are_passed_by_their_own_checks) {
  const Report report =
      run_on_gpu({problem("ms_deform_attn", {{"case", "dec1/detr"}, {"dtype", "f16"}}),
                  problem("ms_deform_attn", {{"levels", "9x7 1x3 5x1"}, {"queries", "75"}, {"dtype", "f32"}})},
                 {.samples = kFewestSamples, .peers = {"copy", "empty", "gather"}});
  for (const Refusal& refusal : report.refused) EXPECT_NE(refusal.implementation, "gather") << refusal.reason;
  EXPECT_GE(report.rows.size(), 6u);
}

TEST_F(BenchOnGpu, cold_cases_are_timed_beside_the_copy) {
  const Report report = run_on_gpu({problem("resample", {{"case", "32,500->256,256"}, {"dtype", "bf16"}})},
                                   {.temperature = "cold", .samples = kFewestSamples, .peers = {"copy"}});
  EXPECT_TRUE(report.failed.empty());
  bool copied = false;
  for (const Row& row : report.rows) {
    EXPECT_TRUE(row.us.has_value());
    copied = copied || row.implementation == "copy";
  }
  EXPECT_TRUE(copied);
}

}  // namespace
}  // namespace tmaops::bench
