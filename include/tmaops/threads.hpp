// How many threads the CPU variants use, and whose.
#pragma once

#include "tmaops/export.hpp"

namespace tmaops {

/// Threads the CPU variants use: set_num_threads, else TMAOPS_NUM_THREADS, else the processors this process may run on
/// (affinity mask), no more than its cgroup CPU quota rounded up. At least 1. A call that is too short to gain from
/// several uses one. Results do not depend on it: they are bit-identical for 1 and for N threads.
/// Throws Error (bad_environment) when TMAOPS_NUM_THREADS is no such number.
TMAOPS_API int num_threads();

/// Overrides the number of threads for this process; 0 goes back to the environment's choice.
/// Throws Error (bad_parameter) when count is negative or above 1024.
TMAOPS_API void set_num_threads(int count);

/// A part of a call: run task(task_context, part). It throws nothing.
using ParallelTask = void (*)(const void* task_context, int part);

/// Runs task(task_context, part) once for every part from 0 to parts - 1, on whatever threads and in any order, several
/// at once or one after the other, and returns when all have ended. `parts` is at most num_threads(). Several threads
/// may call it at once. What it throws leaves the operator: an Error as it is, anything else as Error (internal).
using ParallelFor = void (*)(void* context, int parts, ParallelTask task, const void* task_context);

/// Lets the CPU variants run on a framework's threads instead of tmaops' own, so that the two do not compete for
/// processors: run(context, ...) is called wherever a call would use several threads. Null goes back to tmaops' own.
/// For PyTorch:
///
///   tmaops::set_parallel_for(
///       [](void*, int parts, tmaops::ParallelTask task, const void* task_context) {
///         at::parallel_for(0, parts, 1, [&](std::int64_t begin, std::int64_t end) {
///           for (std::int64_t part = begin; part < end; ++part) task(task_context, static_cast<int>(part));
///         });
///       },
///       nullptr);
///   tmaops::set_num_threads(at::get_num_threads());
///
/// The results are the same bits. A call that is running keeps what it began with. In a forked child, where the
/// framework's threads do not exist, tmaops' own are used again until it is set there.
TMAOPS_API void set_parallel_for(ParallelFor run, void* context);

}  // namespace tmaops
