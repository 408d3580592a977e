// Without CUDA no workload is ever on a GPU: device_info() has thrown before.
#include "bench/measure/counters.hpp"
#include "bench/measure/gpu_memory.hpp"
#include "bench/measure/timer.hpp"
#include "bench/peers/peers.hpp"
#include "bench/workloads/device_buffer.hpp"
#include "core/fail.hpp"

namespace tmaops::bench {
namespace {
[[noreturn]] void refuse() { fail(ErrorCode::no_cuda_build, "bench", {}, {}); }
}  // namespace

DeviceBuffer::DeviceBuffer(DType, const Layout&, Device) { refuse(); }
DeviceBuffer::~DeviceBuffer() = default;
void DeviceBuffer::upload(const void*) { refuse(); }
void DeviceBuffer::download(void*) const { refuse(); }
void DeviceBuffer::poison() { refuse(); }
bool DeviceBuffer::canaries_intact() const { refuse(); }
std::unique_ptr<Timer> make_cuda_timer(Device) { refuse(); }
std::unique_ptr<Implementation> make_cuda_copy(const Workload&, Timer&) { refuse(); }
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
