#include "bench/measure/implementation.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tmaops::bench {
namespace {

/// As a worker of OpenMP does when its work is done.
void spin() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(WaitUntilQuiet, outlasts_a_thread_that_spins) {
  std::atomic<bool> over{false};
  std::thread worker([&] {
    spin();
    over = true;
  });
  wait_until_quiet();
  EXPECT_TRUE(over);
  worker.join();
}

TEST(WaitUntilQuiet, outlasts_a_child_that_spins) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    spin();
    _exit(0);
  }
  wait_until_quiet();
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), child);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace tmaops::bench
