#include "bench/measure/nvml.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace tmaops::bench {
namespace {

TEST(Clocks, names_every_reason_but_idleness) {
  EXPECT_TRUE(reason_names(0).empty());
  EXPECT_TRUE(reason_names(0x1).empty()) << "an idle GPU is not held down";
  EXPECT_EQ(reason_names(0x4 | 0x20), (std::vector<std::string>{"sw_power_cap", "sw_thermal_slowdown"}));
  EXPECT_EQ(reason_names(0x1ff).size(), 8u);
}

TEST(Clocks, only_power_and_temperature_are_told) {
  for (const char* reason : {"sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown"})
    EXPECT_TRUE(is_power_or_thermal(reason)) << reason;
  for (const char* reason : {"applications_clocks_setting", "sync_boost", "display_clock_setting", "other"})
    EXPECT_FALSE(is_power_or_thermal(reason)) << reason;
}

TEST(Clocks, a_row_has_the_median_and_the_share_of_each_reason) {
  EXPECT_FALSE(summarize(std::vector<ClockReading>{}).has_value());
  const std::vector<ClockReading> readings{{1980, 0}, {1500, 0x4}, {1980, 0x1}, {1700, 0x4}};
  const auto clocks = summarize(readings);
  ASSERT_TRUE(clocks.has_value());
  EXPECT_DOUBLE_EQ(clocks->sm_mhz, 1840);
  ASSERT_EQ(clocks->held.size(), 1u);
  EXPECT_DOUBLE_EQ(clocks->held.at("sw_power_cap"), 0.5);
}

TEST(Nvml, where_it_is_missing_it_says_so_and_reads_nothing) {
  if (std::filesystem::exists("/dev/nvidiactl")) GTEST_SKIP() << "this machine has a GPU";
  const Nvml nvml("0000:00:06.0");
  EXPECT_NE(nvml.problem().find("NVML"), std::string::npos) << nvml.problem();
  EXPECT_EQ(nvml.reasons(), 0u);
  EXPECT_EQ(nvml.highest_memory_mhz(), 0u);
  EXPECT_EQ(nvml.memory_bus_bits(), 0u);
}

}  // namespace
}  // namespace tmaops::bench
