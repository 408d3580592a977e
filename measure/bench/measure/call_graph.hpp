// Calls in a graph, one after the other: how a GPU's time is taken.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/workloads/workload.hpp"
#include "core/cuda_status.hpp"

namespace tmaops::bench {

/// About `count` calls or more: a graph of whole turns of the list, and how often it is to be launched for them.
class CallGraph {
 public:
  /// Makes the first call and waits for it, then captures all. Throws Error cuda_failed, and what calls throw.
  CallGraph(const std::vector<Call>& calls, std::int64_t count, cudaStream_t stream) {
    const auto sets = static_cast<std::int64_t>(calls.size());
    const std::int64_t wanted = std::clamp<std::int64_t>(count, 1, kMostCalls);
    size_ = (wanted + sets - 1) / sets * sets;
    replays_ = (count + size_ - 1) / size_;
    calls.front()(stream);  // what the first call of all loads is not captured
    check_cuda(cudaStreamSynchronize(stream), "bench: first call");
    cudaGraph_t graph{};
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "bench: capture");
    for (std::int64_t i = 0; i < size_; ++i) calls[static_cast<std::size_t>(i) % calls.size()](stream);
    check_cuda(cudaStreamEndCapture(stream, &graph), "bench: capture");
    cudaGraphExec_t made{};
    const cudaError_t status = cudaGraphInstantiate(&made, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(status, "bench: graph");
    graph_.reset(made);
  }

  void launch(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(graph_.get(), stream), "bench: graph"); }
  void launch_all(cudaStream_t stream) const {
    for (std::int64_t i = 0; i < replays_; ++i) launch(stream);
  }
  /// Of launch_all().
  std::int64_t calls() const { return size_ * replays_; }

 private:
  /// Enough that the graph's start does not count, few enough to be made quickly.
  static constexpr std::int64_t kMostCalls = 256;

  std::int64_t size_ = 0;
  std::int64_t replays_ = 0;
  std::unique_ptr<CUgraphExec_st, decltype(&cudaGraphExecDestroy)> graph_{nullptr, &cudaGraphExecDestroy};
};

}  // namespace tmaops::bench
