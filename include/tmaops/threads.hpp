// How many threads the CPU variants use.
#pragma once

namespace tmaops {

/// Threads the CPU variants use: set_num_threads, else TMAOPS_NUM_THREADS, else the processors this process may run on
/// (affinity mask), no more than its cgroup CPU quota rounded up. At least 1.
/// Results do not depend on it: they are bit-identical for 1 and for N threads.
int num_threads();

/// Overrides the number of threads for this process; 0 goes back to the environment's choice.
/// Throws Error (bad_parameter) when count is negative or above 1024.
void set_num_threads(int count);

}  // namespace tmaops
