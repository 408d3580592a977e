// Without CUDA no workload is ever on a GPU: device_info() has thrown before.
#include "bench/measure/counters.hpp"
#include "bench/measure/gpu_memory.hpp"
#include "bench/measure/timer.hpp"
#include "bench/peers/peers.hpp"
#include "bench/workloads/gpu_bytes.hpp"
#include "core/fail.hpp"

namespace tmaops::bench {
namespace {
[[noreturn]] void refuse() { fail(ErrorCode::no_cuda_build, "bench", {}, {}); }
}  // namespace

std::byte* allocate_on_gpu(std::size_t, Device, const std::string&) { refuse(); }
void free_on_gpu(std::byte*) {}
void fill_on_gpu(void*, int, std::size_t) { refuse(); }
void copy_to_gpu(void*, const void*, std::size_t) { refuse(); }
void copy_from_gpu(void*, const void*, std::size_t) { refuse(); }
std::unique_ptr<Timer> make_cuda_timer(Device) { refuse(); }
std::span<const CopyWay> ways_to_copy_on_gpu() { refuse(); }
std::unique_ptr<Implementation> make_cuda_empty(const Workload&, Timer&) { refuse(); }
std::unique_ptr<Implementation> make_cuda_gather(const Workload&, Timer&) { refuse(); }
std::unique_ptr<CounterReader> make_cuda_counters(Device) { refuse(); }
const GpuMemory& gpu_memory(Device) {
  static const GpuMemory none;
  return none;
}
CountersState counters_state() {
  return {
      .found = {}, .problem = "built without CUDA", .mend = "`CUDA=1 make run` fetches a compiler and builds again"};
}

}  // namespace tmaops::bench
