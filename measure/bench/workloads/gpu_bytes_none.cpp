// Without CUDA no tensor is ever on a GPU: device_info() has thrown before.
#include "bench/workloads/gpu_bytes.hpp"
#include "core/fail.hpp"

namespace tmaops::bench {
namespace {
[[noreturn]] void no_memory() { fail(ErrorCode::no_cuda_build, "bench", {}, {}); }
}  // namespace

std::byte* allocate_on_gpu(std::size_t, Device, const std::string&) { no_memory(); }
void free_on_gpu(std::byte*) {}
void fill_on_gpu(void*, int, std::size_t) { no_memory(); }
void copy_to_gpu(void*, const void*, std::size_t) { no_memory(); }
void copy_from_gpu(void*, const void*, std::size_t) { no_memory(); }

}  // namespace tmaops::bench
