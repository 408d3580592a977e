#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "bench/measure/call_graph.hpp"
#include "bench/measure/kernels.hpp"
#include "bench/measure/timer.hpp"
#include "core/cuda_status.hpp"

namespace tmaops::bench {
namespace {

/// Calls of one burst that is timed on the host, and about how long they take the GPU, in seconds. The driver queues
/// 1,024 launches before the host has to wait, and a call has a few kernels at most.
constexpr double kFewestHostCalls = 8;
constexpr double kMostHostCalls = 64;
constexpr double kHostBurstSeconds = 1e-3;

std::string pci_bus_id(Device device) {
  std::array<char, 32> text{};
  check_cuda(cudaDeviceGetPCIBusId(text.data(), text.size(), device.index), "bench: PCI bus");
  return text.data();
}

class CudaTimer : public Timer {
 public:
  explicit CudaTimer(Device device) : nvml_(pci_bus_id(device)) {
    check_cuda(cudaSetDevice(device.index), "bench");
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "bench: stream");
    check_cuda(cudaEventCreate(&begin_), "bench: event");
    check_cuda(cudaEventCreate(&end_), "bench: event");
    void* span = nullptr;
    check_cuda(cudaHostAlloc(&span, sizeof(ClockSpan), cudaHostAllocDefault), "bench: clock");
    span_ = new (span) ClockSpan;
  }
  ~CudaTimer() override {
    cudaFreeHost(span_);
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  /// The calls go round the whole list in every graph, so it does not matter which is first. Every sample makes its own
  /// graph, since kept ones would outlive the memory their calls work on.
  double seconds(const std::vector<Call>& calls, std::int64_t, std::int64_t count) override {
    const CallGraph graph(calls, count, stream_);
    // In processes that have run certain kernels, plain launches in a graph take longer when the last kernel outside a
    // graph was launched plainly. This one is dependent, so all graphs start alike (docs/findings/measuring.md, M9).
    launch_empty(stream_, true);
    graph.launch(stream_);
    check_cuda(cudaEventRecord(begin_, stream_), "bench: event");
    graph.launch_all(stream_);
    check_cuda(cudaEventRecord(end_, stream_), "bench: event");
    launch_clock(span_, stream_);
    const std::uint64_t reasons = nvml_.reasons();  // while the GPU works
    check_cuda(cudaEventSynchronize(end_), "bench: the timed calls");
    check_cuda(cudaStreamSynchronize(stream_), "bench: clock");
    clocks_ = {1e3 * static_cast<double>(span_->cycles) / static_cast<double>(span_->nanoseconds), reasons};
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "bench: event");
    return 1e-3 * milliseconds * static_cast<double>(count) / static_cast<double>(graph.calls());
  }
  std::optional<HostCost> host_cost(const std::vector<Call>& calls, const std::vector<Call>& fresh, double seconds_each,
                                    bool dependent) override {
    const auto count = static_cast<std::size_t>(
        std::clamp(kHostBurstSeconds / std::max(seconds_each, 1e-9), kFewestHostCalls, kMostHostCalls));
    const auto mean_us = [&](const auto& call) {
      call(0);  // the GPU is at work, as in the middle of a program
      const auto begin = std::chrono::steady_clock::now();
      for (std::size_t i = 0; i < count; ++i) call(i);
      const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - begin;
      check_cuda(cudaStreamSynchronize(stream_), "bench: calls timed on the host");
      return spent.count() / static_cast<double>(count);
    };
    HostCost cost;
    cost.call_us = mean_us([&](std::size_t i) { calls[i % calls.size()](stream_); });
    cost.launch_us = mean_us([&](std::size_t) { launch_empty(stream_, dependent); });
    if (!fresh.empty()) cost.fresh_us = mean_us([&](std::size_t i) { fresh[i % fresh.size()](stream_); });
    return cost;
  }
  void run(const Call& call) override {
    call(stream_);
    check_cuda(cudaStreamSynchronize(stream_), "bench: the checked call");
  }
  void run_profiled(const Call& call) override {
    check_cuda(cudaProfilerStart(), "bench: profiler");
    run(call);
    check_cuda(cudaProfilerStop(), "bench: profiler");
  }
  std::optional<ClockReading> take_clocks() override { return std::exchange(clocks_, std::nullopt); }
  std::string clocks_problem() const override { return nvml_.problem(); }

 private:
  Nvml nvml_;
  std::optional<ClockReading> clocks_;
  ClockSpan* span_ = nullptr;
  cudaStream_t stream_{};
  cudaEvent_t begin_{};
  cudaEvent_t end_{};
};

}  // namespace

std::unique_ptr<Timer> make_cuda_timer(Device device) { return std::make_unique<CudaTimer>(device); }
}  // namespace tmaops::bench
