// A wait that never ends: the watchdog of the device layer traps and says where. The faulty kernel runs in a process of
// its own, since a trap breaks the CUDA context for good.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "device/pipeline.cuh"
#include "gpu/support.hpp"
#include "tmaops/error.hpp"

static_assert(TMAOPS_WATCHDOG == 1, "the build compiles this file with the watchdog");

namespace tmaops {
namespace {

using namespace device;  // NOLINT(google-build-using-namespace)

// The second stage is never filled.
__global__ void hanging_kernel() {
  __shared__ Ring<2> ring;
  if (threadIdx.x == 0) ring.init(1, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    Producer<2> producer(ring);
    (void)producer.acquire();
    arrive(producer.full(0));
    Consumer<2> consumer(ring);
    consumer.release(consumer.acquire());
    consumer.release(consumer.acquire());
  }
}

void run_hanging_kernel() {
  dup2(STDERR_FILENO, STDOUT_FILENO);  // device printf goes to stdout, EXPECT_EXIT reads stderr
  try {
    test::run<hanging_kernel>({.grid = 1, .block = 32});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::fflush(stdout);
    std::_Exit(3);
  }
  std::_Exit(0);
}

TEST(WatchdogDeathTest, says_which_barrier_stage_and_phase_did_not_come_and_fails_the_launch) {
  TMAOPS_NEEDS_HOPPER();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_hanging_kernel(), testing::ExitedWithCode(3), "a full stage, stage 1, phase parity 0");
}

}  // namespace
}  // namespace tmaops
