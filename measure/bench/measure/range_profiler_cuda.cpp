#include "bench/measure/range_profiler.hpp"

#ifdef TMAOPS_HAVE_CUPTI
#include <cuda_runtime_api.h>

#include <utility>

#include "core/cuda_status.hpp"

namespace tmaops::bench {
namespace {

/// The parameters of a function on a profiler.
template <class Parameters>
Parameters of(CUpti_RangeProfiler_Object* profiler, std::size_t size) {
  auto parameters = sized<Parameters>(size);
  parameters.pRangeProfilerObject = profiler;
  return parameters;
}
#define TMAOPS_PROFILER_PARAMETERS(type) \
  of<CUpti_RangeProfiler_##type##_Params>(profiler_, CUpti_RangeProfiler_##type##_Params_STRUCT_SIZE)

}  // namespace

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

Metrics::Metrics(CUcontext context, int device, std::vector<const char*> names) : names_(std::move(names)) {
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

Metrics::~Metrics() {
  auto host = TMAOPS_CUPTI_PARAMETERS(CUpti_Profiler_Host_Deinitialize_Params);
  host.pHostObject = host_;
  cupti().host_deinitialize(&host);
}

std::vector<double> Metrics::values(const std::vector<std::uint8_t>& data, std::size_t range) {
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

ProfilerSession::ProfilerSession(CUcontext context, Ranges ranges) : ranges_(ranges) {
  auto enable = TMAOPS_CUPTI_PARAMETERS(CUpti_RangeProfiler_Enable_Params);
  enable.ctx = context;
  profiler_ = call_cupti(cupti().enable, enable, "switching the profiler on").pRangeProfilerObject;
}

ProfilerSession::~ProfilerSession() {
  auto disable = TMAOPS_PROFILER_PARAMETERS(Disable);
  cupti().disable(&disable);
}

void ProfilerSession::prepare(Metrics& metrics) {
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

void ProfilerSession::start() {
  auto start = TMAOPS_PROFILER_PARAMETERS(Start);
  call_cupti(cupti().start, start, "start of a pass");
}

void ProfilerSession::begin_range() {
  auto push = TMAOPS_PROFILER_PARAMETERS(PushRange);
  push.pRangeName = "calls";
  call_cupti(cupti().push_range, push, "begin of a range");
}

void ProfilerSession::end_range() {
  auto pop = TMAOPS_PROFILER_PARAMETERS(PopRange);
  call_cupti(cupti().pop_range, pop, "end of a range");
}

bool ProfilerSession::stop() {
  auto stop = TMAOPS_PROFILER_PARAMETERS(Stop);
  return call_cupti(cupti().stop, stop, "end of a pass").isAllPassSubmitted != 0;
}

std::optional<std::vector<std::vector<double>>> ProfilerSession::values(Metrics& metrics) {
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

}  // namespace tmaops::bench
#endif
