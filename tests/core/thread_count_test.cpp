#include "core/thread_count.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/parallel.hpp"

namespace tmaops {
namespace {

namespace fs = std::filesystem;

class CgroupQuota : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("tmaops-cgroup-" + std::to_string(::getpid()) +
                                         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  double quota() const { return detail::cgroup_quota((root_ / "self").string(), (root_ / "fs").string()); }

  fs::path root_;
};

TEST_F(CgroupQuota, version_2_takes_the_smallest_on_the_way_up) {
  write("self", "0::/a/b\n");
  write("fs/a/b/cpu.max", "max 100000\n");
  write("fs/a/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
  write("fs/a/b/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 0.5);
  write("fs/cpu.max", "20000 100000\n");  // as a container sees its own root
  EXPECT_DOUBLE_EQ(quota(), 0.2);
}

TEST_F(CgroupQuota, version_1_reads_the_cpu_controller_alone) {
  write("self", "5:memory:/m\n4:cpu,cpuacct:/c\n");
  write("fs/cpu/c/cpu.cfs_quota_us", "200000\n");
  write("fs/cpu/c/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2.0);
  write("fs/cpu/c/cpu.cfs_quota_us", "-1\n");
  EXPECT_DOUBLE_EQ(quota(), 0.0);
}

TEST_F(CgroupQuota, no_limit_where_nothing_is_set_or_readable) {
  EXPECT_DOUBLE_EQ(quota(), 0.0);
  write("self", "garbage\n3::no-slash\n0::/x\n");
  write("fs/x/cpu.max", "broken");
  EXPECT_DOUBLE_EQ(quota(), 0.0);
}

TEST(NumThreads, follows_the_affinity_mask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(num_threads(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_LE(num_threads(), CPU_COUNT(&before));
}

TEST(ThreadCount, of_a_short_call_is_one) {
  set_num_threads(3);
  EXPECT_EQ(threads_for(0), 1);
  EXPECT_EQ(threads_for(detail::kShortCall - 1), 1);
  EXPECT_EQ(threads_for(detail::kShortCall + 1), 3);
  detail::set_short_call(0);
  EXPECT_EQ(threads_for(0), 3);
  detail::set_short_call(detail::kShortCall);
  set_num_threads(0);
}

}  // namespace
}  // namespace tmaops
