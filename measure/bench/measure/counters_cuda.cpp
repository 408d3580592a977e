// Counters by CUPTI's range profiler. Every kernel has a range of its own, because wider ranges contain the profiler's
// own work. Each pass makes the same runs of the call, so a value that takes several passes is of the same run in each.
// Calls back to back are one range, long enough that the profiler's work hardly counts.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bench/measure/call_graph.hpp"
#include "bench/measure/counters.hpp"
#include "bench/measure/cupti.hpp"
#include "core/cuda_status.hpp"
#include "core/fail.hpp"

namespace tmaops::bench {

#ifdef TMAOPS_HAVE_CUPTI
namespace {

constexpr int kMostFirst = 512;  // runs that fill the caches
constexpr int kRuns = 11;        // counted ones
constexpr int kMostPasses = 100;
constexpr double kBackToBackSeconds = 0.05;

/// The ranges whose counters a pass reads.
enum class Ranges {
  kernels,  // each kernel by itself
  marked    // from begin_range() to end_range(), where kernels run as they do without a profiler
};

/// Throws Error cuda_failed.
CUcontext current_context() {
  using Function = CUresult(CUcontext*);
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check_cuda(cudaFree(nullptr), "counters: context");  // makes it
  check_cuda(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &address, 4000, cudaEnableDefault, &found),
             "counters: cuCtxGetCurrent");
  CUcontext context = nullptr;
  if (address != nullptr) reinterpret_cast<Function*>(address)(&context);
  return context;
}

/// Knows the chip: which counters the metrics need, and how to compute the metrics from them. Its functions throw Error
/// variant_refuses.
class Metrics {
 public:
  Metrics(CUcontext context, int device, std::vector<const char*> names) : names_(std::move(names)) {
    auto chip = TMAOPS_CUPTI_PARAMETERS(CUpti_Device_GetChipName_Params);
    chip.deviceIndex = static_cast<std::size_t>(device);
    call_cupti(cupti().chip_name, chip, "name of the chip");

    auto available = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_GetCounterAvailability_Params);
    available.ctx = context;
    call_cupti(cupti().availability, available, "counters of this GPU");
    std::vector<std::uint8_t> image(available.counterAvailabilityImageSize);
    available.pCounterAvailabilityImage = image.data();
    call_cupti(cupti().availability, available, "counters of this GPU");

    auto host = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_Host_Initialize_Params);
    host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    host.pChipName = chip.pChipName;
    host.pCounterAvailabilityImage = image.data();
    host_ = call_cupti(cupti().host_initialize, host, "metrics of this chip").pHostObject;

    auto add = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_Host_ConfigAddMetrics_Params);
    add.pHostObject = host_;
    add.ppMetricNames = names_.data();
    add.numMetrics = names_.size();
    call_cupti(cupti().add_metrics, add, "choosing metrics");
    auto size = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_Host_GetConfigImageSize_Params);
    size.pHostObject = host_;
    config_.resize(call_cupti(cupti().config_size, size, "configuration").configImageSize);
    auto config = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_Host_GetConfigImage_Params);
    config.pHostObject = host_;
    config.configImageSize = config_.size();
    config.pConfigImage = config_.data();
    call_cupti(cupti().config_image, config, "configuration");
  }
  ~Metrics() {
    auto host = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_Host_Deinitialize_Params);
    host.pHostObject = host_;
    cupti().host_deinitialize(&host);
  }
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  const std::vector<std::uint8_t>& config() const { return config_; }
  std::vector<const char*>& names() { return names_; }
  /// In the order of the names.
  std::vector<double> values(const std::vector<std::uint8_t>& data, std::size_t range) {
    std::vector<double> result(names_.size());
    auto evaluate = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_Host_EvaluateToGpuValues_Params);
    evaluate.pHostObject = host_;
    evaluate.pCounterDataImage = data.data();
    evaluate.counterDataImageSize = data.size();
    evaluate.rangeIndex = range;
    evaluate.ppMetricNames = names_.data();
    evaluate.numMetrics = names_.size();
    evaluate.pMetricValues = result.data();
    call_cupti(cupti().evaluate, evaluate, "values");
    return result;
  }

 private:
  std::vector<const char*> names_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
  std::vector<std::uint8_t> config_;
};

/// The parameters of a function on a profiler.
template <class Parameters>
Parameters of(CUpti_RangeProfiler_Object* profiler, std::size_t size) {
  auto parameters = sized<Parameters>(size);
  parameters.pRangeProfilerObject = profiler;
  return parameters;
}
#define TMAOPS_PROFILER_PARAMETERS(type) \
  of<CUpti_RangeProfiler_##type##_Params>(profiler_, CUpti_RangeProfiler_##type##_Params_STRUCT_SIZE)

/// The profiler is on while this lives. Switching it is slow. Its functions throw Error variant_refuses.
class ProfilerSession {
 public:
  static constexpr std::size_t kMostRanges = 1024;  // of all runs in a pass

  ProfilerSession(CUcontext context, Ranges ranges) : ranges_(ranges) {
    auto enable = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_Enable_Params);
    enable.ctx = context;
    profiler_ = call_cupti(cupti().enable, enable, "switching the profiler on").pRangeProfilerObject;
  }
  ~ProfilerSession() {
    auto disable = TMAOPS_PROFILER_PARAMETERS(Disable);
    cupti().disable(&disable);
  }
  ProfilerSession(const ProfilerSession&) = delete;
  ProfilerSession& operator=(const ProfilerSession&) = delete;

  Ranges ranges() const { return ranges_; }
  /// Before the first pass. `metrics` lives as long as the passes go on.
  void prepare(Metrics& metrics) {
    auto size = TMAOPS_PROFILER_PARAMETERS(GetCounterDataSize);
    size.pMetricNames = metrics.names().data();
    size.numMetrics = metrics.names().size();
    size.maxNumOfRanges = kMostRanges;
    size.maxNumRangeTreeNodes = kMostRanges;
    data_.assign(call_cupti(cupti().data_size, size, "size of the data").counterDataSize, 0);
    auto initialize = TMAOPS_PROFILER_PARAMETERS(CounterDataImage_Initialize);
    initialize.pCounterData = data_.data();
    initialize.counterDataSize = data_.size();
    call_cupti(cupti().data_initialize, initialize, "data");
    auto config = TMAOPS_PROFILER_PARAMETERS(SetConfig);
    config.configSize = metrics.config().size();
    config.pConfig = metrics.config().data();
    config.counterDataImageSize = data_.size();
    config.pCounterDataImage = data_.data();
    config.range = ranges_ == Ranges::kernels ? CUPTI_AutoRange : CUPTI_UserRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = kMostRanges;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = 0;
    config.targetNestingLevel = 1;
    call_cupti(cupti().set_config, config, "configuration of the passes");
  }

  void start() {
    auto start = TMAOPS_PROFILER_PARAMETERS(Start);
    call_cupti(cupti().start, start, "start of a pass");
  }

  void begin_range() {
    auto push = TMAOPS_PROFILER_PARAMETERS(PushRange);
    push.pRangeName = "calls";
    call_cupti(cupti().push_range, push, "begin of a range");
  }

  void end_range() {
    auto pop = TMAOPS_PROFILER_PARAMETERS(PopRange);
    call_cupti(cupti().pop_range, pop, "end of a range");
  }

  /// Whether this was the last pass.
  bool stop() {
    auto stop = TMAOPS_PROFILER_PARAMETERS(Stop);
    return call_cupti(cupti().stop, stop, "end of a pass").isAllPassSubmitted != 0;
  }

  /// The values of each range; nothing where there were more than kMostRanges.
  std::optional<std::vector<std::vector<double>>> values(Metrics& metrics) {
    auto decode = TMAOPS_PROFILER_PARAMETERS(DecodeData);
    if (call_cupti(cupti().decode, decode, "reading").numOfRangeDropped > 0) return std::nullopt;
    auto info = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_GetCounterDataInfo_Params);
    info.pCounterDataImage = data_.data();
    info.counterDataImageSize = data_.size();
    std::vector<std::vector<double>> found;
    const std::size_t ranges = call_cupti(cupti().data_info, info, "ranges").numTotalRanges;
    for (std::size_t range = 0; range < ranges; ++range) found.push_back(metrics.values(data_, range));
    return found;
  }

 private:
  Ranges ranges_;
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  std::vector<std::uint8_t> data_;
};

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
