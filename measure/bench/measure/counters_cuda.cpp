// Counters by CUPTI's range profiler. Every kernel has a range of its own, because wider ranges contain the profiler's
// own work. Each pass makes the same runs of the call, so a value that takes several passes is of the same run in each.
// Calls back to back are one range, long enough that the profiler's work hardly counts.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "bench/measure/call_graph.hpp"
#include "bench/measure/counters.hpp"
#include "bench/measure/range_profiler.hpp"
#include "core/fail.hpp"

namespace tmaops::bench {

#ifdef TMAOPS_HAVE_CUPTI
namespace {

constexpr int kMostFirst = 512;  // runs that fill the caches
constexpr int kRuns = 11;        // counted ones
constexpr int kMostPasses = 100;
constexpr double kBackToBackSeconds = 0.05;

std::vector<const char*> metric_names(std::size_t count) {
  std::vector<const char*> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(kCounters[i].name);
  return names;
}

class RangeProfiler : public CounterReader {
 public:
  explicit RangeProfiler(Device device) : device_(device) {
    check_cuda(cudaSetDevice(device.index), "counters");
    context_ = current_context();
    auto initialize = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_Initialize_Params);
    call_cupti(cupti().initialize, initialize, "start");
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "counters: stream");
  }
  ~RangeProfiler() override {
    session_.reset();
    each_.reset();
    together_.reset();
    cudaStreamDestroy(stream_);
    auto deinitialize = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_DeInitialize_Params);
    cupti().deinitialize(&deinitialize);
  }
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  Counters read(const std::vector<Call>& calls) override {
    switch_to(Ranges::kernels);
    // The profiler empties the caches before a pass, where a timed call finds what the calls before it left: inputs of
    // a hot one, results that are still to be written to memory. All sets fill the caches once.
    const int first = std::min(static_cast<int>(calls.size()), kMostFirst);
    if (const auto kernels = kernels_of(calls, first + kRuns)) return fold_runs(*kernels, first + kRuns, kRuns);
    if (const auto kernels = kernels_of(calls, 2)) return fold_runs(*kernels, 2, 1);
    fail(ErrorCode::variant_refuses, "counters",
         "more than " + std::to_string(ProfilerSession::kMostRanges / 2) + " kernels in one call", {});
  }

  BackToBack read_back_to_back(const std::vector<Call>& calls, double seconds_each) override {
    switch_to(Ranges::marked);
    const CallGraph graph(calls, static_cast<std::int64_t>(kBackToBackSeconds / seconds_each) + 1, stream_);
    const auto ranges = passes(*together_, [&] {
      graph.launch(stream_);  // fills the caches
      wait();
      session_->begin_range();
      graph.launch_all(stream_);
      wait();
      session_->end_range();
    });
    if (!ranges || ranges->size() != 1)
      fail(ErrorCode::variant_refuses, "counters",
           std::to_string(ranges ? ranges->size() : 0) + " ranges around calls back to back", "one");
    return back_to_back(ranges->front(), graph.calls());
  }

 private:
  /// A session has one kind of ranges, or beginning one fails (CUPTI_ERROR_INVALID_PARAMETER).
  void switch_to(Ranges ranges) {
    if (session_ && session_->ranges() == ranges) return;
    if (!each_) {
      each_ = std::make_unique<Metrics>(context_, device_.index, metric_names(kCounters.size()));
      together_ = std::make_unique<Metrics>(context_, device_.index, metric_names(kBackToBackCounters));
    }
    session_.reset();  // one at a time
    session_ = std::make_unique<ProfilerSession>(context_, ranges);
  }
  /// Does `work` once in every pass. The values of each range; none where they are more than the profiler takes.
  template <class Work>
  std::optional<std::vector<std::vector<double>>> passes(Metrics& metrics, const Work& work) {
    session_->prepare(metrics);
    bool last = false;
    for (int pass = 0; pass < kMostPasses && !last; ++pass) {
      session_->start();
      work();
      last = session_->stop();
    }
    return session_->values(metrics);
  }
  /// Counters of the kernels of these runs; none where they are more than the profiler takes.
  std::optional<std::vector<CounterValues>> kernels_of(const std::vector<Call>& calls, int runs) {
    const auto ranges = passes(*each_, [&] {
      for (int i = 0; i < runs; ++i) {
        calls[static_cast<std::size_t>(i) % calls.size()](stream_);
        wait();
      }
    });
    if (!ranges) return std::nullopt;
    std::vector<CounterValues> kernels(ranges->size());
    for (std::size_t i = 0; i < kernels.size(); ++i) std::ranges::copy((*ranges)[i], kernels[i].begin());
    return kernels;
  }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_), "counters: call"); }

  Device device_;
  CUcontext context_ = nullptr;
  cudaStream_t stream_{};
  std::unique_ptr<Metrics> each_;      // kernel
  std::unique_ptr<Metrics> together_;  // calls back to back
  std::unique_ptr<ProfilerSession> session_;
};

}  // namespace

std::unique_ptr<CounterReader> make_cuda_counters(Device device) {
  if (const CountersState state = counters_state(); !state.problem.empty())
    fail(ErrorCode::variant_refuses, "counters", state.problem, state.mend);
  return std::make_unique<RangeProfiler>(device);
}
#else
std::unique_ptr<CounterReader> make_cuda_counters(Device) {
  const CountersState state = counters_state();
  fail(ErrorCode::variant_refuses, "counters", state.problem, state.mend);
}
#endif

}  // namespace tmaops::bench
