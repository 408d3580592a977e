// The table of faults, how outcomes are read, and the child processes. No GPU is needed.
#include "probe/faults.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tmaops/error.hpp"

namespace tmaops::probe {
namespace {

using std::chrono::milliseconds;

TEST(Faults, names_are_unique_and_every_one_has_a_kernel) {
  std::set<std::string_view> names;
  for (const Fault& fault : faults()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_FALSE(fault.text.empty()) << fault.name;
    try {
      EXPECT_FALSE(run_fault(fault.name).empty()) << fault.name;  // with a GPU: whatever comes of it
      break;                                                      // the context may be broken now
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 4) << fault.name << ": " << error.what();
    }
  }
}

TEST(Faults, expected_outcomes_are_beginnings) {
  const Fault fault{.name = "x", .expected = "wrong|error cudaErrorMisalignedAddress", .text = "x"};
  EXPECT_TRUE(is_expected(fault, "wrong: 1 of 512 elements"));
  EXPECT_TRUE(is_expected(fault, "error cudaErrorMisalignedAddress"));
  EXPECT_FALSE(is_expected(fault, "error cudaErrorIllegalAddress"));
  EXPECT_FALSE(is_expected(fault, "right: all of 512 elements"));
  EXPECT_FALSE(is_expected(fault, ""));
}

TEST(Faults, outcomes_are_read_from_what_the_process_printed) {
  EXPECT_EQ(outcome_of("outcome: wrong: 3 of 512 elements\n", 0, false), "wrong: 3 of 512 elements");
  EXPECT_EQ(outcome_of("tmaops: wait for the tile, stage 0, phase parity 0 did not end: block (0, 0, 0), thread 7\n"
                       "outcome: error cudaErrorLaunchFailure\n",
                       0, false),
            "watchdog: wait for the tile, stage 0, phase parity 0 did not end");
  EXPECT_EQ(outcome_of("", 0, true), "killed: no end, and no word from the watchdog");
  EXPECT_EQ(outcome_of("nothing of the kind\n", 4, false), "failed: exit code 4");
}

TEST(ChildProcess, gives_its_output_and_its_exit_code) {
  const Child child = run_child("/bin/sh", {"-c", "echo out; echo lost >&2; exit 3"}, milliseconds(10'000));
  EXPECT_EQ(child.printed, "out\n");
  EXPECT_EQ(child.exit_code, 3);
  EXPECT_FALSE(child.timed_out);
  EXPECT_EQ(run_child("/bin/sh", {"-c", "kill -9 $$"}, milliseconds(10'000)).exit_code, 128 + 9);
}

TEST(ChildProcess, is_ended_after_its_time) {
  const Child child = run_child("/bin/sh", {"-c", "echo begun; exec sleep 600"}, milliseconds(300));
  EXPECT_TRUE(child.timed_out);
  EXPECT_EQ(child.printed, "begun\n");
  EXPECT_EQ(child.exit_code, 128 + 9);
}

TEST(ChildProcess, that_cannot_start_is_an_error) {
  EXPECT_THROW(run_child("/no/such/program", {}, milliseconds(1000)), Error);
}

TEST(Faults, every_fault_is_started_in_a_process_of_its_own) {
  std::vector<std::string> seen;
  Observer observer;
  observer.progress = [&](std::size_t, std::size_t, const std::string& what) { seen.push_back(what); };
  const auto runs = run_faults("/bin/echo", milliseconds(10'000), observer);
  ASSERT_EQ(runs.size(), faults().size());
  EXPECT_EQ(seen.size(), faults().size());
  for (const FaultRun& run : runs) {
    EXPECT_EQ(run.outcome, "failed: exit code 0");
    EXPECT_FALSE(run.expected);
  }
}

}  // namespace
}  // namespace tmaops::probe
