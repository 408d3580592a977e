// Without CUDA no workload is ever on a GPU: device_info() has thrown before. On the executor nothing is measured.
#include "bench/measure/counters.hpp"
#include "bench/measure/gpu_memory.hpp"
#include "bench/measure/timer.hpp"
#include "bench/peers/peers.hpp"
#include "core/fail.hpp"

namespace tmaops::bench {
namespace {
[[noreturn]] void refuse() { fail(ErrorCode::no_cuda_build, "bench", {}, {}); }
}  // namespace

/// The executor's kernels have run when a call returns.
std::unique_ptr<Timer> make_cuda_timer(Device) { return make_cpu_timer(); }
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
