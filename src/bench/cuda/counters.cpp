// Counters by CUPTI's range profiler: a range of its own around every kernel (times of wider ranges hold the profiler's
// own work); in each pass the same runs of the call, so that a value of several passes is of runs in the same place.
#include "bench/counters.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/cuda/cupti.hpp"
#include "core/cuda_status.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {

#ifdef TMAOPS_HAVE_CUPTI
namespace {

constexpr std::size_t kMostKernels = 1024;  // of all runs in a pass
constexpr int kMostFirst = 512;             // runs that fill the caches
constexpr int kRuns = 11;                   // counted ones
constexpr int kMostPasses = 100;

/// Parameters with their size, as CUPTI wants them.
template <class Parameters>
Parameters sized(std::size_t size) {
  Parameters parameters{};
  parameters.structSize = size;
  return parameters;
}
#define TMAOPS_CUPTI_PARAMETERS(type) sized<type>(type##_STRUCT_SIZE)

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

std::vector<const char*> metric_names() {
  std::vector<const char*> names;
  for (const CounterInfo& counter : kCounters) names.push_back(counter.name);
  return names;
}

/// The part that knows the chip: which counters a metric needs, and its value from them.
class Metrics {
 public:
  Metrics(CUcontext context, int device) {
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

  CounterValues values(const std::vector<std::uint8_t>& data, std::size_t range) {
    CounterValues result{};
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
  std::vector<const char*> names_ = metric_names();
  CUpti_Profiler_Host_Object* host_ = nullptr;
  std::vector<std::uint8_t> config_;
};

/// The profiler is on while this lives: switching it on and off takes half a second.
class Session {
 public:
  Session(CUcontext context, Metrics& metrics) {
    auto enable = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_Enable_Params);
    enable.ctx = context;
    profiler_ = call_cupti(cupti().enable, enable, "switching the profiler on").pRangeProfilerObject;
    auto size = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_GetCounterDataSize_Params);
    size.pRangeProfilerObject = profiler_;
    size.pMetricNames = metrics.names().data();
    size.numMetrics = metrics.names().size();
    size.maxNumOfRanges = kMostKernels;
    size.maxNumRangeTreeNodes = kMostKernels;
    if (const CUptiResult status = cupti().data_size(&size); status != CUPTI_SUCCESS) {
      disable();
      check_cupti(status, "size of the data");
    }
    data_.resize(size.counterDataSize);
  }
  ~Session() { disable(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Before the first pass of a call.
  void prepare(const Metrics& metrics) {
    auto initialize = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
    initialize.pRangeProfilerObject = profiler_;
    initialize.pCounterData = data_.data();
    initialize.counterDataSize = data_.size();
    call_cupti(cupti().data_initialize, initialize, "data");
    auto config = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_SetConfig_Params);
    config.pRangeProfilerObject = profiler_;
    config.configSize = metrics.config().size();
    config.pConfig = metrics.config().data();
    config.counterDataImageSize = data_.size();
    config.pCounterDataImage = data_.data();
    config.range = CUPTI_AutoRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = kMostKernels;
    config.numNestingLevels = 1;
    config.minNestingLevel = 1;
    config.passIndex = 0;
    config.targetNestingLevel = 1;
    call_cupti(cupti().set_config, config, "configuration of the passes");
  }
  void start() {
    auto start = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_Start_Params);
    start.pRangeProfilerObject = profiler_;
    call_cupti(cupti().start, start, "start of a pass");
  }
  /// Whether this was the last pass.
  bool stop() {
    auto stop = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_Stop_Params);
    stop.pRangeProfilerObject = profiler_;
    return call_cupti(cupti().stop, stop, "end of a pass").isAllPassSubmitted != 0;
  }
  /// Of each kernel in a pass; none where there were more than kMostKernels.
  std::optional<std::vector<CounterValues>> values(Metrics& metrics) {
    auto decode = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_DecodeData_Params);
    decode.pRangeProfilerObject = profiler_;
    if (call_cupti(cupti().decode, decode, "reading").numOfRangeDropped > 0) return std::nullopt;
    auto info = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_GetCounterDataInfo_Params);
    info.pCounterDataImage = data_.data();
    info.counterDataImageSize = data_.size();
    std::vector<CounterValues> kernels;
    const std::size_t ranges = call_cupti(cupti().data_info, info, "ranges").numTotalRanges;
    for (std::size_t range = 0; range < ranges; ++range) kernels.push_back(metrics.values(data_, range));
    return kernels;
  }

 private:
  void disable() {
    auto disable = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_Disable_Params);
    disable.pRangeProfilerObject = profiler_;
    cupti().disable(&disable);
  }

  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  std::vector<std::uint8_t> data_;
};

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
    metrics_.reset();
    cudaStreamDestroy(stream_);
    auto deinitialize = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_DeInitialize_Params);
    cupti().deinitialize(&deinitialize);
  }
  RangeProfiler(const RangeProfiler&) = delete;
  RangeProfiler& operator=(const RangeProfiler&) = delete;

  Counters read(const std::vector<Call>& calls) override {
    if (!session_) {
      metrics_ = std::make_unique<Metrics>(context_, device_.index);
      session_ = std::make_unique<Session>(context_, *metrics_);
    }
    // The profiler empties the caches before a pass, where a timed call finds what the calls before it left: inputs of
    // a hot one, results that are still to be written to memory. All sets fill the caches once.
    const int first = std::min(static_cast<int>(calls.size()), kMostFirst);
    if (const auto kernels = passes(calls, first + kRuns)) return fold_runs(*kernels, first + kRuns, kRuns);
    if (const auto kernels = passes(calls, 2)) return fold_runs(*kernels, 2, 1);
    throw Error(ErrorCode::variant_refuses,
                {.where = "counters",
                 .got = "more than " + std::to_string(kMostKernels / 2) + " kernels in one call",
                 .needed = {}});
  }

 private:
  /// Counters of the kernels of these runs; none where they are more than kMostKernels.
  std::optional<std::vector<CounterValues>> passes(const std::vector<Call>& calls, int runs) {
    session_->prepare(*metrics_);
    bool last = false;
    for (int pass = 0; pass < kMostPasses && !last; ++pass) {
      session_->start();
      for (int i = 0; i < runs; ++i) run(calls[static_cast<std::size_t>(i) % calls.size()]);
      last = session_->stop();
    }
    return session_->values(*metrics_);
  }
  void run(const Call& call) {
    call(stream_);
    check_cuda(cudaStreamSynchronize(stream_), "counters: call");
  }

  Device device_;
  CUcontext context_ = nullptr;
  cudaStream_t stream_{};
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<CounterReader> make_cuda_counters(Device device) {
  if (const CountersState state = counters_state(); !state.problem.empty())
    throw Error(ErrorCode::variant_refuses, {.where = "counters", .got = state.problem, .needed = state.mend});
  return std::make_unique<RangeProfiler>(device);
}
#else
std::unique_ptr<CounterReader> make_cuda_counters(Device) {
  const CountersState state = counters_state();
  throw Error(ErrorCode::variant_refuses, {.where = "counters", .got = state.problem, .needed = state.mend});
}
#endif

}  // namespace tmaops::bench
