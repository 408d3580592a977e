// The ceilings of every operator on a GPU: how it copies, and a kernel that does nothing.
#include <cuda_runtime_api.h>

#include "bench/measure/kernels.hpp"
#include "bench/peers/peers.hpp"
#include "core/cuda_status.hpp"

namespace tmaops::bench {
namespace {

void copy_by_engine(void* to, const void* from, std::int64_t chunks, Stream stream) {
  check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(chunks) * 16, cudaMemcpyDeviceToDevice,
                             static_cast<cudaStream_t>(stream)),
             "copy");
}
constexpr CopyWay kWaysOnGpu[] = {launch_copy, copy_by_engine};

class CudaEmpty : public InProcess {
 public:
  explicit CudaEmpty(Timer& timer)
      : InProcess("empty", Kind::ceiling, "", timer, {[](Stream stream) { launch_empty(stream); }}) {}
  Comparison verify(Workload&, int, double) override {
    timer_.run(calls_.front());
    return {.ok = true};
  }
  /// What a launch costs the host on this machine: the floor of everybody's.
  std::optional<HostCost> host_cost(double seconds_each) override {
    return timer_.host_cost(calls_, {}, seconds_each, false);
  }
};

}  // namespace

std::span<const CopyWay> ways_to_copy_on_gpu() { return kWaysOnGpu; }
std::unique_ptr<Implementation> make_cuda_empty(const Workload&, Timer& timer) {
  return std::make_unique<CudaEmpty>(timer);
}

}  // namespace tmaops::bench
