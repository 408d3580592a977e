// CUPTI's functions that are used, loaded at run time. Only where the toolkit has CUPTI's headers.
#pragma once

#if __has_include(<cupti_range_profiler.h>) && __has_include(<cupti_profiler_host.h>)
#define TMAOPS_HAVE_CUPTI 1

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstddef>
#include <string>

namespace tmaops::bench {

struct Cupti {
  decltype(&cuptiGetErrorMessage) error_message = nullptr;
  decltype(&cuptiDeviceGetChipName) chip_name = nullptr;
  decltype(&cuptiProfilerInitialize) initialize = nullptr;
  decltype(&cuptiProfilerDeInitialize) deinitialize = nullptr;
  decltype(&cuptiProfilerGetCounterAvailability) availability = nullptr;
  decltype(&cuptiProfilerHostInitialize) host_initialize = nullptr;
  decltype(&cuptiProfilerHostDeinitialize) host_deinitialize = nullptr;
  decltype(&cuptiProfilerHostConfigAddMetrics) add_metrics = nullptr;
  decltype(&cuptiProfilerHostGetConfigImageSize) config_size = nullptr;
  decltype(&cuptiProfilerHostGetConfigImage) config_image = nullptr;
  decltype(&cuptiProfilerHostEvaluateToGpuValues) evaluate = nullptr;
  decltype(&cuptiRangeProfilerEnable) enable = nullptr;
  decltype(&cuptiRangeProfilerDisable) disable = nullptr;
  decltype(&cuptiRangeProfilerGetCounterDataSize) data_size = nullptr;
  decltype(&cuptiRangeProfilerCounterDataImageInitialize) data_initialize = nullptr;
  decltype(&cuptiRangeProfilerSetConfig) set_config = nullptr;
  decltype(&cuptiRangeProfilerStart) start = nullptr;
  decltype(&cuptiRangeProfilerStop) stop = nullptr;
  decltype(&cuptiRangeProfilerPushRange) push_range = nullptr;
  decltype(&cuptiRangeProfilerPopRange) pop_range = nullptr;
  decltype(&cuptiRangeProfilerDecodeData) decode = nullptr;
  decltype(&cuptiRangeProfilerGetCounterDataInfo) data_info = nullptr;

  std::string name;     // of the library that was loaded; empty: none
  std::string problem;  // why the functions cannot be used; empty: they can
};

/// Loads on the first call.
const Cupti& cupti();

/// Throws Error variant_refuses unless the status is success, with what to do where that is known.
void check_cupti(CUptiResult status, const char* what);

/// CUPTI's parameters with their size, as it wants them.
template <class Parameters>
Parameters sized(std::size_t size) {
  Parameters parameters{};
  parameters.structSize = size;
  return parameters;
}
#define TMAOPS_CUPTI_PARAMETERS(type) sized<type>(type##_STRUCT_SIZE)

/// Runs a function of CUPTI on its parameters. Returns them.
template <class Parameters>
Parameters& call_cupti(CUptiResult (*function)(Parameters*), Parameters& parameters, const char* what) {
  check_cupti(function(&parameters), what);
  return parameters;
}

}  // namespace tmaops::bench

#endif
