// The one way to use several CPU threads.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tmaops/threads.hpp"

namespace tmaops {

/// How many threads a call should use that takes one thread so many microseconds: num_threads(), but 1 for a short
/// call, where waking threads costs more than they save and they would keep their processors from whoever runs next
/// (docs/findings/host.md, H13).
int threads_for(double microseconds);

namespace detail {
/// Calls body(context, begin, end, worker) for chunks of `grain` that cover [0, count), on at most so many threads.
void parallel_run(std::int64_t count, std::int64_t grain, int most_threads,
                  void (*body)(const void* context, std::int64_t begin, std::int64_t end, int worker),
                  const void* context);
}  // namespace detail

/// Calls fn(begin, end) or fn(begin, end, worker) for chunks of at most `grain` indices that together cover [0, count)
/// once, on up to `most_threads` threads; returns when all are done. Chunk boundaries depend on count and grain alone,
/// so a body that writes only its own range gives the same bits for any number of threads.
/// `worker` is in [0, most_threads) and unique among chunks that run at the same time: use it to pick scratch memory.
/// Chunks are handed out in increasing order. An exception of fn stops the handing out and is thrown to the caller.
/// Inside a chunk, and while another thread of the process uses the pool, a call runs on the calling thread alone.
/// Works in a forked child: the child starts its own threads at its first call. The threads are those of
/// set_parallel_for where it was called.
template <class Fn>
void parallel_for(std::int64_t count, std::int64_t grain, int most_threads, const Fn& fn) {
  detail::parallel_run(
      count, grain, most_threads,
      [](const void* context, std::int64_t begin, std::int64_t end, int worker) {
        const Fn& body = *static_cast<const Fn*>(context);
        if constexpr (std::is_invocable_v<const Fn&, std::int64_t, std::int64_t, int>) {
          body(begin, end, worker);
        } else {
          (void)worker;
          body(begin, end);
        }
      },
      &fn);
}

/// The same on up to num_threads() threads.
template <class Fn>
void parallel_for(std::int64_t count, std::int64_t grain, const Fn& fn) {
  parallel_for(count, grain, num_threads(), fn);
}

}  // namespace tmaops
