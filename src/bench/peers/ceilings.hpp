// What bounds every implementation of a case: moving its bytes, launching, and loading its samples.
#pragma once

#include <memory>

#include "bench/measure/implementation.hpp"

namespace tmaops::bench {

/// A copy on all threads that reads and writes as many bytes as the case's floor.
std::unique_ptr<Implementation> make_copy(const Workload& workload, Timer& timer);

/// The better of cudaMemcpyAsync, which has a fast and a slow mode, and a kernel of one 16-byte load and store per
/// thread: as many bytes read and written as the case's floor.
std::unique_ptr<Implementation> make_cuda_copy(const Workload& workload, Timer& timer);

/// A kernel that does nothing: what a launch costs by itself.
std::unique_ptr<Implementation> make_cuda_empty(const Workload& workload, Timer& timer);

/// The loads of a multi-scale deformable attention alone: every sample's location and the 16-byte pieces of the four
/// pixels around it. Throws Error variant_refuses for rows that are not whole pieces.
std::unique_ptr<Implementation> make_cuda_gather(const Workload& workload, Timer& timer);

}  // namespace tmaops::bench
