// Calls of many shapes from many threads, whose choices are remembered and forgotten all the while, give what they
// should.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "ops/gemm/gemm_case.hpp"

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer does not see how oneDNN orders its threads, because that library is built without it. Its memory
// comes from the operators new and delete of this program (failing_allocations.cpp), which are built with it: the
// second line.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libdnnl.so\nrace:libdnnl.so"; }
#endif

namespace tmaops::test {
namespace {

TEST(GemmFreshCalls, threads_with_many_shapes_get_right_results) {
  constexpr std::int64_t kMost = 40;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::int64_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      std::vector<float> a(kMost * kMost, 1.0F);
      std::vector<float> b(kMost * kMost, 2.0F);
      std::vector<float> d(kMost * kMost);
      for (std::int64_t i = 0; i < 600; ++i) {  // 1,200 shapes, more than are remembered
        const std::int64_t m = 1 + (i * 7 + thread) % kMost;
        const std::int64_t n = 1 + (i / kMost + thread) % kMost;
        const std::int64_t k = 1 + i % 3;
        gemm(view(a.data(), {m, k}), view(b.data(), {k, n}), view(d.data(), {m, n}));
        for (std::int64_t j = 0; j < m * n; ++j)
          wrong += d[static_cast<std::size_t>(j)] == 2.0F * static_cast<float>(k) ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tmaops::test
