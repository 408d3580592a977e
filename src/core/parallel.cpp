// A small thread pool that survives fork(): OpenMP and TBB hang in a forked data-loader worker, where resampling runs.
#include "core/parallel.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tmaops::detail {
namespace {

using Body = void (*)(const void*, std::int64_t, std::int64_t, int);

struct Job {
  std::int64_t count;
  std::int64_t grain;
  Body body;
  const void* context;
  std::atomic<std::int64_t> next{0};
  std::mutex failure_mutex{};
  std::exception_ptr failure{};

  void work(int worker) {
    for (;;) {
      const std::int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      try {
        body(context, begin, std::min(count, begin + grain), worker);
      } catch (...) {
        const std::scoped_lock lock(failure_mutex);
        if (!failure) failure = std::current_exception();
        next.store(count, std::memory_order_relaxed);
      }
    }
  }
};

thread_local bool inside_chunk = false;

/// Polls before a wait goes to the kernel: a wake-up there costs tens of microseconds, as long as a small call.
constexpr int kPolls = 2000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Pool {
 public:
  /// Runs the job on the caller and up to `helpers` pool threads; false when another caller holds the pool.
  bool run(Job& job, int helpers) {
    const std::unique_lock owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) return false;
    start(helpers);
    helpers = std::min(helpers, static_cast<int>(threads_.size()));
    {
      const std::scoped_lock lock(mutex_);
      job_ = &job;
      wanted_ = helpers;
      unfinished_.store(helpers, std::memory_order_relaxed);
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    inside_chunk = true;
    job.work(0);
    inside_chunk = false;
    for (int i = 0; i < kPolls && unfinished_.load(std::memory_order_acquire) > 0; ++i) pause();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return unfinished_.load(std::memory_order_acquire) == 0; });
    job_ = nullptr;
    return true;
  }

  ~Pool() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void start(int helpers) {
    while (static_cast<int>(threads_.size()) < helpers) {
      const int index = static_cast<int>(threads_.size());
      const std::uint64_t seen = generation_.load(std::memory_order_relaxed);
      try {
        threads_.emplace_back([this, index, seen] { loop(index, seen); });
      } catch (const std::system_error&) {
        return;  // no more threads to be had: the ones there are do the work
      }
    }
  }

  void loop(int index, std::uint64_t seen) {
    inside_chunk = true;
    for (;;) {
      for (int i = 0; i < kPolls && generation_.load(std::memory_order_acquire) == seen; ++i) pause();
      Job* job = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
        seen = generation_.load(std::memory_order_relaxed);
        if (stop_) return;
        if (index < wanted_) job = job_;
      }
      if (job == nullptr) continue;
      job->work(index + 1);
      const std::scoped_lock lock(mutex_);
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.notify_one();
    }
  }

  std::mutex owner_;  // held by the caller whose job runs
  std::mutex mutex_;  // guards job_, wanted_, stop_ and both conditions
  std::condition_variable wake_;
  std::condition_variable done_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<int> unfinished_{0};
  Job* job_ = nullptr;
  int wanted_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

/// The process' pool. A forked child has none of its threads, so it leaves the parent's pool alone and makes a new one.
class Pools {
 public:
  Pools() {
    instance_ = this;
    pthread_atfork(
        [] {
          if (instance_) instance_->mutex_.lock();
        },
        [] {
          if (instance_) instance_->mutex_.unlock();
        },
        [] {
          if (!instance_) return;
          instance_->pool_ = nullptr;  // its mutexes may be held by threads that do not exist here
          inside_chunk = false;
          instance_->mutex_.unlock();
        });
  }
  ~Pools() {
    instance_ = nullptr;
    delete pool_;
  }
  Pool& get() {
    const std::scoped_lock lock(mutex_);
    if (pool_ == nullptr) pool_ = new Pool;
    return *pool_;
  }

 private:
  static inline Pools* instance_ = nullptr;
  std::mutex mutex_;
  Pool* pool_ = nullptr;
};

Pools& pools() {
  static Pools instance;
  return instance;
}

}  // namespace

void parallel_run(std::int64_t count, std::int64_t grain, Body body, const void* context) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(1, grain);
  Job job{.count = count, .grain = grain, .body = body, .context = context};
  const std::int64_t chunks = (count - 1) / grain + 1;
  const int threads = inside_chunk || chunks == 1 ? 1 : static_cast<int>(std::min<std::int64_t>(chunks, num_threads()));
  if (threads == 1 || !pools().get().run(job, threads - 1)) {
    const bool outer = inside_chunk;
    inside_chunk = true;
    job.work(0);
    inside_chunk = outer;
  }
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace tmaops::detail
