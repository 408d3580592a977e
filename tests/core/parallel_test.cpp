#include "core/parallel.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/framework_threads.hpp"
#include "tmaops/error.hpp"

namespace tmaops {
namespace {

class Parallel : public ::testing::Test {
 protected:
  void TearDown() override {
    set_num_threads(0);
    unsetenv("TMAOPS_NUM_THREADS");
  }
};

TEST_F(Parallel, covers_every_index_once) {
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    for (const std::int64_t count : {0, 1, 7, 64, 1000}) {
      for (const std::int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
        parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
          EXPECT_LE(end - begin, grain);
          EXPECT_EQ(begin % grain, 0);
          for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
        });
        for (const auto& n : seen) EXPECT_EQ(n.load(), 1);
      }
    }
  }
}

TEST_F(Parallel, gives_workers_that_never_run_twice_at_once) {
  set_num_threads(4);
  std::vector<std::atomic<int>> busy(4);
  parallel_for(400, 1, [&](std::int64_t, std::int64_t, int worker) {
    ASSERT_GE(worker, 0);
    ASSERT_LT(worker, 4);
    EXPECT_EQ(busy[static_cast<std::size_t>(worker)]++, 0);
    std::this_thread::yield();
    --busy[static_cast<std::size_t>(worker)];
  });
}

TEST_F(Parallel, throws_the_body_s_exception_and_works_afterwards) {
  set_num_threads(3);
  EXPECT_THROW(parallel_for(100, 1,
                            [](std::int64_t i, std::int64_t) {
                              if (i == 42) throw std::runtime_error("42");
                            }),
               std::runtime_error);
  std::atomic<int> sum = 0;
  parallel_for(100, 1, [&](std::int64_t, std::int64_t) { ++sum; });
  EXPECT_EQ(sum.load(), 100);
}

TEST_F(Parallel, runs_inside_itself_and_from_many_threads) {
  set_num_threads(3);
  std::atomic<int> sum = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      parallel_for(20, 1,
                   [&](std::int64_t, std::int64_t) { parallel_for(5, 1, [&](std::int64_t, std::int64_t) { ++sum; }); });
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4 * 20 * 5);
}

#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not support threads started in a forked child
TEST_F(Parallel, works_in_a_forked_child) {
  set_num_threads(3);
  std::atomic<int> sum = 0;
  parallel_for(10, 1, [&](std::int64_t, std::int64_t) { ++sum; });
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    std::atomic<int> total = 0;
    for (int round = 0; round < 10; ++round) parallel_for(10, 1, [&](std::int64_t, std::int64_t) { ++total; });
    _exit(total == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  parallel_for(10, 1, [&](std::int64_t, std::int64_t) { ++sum; });
  EXPECT_EQ(sum.load(), 20);
}
#endif

class ForeignThreads : public Parallel {
 protected:
  ForeignThreads() { set_num_threads(3); }
  test::FrameworkThreads framework_;
};

std::vector<int> counted(std::int64_t count, std::int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end, int worker) {
    EXPECT_LT(worker, 3);
    for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
  });
  return {seen.begin(), seen.end()};
}

TEST_F(ForeignThreads, run_every_index_once) {
  EXPECT_EQ(counted(1000, 7), std::vector<int>(1000, 1));
  EXPECT_EQ(framework_.jobs(), 1);
  EXPECT_EQ(framework_.parts(), 3);
  EXPECT_EQ(counted(10, 100), std::vector<int>(10, 1));  // one chunk is the caller's own
  EXPECT_EQ(framework_.jobs(), 1);
  set_parallel_for(nullptr, nullptr);
  EXPECT_EQ(counted(1000, 7), std::vector<int>(1000, 1));
  EXPECT_EQ(framework_.jobs(), 1);
}

TEST_F(ForeignThreads, may_run_parts_one_after_the_other_in_any_order_or_leave_some_out) {
  set_parallel_for(
      [](void*, int parts, ParallelTask task, const void* task_context) {
        while (--parts > 0) task(task_context, parts);  // not part 0
      },
      nullptr);
  EXPECT_EQ(counted(1000, 7), std::vector<int>(1000, 1));
  set_parallel_for([](void*, int, ParallelTask, const void*) {}, nullptr);
  EXPECT_EQ(counted(1000, 7), std::vector<int>(1000, 1));
}

TEST_F(ForeignThreads, run_nested_calls_alone_and_serve_many_callers) {
  std::atomic<int> sum = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      parallel_for(20, 1,
                   [&](std::int64_t, std::int64_t) { parallel_for(5, 1, [&](std::int64_t, std::int64_t) { ++sum; }); });
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4 * 20 * 5);
  EXPECT_EQ(framework_.jobs(), 4);
}

TEST_F(ForeignThreads, pass_exceptions_on) {
  EXPECT_THROW(parallel_for(100, 1,
                            [](std::int64_t i, std::int64_t) {
                              if (i == 42) throw Error(ErrorCode::internal, {.where = "42", .got = "", .needed = ""});
                            }),
               Error);
  EXPECT_EQ(counted(100, 1), std::vector<int>(100, 1));
  set_parallel_for([](void*, int, ParallelTask, const void*) { throw std::runtime_error("none left"); }, nullptr);
  EXPECT_THROW(parallel_for(100, 1, [](std::int64_t, std::int64_t) {}), std::runtime_error);
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(ForeignThreads, are_left_behind_by_a_forked_child) {
  set_parallel_for([](void*, int, ParallelTask, const void*) { abort(); }, nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    std::atomic<int> total = 0;
    parallel_for(100, 1, [&](std::int64_t, std::int64_t) { ++total; });
    _exit(total == 100 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST_F(Parallel, honours_the_environment_and_says_when_it_is_wrong) {
  setenv("TMAOPS_NUM_THREADS", "3", 1);
  EXPECT_EQ(num_threads(), 3);
  set_num_threads(2);
  EXPECT_EQ(num_threads(), 2);
  set_num_threads(0);
  for (const char* bad : {"0", "-1", "two", "1.5", "99999", " 2"}) {
    setenv("TMAOPS_NUM_THREADS", bad, 1);
    try {
      (void)num_threads();
      FAIL() << "accepted TMAOPS_NUM_THREADS='" << bad << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_environment);
    }
  }
  EXPECT_THROW(set_num_threads(-1), Error);
}

}  // namespace
}  // namespace tmaops
