// A small thread pool that survives fork(): OpenMP and TBB hang in a forked data-loader worker, where resampling runs.
#include "core/parallel.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
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
  int helpers = 0;  // pool threads that may join
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

/// Works on a job in the calling thread, whose calls from inside do not ask for threads.
void work_alone(Job& job, int worker) {
  const bool outer = inside_chunk;
  inside_chunk = true;
  job.work(worker);
  inside_chunk = outer;
}

/// A thread of the pool, the processor it was last seen on, and the one it was last kept from (-1: none).
struct Helper {
  std::atomic<int> processor;
  int kept_from = -1;
  std::thread thread{};
};

/// Keeps a helper off the caller's processor. The kernel wakes a thread on the processor where it last ran, or on that
/// of the thread that wakes it. There it would wait until the caller is done while another processor idles, and short
/// jobs are over before the kernel moves it (docs/findings/host.md, H8).
void send_away(Helper& helper, int processor, bool may_sleep) {
  if (helper.kept_from == processor) return;
  if (!may_sleep && helper.processor.load(std::memory_order_relaxed) != processor) return;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  CPU_CLR(static_cast<unsigned>(processor), &allowed);
  if (CPU_COUNT(&allowed) == 0) return;
  if (pthread_setaffinity_np(helper.thread.native_handle(), sizeof(allowed), &allowed) == 0)
    helper.kept_from = processor;
}

/// How long a helper polls for the next job before it sleeps. Calls that follow each other should find it awake, since
/// waking it takes longer than a short job. But a helper that polls keeps a processor from other libraries' threads
/// (docs/findings/host.md, H10).
constexpr auto kHelperPolling = std::chrono::microseconds(50);
/// How long the caller polls for the helpers to end. The processor is its own, and the result is what it waits for.
constexpr auto kCallerPolling = std::chrono::microseconds(500);

/// Polls until done() holds; false when `longest` is over first.
template <class Done>
bool poll(std::chrono::microseconds longest, const Done& done) {
  const auto end = std::chrono::steady_clock::now() + longest;
  do {
    for (int i = 0; i < 8; ++i) {
      if (done()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

/// Threads join and leave a job through atomics alone: of two threads that want a mutex at the same moment one would
/// sleep. The mutex and the conditions are for threads that sleep already (docs/findings/host.md, H9).
class Pool {
 public:
  /// Runs the job on the caller and on up to job.helpers pool threads that come in time; does nothing when another
  /// caller holds the pool.
  void run(Job& job) {
    const std::unique_lock owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) return;
    start(job.helpers);
    const int processor = sched_getcpu();
    for (std::size_t i = 0; i < std::min(helpers_.size(), static_cast<std::size_t>(job.helpers)); ++i)
      send_away(*helpers_[i], processor, sleeping_.load() > 0);
    job_.store(&job);
    generation_.fetch_add(1);
    if (sleeping_.load() > 0) {
      {
        const std::scoped_lock lock(mutex_);
      }  // a helper that is about to sleep does so now, and is then woken
      wake_.notify_all();
    }
    work_alone(job, 0);
    job_.store(nullptr);  // every chunk is taken: a helper that comes now is not waited for
    if (poll(kCallerPolling, [this] { return active_.load() == 0; })) return;
    std::unique_lock lock(mutex_);
    caller_sleeps_.store(true);
    done_.wait(lock, [this] { return active_.load() == 0; });
    caller_sleeps_.store(false);
  }

  ~Pool() {
    stop_.store(true);
    generation_.fetch_add(1);
    {
      const std::scoped_lock lock(mutex_);
    }
    wake_.notify_all();
    for (const auto& helper : helpers_) helper->thread.join();
  }

 private:
  void start(int helpers) {
    while (static_cast<int>(helpers_.size()) < helpers) {
      const int index = static_cast<int>(helpers_.size());
      const std::uint64_t seen = generation_.load();
      try {
        helpers_.reserve(helpers_.size() + 1);  // a thread that runs must not be lost
        auto helper = std::make_unique<Helper>(sched_getcpu());
        helper->thread = std::thread([this, index, seen, self = helper.get()] { loop(index, seen, *self); });
        helpers_.push_back(std::move(helper));
      } catch (const std::system_error&) {
        return;  // no more threads can be started: those there are do the work
      } catch (const std::bad_alloc&) {
        return;
      }
    }
  }

  void loop(int index, std::uint64_t seen, Helper& self) {
    inside_chunk = true;
    const auto news = [&] { return generation_.load() != seen; };
    for (;;) {
      if (!poll(kHelperPolling, news)) {
        std::unique_lock lock(mutex_);
        sleeping_.fetch_add(1);
        wake_.wait(lock, news);
        sleeping_.fetch_sub(1);
      }
      seen = generation_.load();
      if (stop_.load()) return;
      // Counted before the job is looked at: the caller takes the job away first and then waits for the count.
      active_.fetch_add(1);
      if (Job* job = job_.load(); job != nullptr && index < job->helpers) job->work(index + 1);
      self.processor.store(sched_getcpu(), std::memory_order_relaxed);
      if (active_.fetch_sub(1) == 1 && caller_sleeps_.load()) {
        {
          const std::scoped_lock lock(mutex_);
        }
        done_.notify_one();
      }
    }
  }

  std::mutex owner_;  // held by the caller whose job runs
  std::mutex mutex_;  // of both conditions
  std::condition_variable wake_;
  std::condition_variable done_;
  std::atomic<std::uint64_t> generation_{0};  // counts jobs
  std::atomic<Job*> job_{nullptr};
  std::atomic<int> active_{0};  // pool threads that may be inside the job
  std::atomic<int> sleeping_{0};
  std::atomic<bool> caller_sleeps_{false};
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Helper>> helpers_;
};

/// What set_parallel_for was given.
struct ForeignThreads {
  ParallelFor run = nullptr;
  void* context = nullptr;
};

/// The process' threads: its pool, or another's. A forked child has none of them, so it leaves the parent's pool alone
/// and makes a new one.
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
          instance_->foreign_ = {};
          inside_chunk = false;
          instance_->mutex_.unlock();
        });
  }
  ~Pools() {
    instance_ = nullptr;
    delete pool_;
  }
  Pool& own() {
    const std::scoped_lock lock(mutex_);
    if (pool_ == nullptr) pool_ = new Pool;
    return *pool_;
  }
  ForeignThreads foreign() {
    const std::scoped_lock lock(mutex_);
    return foreign_;
  }
  void set_foreign(ForeignThreads foreign) {
    const std::scoped_lock lock(mutex_);
    foreign_ = foreign;
  }

 private:
  static inline Pools* instance_ = nullptr;
  std::mutex mutex_;
  Pool* pool_ = nullptr;
  ForeignThreads foreign_;
};

Pools& pools() {
  static Pools instance;
  return instance;
}

}  // namespace

void parallel_run(std::int64_t count, std::int64_t grain, int most_threads, Body body, const void* context) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(1, grain);
  const std::int64_t chunks = (count - 1) / grain + 1;
  const int threads = inside_chunk ? 1 : static_cast<int>(std::min<std::int64_t>(chunks, most_threads));
  Job job{.count = count, .grain = grain, .body = body, .context = context, .helpers = threads - 1};
  if (threads > 1) {
    if (const ForeignThreads foreign = pools().foreign(); foreign.run != nullptr)
      foreign.run(
          foreign.context, threads,
          [](const void* all, int part) { work_alone(*static_cast<Job*>(const_cast<void*>(all)), part); }, &job);
    else
      pools().own().run(job);
  }
  work_alone(job, 0);  // all of it, or what nobody has taken
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace tmaops::detail

namespace tmaops {

void set_parallel_for(ParallelFor run, void* context) { detail::pools().set_foreign({run, context}); }

}  // namespace tmaops
