// Host twin of <cuda_pipeline.h>: cp.async.
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/interface.hpp"

__forceinline__ void __pipeline_memcpy_async(void* to, const void* from, std::size_t size, std::size_t zeros = 0) {
  tmaops::executor::copy_async(to, from, static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(size - zeros));
}
__forceinline__ void __pipeline_commit() { tmaops::executor::commit_copies(); }
__forceinline__ void __pipeline_wait_prior(std::size_t groups) {
  tmaops::executor::wait_copies(static_cast<int>(groups));
}
