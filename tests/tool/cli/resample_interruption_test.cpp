// `tmaops resample` when it is stopped, runs twice at once, or the disk is full.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "cli/resample_fixture.hpp"

namespace tmaops::test {
namespace {

using namespace std::chrono_literals;

class ResampleInterruption : public ResampleCommandTest {
 protected:
  /// 20,000 rows: some milliseconds of work and a few megabytes of output.
  std::string long_recording() const {
    std::string csv = "t,a,b,c\n";
    for (int i = 0; i < 20'000; ++i)
      csv += std::to_string(i) + ",0." + std::to_string(i) + "," + std::to_string(i % 13) + ".5," + std::to_string(i) +
             ".25\n";
    return file("long.csv", csv);
  }
  /// Starts a command that waits in the middle of its run: its output is open, its input is a pipe without a writer.
  std::vector<std::string> stuck() const {
    if (mkfifo(path("pipe").c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
    return {"resample", path("pipe"), "--from", "csv", "-o", path("out.csv"), "--hz", "2"};
  }
  bool claimed() const {
    for (int i = 0; i < 1'000 && !std::filesystem::exists(folder / ".out.csv.tmaops-partial"); ++i)
      std::this_thread::sleep_for(5ms);
    return std::filesystem::exists(folder / ".out.csv.tmaops-partial");
  }
};

TEST_F(ResampleInterruption, a_signal_leaves_nothing_and_exits_with_130) {
  const auto arguments = stuck();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Tool tool(arguments);
    ASSERT_TRUE(claimed());
    tool.send(signal);
    const ToolResult result = tool.wait();
    EXPECT_EQ(result.exit_code, 130);
    EXPECT_NE(result.err.find("E092"), std::string::npos) << result.err;
    EXPECT_EQ(folder.names(), std::set<std::string>{"pipe"});
  }
}

TEST_F(ResampleInterruption, a_second_process_is_refused_and_a_killed_one_does_not_block) {
  const std::string in = file("in.csv", "t,x\n0,0.0\n1,1.0\n");
  Tool first(stuck());
  ASSERT_TRUE(claimed());
  const ToolResult second = resample({in, "-o", path("out.csv"), "--hz", "2"});
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_NE(second.err.find("E054"), std::string::npos) << second.err;
  EXPECT_EQ(resample({in, "-o", path("other.csv"), "--hz", "2"}).exit_code, 0) << "another output is free";
  first.send(SIGKILL);
  EXPECT_EQ(first.wait().exit_code, 128 + SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(folder / "out.csv"));
  EXPECT_EQ(resample({in, "-o", path("out.csv"), "--hz", "2"}).exit_code, 0);
  EXPECT_EQ(read_all(folder / "out.csv"), read_all(folder / "other.csv"));
  EXPECT_EQ(folder.names(), (std::set<std::string>{"in.csv", "other.csv", "out.csv", "pipe"}));
}

TEST_F(ResampleInterruption, killed_at_any_moment_the_output_is_old_or_complete_and_a_rerun_gives_the_same_bytes) {
  const std::string in = long_recording();
  for (const char* name : {"out.csv", "out.npz"}) {
    const std::vector<std::string> arguments{"resample", in, "-o", path(name), "--hz", "3", "--force", "--compress"};
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(run_tool(arguments).exit_code, 0);
    const auto whole = std::chrono::steady_clock::now() - start;
    const std::string complete = read_all(folder / name);
    EXPECT_GT(complete.size(), 300'000U);
    for (int moment = 1; moment <= 12; ++moment) {
      file(name, "old");
      Tool tool(arguments);
      std::this_thread::sleep_for(whole * moment / 12);
      tool.send(moment % 2 == 0 ? SIGKILL : SIGINT);
      const int code = tool.wait().exit_code;
      EXPECT_TRUE(code == 0 || code == 130 || code == 128 + SIGKILL || code == 128 + SIGINT) << code;
      const std::string left = read_all(folder / name);
      EXPECT_TRUE(left == "old" || left == complete) << left.size() << " bytes at moment " << moment;
    }
    EXPECT_EQ(run_tool(arguments).exit_code, 0);
    EXPECT_EQ(read_all(folder / name), complete);
    EXPECT_FALSE(std::filesystem::exists(folder / ("." + std::string(name) + ".tmaops-partial")));
  }
}

TEST_F(ResampleInterruption, a_full_disk_keeps_the_old_file) {
  const std::string in = long_recording();
  for (const char* name : {"out.csv", "out.npz"}) {
    file(name, "old");
    const auto names = folder.names();
    EXPECT_EQ(in_child([&] {
                const rlimit limit{200'000, 200'000};  // write() fails there as on a full disk
                setrlimit(RLIMIT_FSIZE, &limit);
                const ToolResult result = resample({in, "-o", path(name), "--hz", "3", "--force"});
                return result.exit_code == 2 && result.err.find("E053") != std::string::npos ? 0 : 1;
              }),
              0);
    EXPECT_EQ(read_all(folder / name), "old");
    EXPECT_EQ(folder.names(), names);
    EXPECT_EQ(resample({in, "-o", path(name), "--hz", "3", "--force"}).exit_code, 0);
    EXPECT_GT(read_all(folder / name).size(), 1'000'000U);
  }
}

}  // namespace
}  // namespace tmaops::test
