// What differs with and without a CUDA toolkit: running work on a GPU, and memory there. work_cuda.cpp and
// workspace_cuda.cpp have it; without a toolkit work_none.cpp refuses.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "core/work.hpp"

namespace tmaops {

/// Which launches may be dependent: those that ask for it, or those but for the first step.
enum class Dependence { as_asked, not_the_first };

/// Every step once, by the CUDA runtime.
void run_on_device(Device device, const LaunchSite& site, std::span<const Work::Step> steps, Stream stream,
                   Dependence dependence);
/// The same, and waits until they have run.
void finish_on_device(Device device, const LaunchSite& site, std::span<const Work::Step> steps, Stream stream);
std::unique_ptr<RepeatedWork> repeat_on_device(Work work);

/// Memory of the library's own pool, in the order of a stream. Throws Error device_out_of_memory or cuda_failed.
void* allocate_on_device(Device device, std::size_t bytes, Stream stream, std::string_view where);
void release_on_device(Device device, void* memory, Stream stream) noexcept;
/// A stream on which nothing runs but making plans, so that memory is there as soon as it is allocated.
Stream stream_of_plans(Device device);

}  // namespace tmaops
