// Threads of a framework, as set_parallel_for takes them.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "tmaops/threads.hpp"

namespace tmaops::test {

/// While it lives, operators run on its threads: one per part, begun anew for each job.
class FrameworkThreads {
 public:
  FrameworkThreads() { set_parallel_for(&run, this); }
  ~FrameworkThreads() { set_parallel_for(nullptr, nullptr); }
  FrameworkThreads(const FrameworkThreads&) = delete;
  FrameworkThreads& operator=(const FrameworkThreads&) = delete;
  int jobs() const { return jobs_.load(); }
  int parts() const { return parts_.load(); }

 private:
  static void run(void* context, int count, ParallelTask task, const void* task_context) {
    auto& self = *static_cast<FrameworkThreads*>(context);
    ++self.jobs_;
    self.parts_ += count;
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(count));
    for (int part = 0; part < count; ++part) threads.emplace_back(task, task_context, part);
    for (auto& thread : threads) thread.join();
  }

  std::atomic<int> jobs_ = 0;
  std::atomic<int> parts_ = 0;
};

}  // namespace tmaops::test
