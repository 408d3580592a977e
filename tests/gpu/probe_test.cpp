// A short probe of this machine: what `tmaops probe` does at length.
#include "gpu/support.hpp"
#include "probe/report.hpp"
#include "tma/driver.hpp"

namespace tmaops {
namespace {

TEST(ProbeOnGpu, rules_and_driver_agree_or_the_quirk_is_known) {
  TMAOPS_NEEDS_HOPPER();
  tma::load_driver(0);
  const test::DeviceArray<std::byte> memory(1 << 20);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.get());
  const probe::AskDriver ask = [](const tma::TensorMapSpec& spec) {
    tma::TensorMap map;
    return tma::encode_unchecked(spec, map);
  };
  for (const probe::RuleSummary& one : probe::summarise(probe::run_matrix(address, tma::kHopper, ask)))
    EXPECT_NE(one.verdict(), "disagrees") << one.rule->id;
  const auto run = probe::run_specifications({.seed = 11, .count = 5000, .address = address}, tma::kHopper, ask, {});
  EXPECT_EQ(run.disagreed, 0U) << (run.disagreements.empty() ? "" : run.disagreements.front().spec.text());
  EXPECT_GT(run.accepted, 1000U);
}

TEST(ProbeOnGpu, loads_are_what_the_model_says) {
  TMAOPS_NEEDS_HOPPER();
  const auto loader = probe::make_gpu_loader();
  const auto run = probe::run_loads(11, 200, *loader, {});
  EXPECT_EQ(run.exact, 200U) << (run.mismatches.empty() ? "" : run.mismatches.front().load.spec.text());
}

}  // namespace
}  // namespace tmaops
