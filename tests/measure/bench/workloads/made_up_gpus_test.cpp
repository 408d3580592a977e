// What is chosen for the measured cases on GPUs that are not there: it runs on them, or the refusal says why not.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/run/options.hpp"
#include "bench/workloads/workload.hpp"
#include "config/config.hpp"
#include "offers/tile_load.hpp"
#include "ops/gemm/problem.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/problem.hpp"
#include "ops/resample/backward/problem.hpp"
#include "ops/resample/problem.hpp"
#include "support/gpus.hpp"

namespace tmaops::bench {
namespace {

/// What a variant's line says.
struct Line {
  std::string_view arch;
  VariantAttributes attributes;
};

Line line_of(std::string_view op, std::string_view name) {
  Line found;
  const auto look = [&](const auto& table) {
    for (const auto& variant : table)
      if (variant.op == op && variant.name == name) found = {variant.arch, variant.attributes};
  };
  look(ops::gemm::variants());
  look(ops::ms_deform_attn::variants());
  look(ops::ms_deform_attn_backward::variants());
  look(ops::resample::variants());
  look(ops::resample_backward::variants());
  look(ops::tile_load::variants());
  return found;
}

std::vector<Settings> measured_problems() {
  std::vector<Settings> all;
  for (const auto& file : std::filesystem::directory_iterator(TMAOPS_SOURCE_DIR "/configs")) {
    const std::string name = file.path().filename();
    if (name.starts_with("cpu") || name == "quick.yaml") continue;
    for (Settings& problem :
         io::read_configuration(file.path(), {option_keys(), option_list_keys(), workload_operators()}).problems)
      all.push_back(problem);
  }
  return all;
}

/// What is chosen for the case fits the device.
void check_choice(const Workload& workload, const DeviceInfo& device) {
  const CaseInfo& info = workload.info();
  const std::string name = workload.selected();
  const Line line = line_of(info.op, name);
  const int least = line.attributes.least_shared_memory;
  EXPECT_LE(least >= 0 ? least : line.attributes.shared_memory, device.shared_memory_per_block) << name;
  EXPECT_FALSE(line.attributes.study) << name;
  if (device.compute_capability < 90) {
    EXPECT_EQ(line.arch, "sm80") << name;
  }
  if (info.op == "gemm") {
    EXPECT_EQ(name == "mma_sync", device.compute_capability != 90) << name;
  }
  if (device.compute_capability == 120 && info.name.starts_with("enc")) {
    EXPECT_NE(name, "tma_resident");
  }
}

class MadeUpGpus : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto& first = ops::gemm::variants().front();
    if (!first.built()) GTEST_SKIP() << first.missing;
  }
};

TEST_P(MadeUpGpus, every_case_has_a_variant_that_runs_there_and_every_refusal_says_why) {
  const DeviceInfo device = test::made_up_gpu(GetParam());
  const PretendedDevice pretended(device);
  const std::vector<Settings> problems = measured_problems();
  ASSERT_GT(problems.size(), 100U);
  for (const Settings& problem : problems) {
    const auto workload = make_workload(problem, {DeviceType::cuda, 0});
    const auto variants = workload->variants();
    const CaseInfo& info = workload->info();
    SCOPED_TRACE(info.op + " " + info.name + " " + info.dtype);
    const bool studied = std::ranges::all_of(variants, [](const VariantChoice& v) { return v.info.study; });
    const bool needs_wgmma = problem.has("impl") && device.compute_capability != 90;
    if (!studied && !needs_wgmma) {
      ASSERT_NO_THROW(check_choice(*workload, device));
    }
    for (const VariantChoice& choice : variants) {
      if (choice.info.device != DeviceType::cuda) continue;
      const Line line = line_of(info.op, choice.info.name);
      EXPECT_TRUE(!choice.support || fits_device(line.arch, line.attributes, device)) << choice.info.name;
      EXPECT_EQ(choice.support.ok, choice.support.reason.empty()) << choice.info.name;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(ComputeCapabilities, MadeUpGpus, testing::Values(80, 86, 89, 90, 100, 120));

}  // namespace
}  // namespace tmaops::bench
