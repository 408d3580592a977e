// The ceilings of every operator on a GPU: a copy, and a kernel that does nothing.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "bench/measure/kernels.hpp"
#include "bench/peers/peers.hpp"
#include "bench/workloads/buffer.hpp"
#include "bench/workloads/device_buffer.hpp"
#include "bench/workloads/random.hpp"
#include "core/cuda_status.hpp"

namespace tmaops::bench {
namespace {

/// The better of a kernel and cudaMemcpyAsync. Its calls() are the kernel's: the other launches none that could be
/// counted.
class CudaCopy : public InProcess {
 public:
  CudaCopy(const Workload& workload, Timer& timer) : InProcess("copy", Kind::ceiling, "", timer) {
    chunks_ = static_cast<std::int64_t>(workload.info().floor_bytes / 2 / 16) + 1;
    const Layout layout = Layout::contiguous({chunks_ * 4});
    Buffer random(DType::f32, layout);
    fill_normal(random.view(), 1);
    for (int set = 0; set < workload.sets(); ++set) {
      from_.emplace_back(DType::f32, layout, workload.info().device);
      to_.emplace_back(DType::f32, layout, workload.info().device);
      from_.back().upload(random.view().data);
      to_.back().poison();
      void* to = to_.back().view().data;
      const void* from = from_.back().view().data;
      calls_.push_back([=, chunks = chunks_](Stream stream) { launch_copy(to, from, chunks, stream); });
      engine_.push_back([=, bytes = static_cast<std::size_t>(chunks_) * 16](Stream stream) {
        check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream)),
                   "copy");
      });
    }
  }

  Comparison verify(Workload&, int set, double) override {
    const auto i = static_cast<std::size_t>(set);
    const auto bytes = static_cast<std::size_t>(chunks_) * 16;
    std::vector<std::byte> want(bytes), got(bytes);
    from_.at(i).download(want.data());
    bool same = true;
    for (const std::vector<Call>* calls : {&calls_, &engine_}) {
      to_.at(i).poison();
      timer_.run(calls->at(i));
      to_[i].download(got.data());
      same = same && got == want && to_[i].canaries_intact();
    }
    return {.ok = same, .problem = same ? "" : "the copy differs from its source"};
  }
  double seconds(std::int64_t first, std::int64_t count) override {
    return std::min(timer_.seconds(calls_, first, count), timer_.seconds(engine_, first, count));
  }

 private:
  std::int64_t chunks_ = 0;
  std::vector<DeviceBuffer> from_;
  std::vector<DeviceBuffer> to_;
  std::vector<Call> engine_;
};

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

std::unique_ptr<Implementation> make_cuda_copy(const Workload& workload, Timer& timer) {
  return std::make_unique<CudaCopy>(workload, timer);
}
std::unique_ptr<Implementation> make_cuda_empty(const Workload&, Timer& timer) {
  return std::make_unique<CudaEmpty>(timer);
}

}  // namespace tmaops::bench
