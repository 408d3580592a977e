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

// clang-format off
#define TMAOPS_CUPTI_FUNCTIONS(X) \
  X(error_message, cuptiGetErrorMessage) \
  X(chip_name, cuptiDeviceGetChipName) \
  X(initialize, cuptiProfilerInitialize) \
  X(deinitialize, cuptiProfilerDeInitialize) \
  X(availability, cuptiProfilerGetCounterAvailability) \
  X(host_initialize, cuptiProfilerHostInitialize) \
  X(host_deinitialize, cuptiProfilerHostDeinitialize) \
  X(add_metrics, cuptiProfilerHostConfigAddMetrics) \
  X(config_size, cuptiProfilerHostGetConfigImageSize) \
  X(config_image, cuptiProfilerHostGetConfigImage) \
  X(evaluate, cuptiProfilerHostEvaluateToGpuValues) \
  X(enable, cuptiRangeProfilerEnable) \
  X(disable, cuptiRangeProfilerDisable) \
  X(data_size, cuptiRangeProfilerGetCounterDataSize) \
  X(data_initialize, cuptiRangeProfilerCounterDataImageInitialize) \
  X(set_config, cuptiRangeProfilerSetConfig) \
  X(start, cuptiRangeProfilerStart) \
  X(stop, cuptiRangeProfilerStop) \
  X(push_range, cuptiRangeProfilerPushRange) \
  X(pop_range, cuptiRangeProfilerPopRange) \
  X(decode, cuptiRangeProfilerDecodeData) \
  X(data_info, cuptiRangeProfilerGetCounterDataInfo)
// clang-format on

struct Cupti {
#define TMAOPS_DECLARE(member, function) decltype(&function) member = nullptr;
  TMAOPS_CUPTI_FUNCTIONS(TMAOPS_DECLARE)
#undef TMAOPS_DECLARE
  std::string name;     // of the library that was loaded; empty: none
  std::string problem;  // why the functions cannot be used; empty: they can
};

/// Loads on the first call.
const Cupti& cupti();

/// Throws Error variant_refuses unless the status is success, with what to do where that is known.
void check_cupti(CUptiResult status, const char* what);

/// CUPTI's parameters with their size set.
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
