// What a configuration says about tile loads.
#include <gtest/gtest.h>

#include <string>

#include "bench/workloads/workload.hpp"
#include "support/expect_error.hpp"

namespace tmaops::bench {
namespace {

std::unique_ptr<Workload> made(const std::string& levels) {
  Settings settings("tile_load", {"c.yaml", 1, 1});
  settings.add({"queries", "10", {"c.yaml", 1, 1}, false});
  settings.add({"levels", levels, {"c.yaml", 1, 1}, false});
  return make_workload(settings, Device{});
}

TEST(TileLoad, a_number_of_levels_takes_the_first_published_ones) {
  const auto workload = made("2");
  EXPECT_EQ(workload->info().name, "160 tiles random");
  EXPECT_EQ(made("92x160 46x80")->info().name, workload->info().name);
}

TEST(TileLoad, maps_of_any_size_are_named_in_the_case) {
  EXPECT_EQ(made("100x100")->info().name, "80 tiles random 100x100");
  EXPECT_EQ(made("92x16")->info().name, "80 tiles random 92x16");
  EXPECT_EQ(made("100x100 50x50")->info().name, "160 tiles random 100x100+50x50");
}

TEST(TileLoad, their_checksums_are_compared_whole) {
  const auto workload = made("100x100");
  workload->prepare(1, 1);
  workload->make_reference(1, 60);
  workload->bind("reference", 0, Launch::plain)(Stream{});
  const Comparison comparison = workload->check(0, 0);
  EXPECT_TRUE(comparison.ok) << comparison.problem;
  EXPECT_EQ(comparison.compared, 1);
}

TEST(TileLoad, bad_levels_are_errors) {
  for (const char* levels : {"5", "0x3", "100x", "ax3"})
    test::expect_error(ErrorCode::bad_value, [&] { made(levels); }, "c.yaml:1:1");
}

}  // namespace
}  // namespace tmaops::bench
