// A GPU's memory, as bytes. The copies and fills have ended when these functions return.
#pragma once

#include <cstddef>
#include <string>

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// Throws Error device_out_of_memory, which names what the memory is for.
std::byte* allocate_on_gpu(std::size_t bytes, Device device, const std::string& what);
void free_on_gpu(std::byte* memory);
void fill_on_gpu(void* memory, int byte, std::size_t bytes);
void copy_to_gpu(void* to, const void* from, std::size_t bytes);
void copy_from_gpu(void* to, const void* from, std::size_t bytes);

}  // namespace tmaops::bench
