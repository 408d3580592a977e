#include <cuda_runtime_api.h>

#include <cstdlib>
#include <fstream>

#include "bench/measure/counters.hpp"
#include "bench/measure/cupti.hpp"
#include "bench/measure/shared_library.hpp"
#include "core/fail.hpp"

namespace tmaops::bench {

#ifdef TMAOPS_HAVE_CUPTI
namespace {

/// $TMAOPS_CUPTI alone where it is set; else where the loader, the build and NVIDIA's packages know one. Its parameters
/// are those of the headers for every release of the same major version.
std::vector<std::string> library_names() {
  if (const char* named = std::getenv("TMAOPS_CUPTI"); named != nullptr && *named != '\0') return {named};
  const std::string file = "libcupti.so." + std::to_string(CUDART_VERSION / 1000);
  const std::string release = std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  std::vector<std::string> names{file};
  for (const std::string& root : {std::string(TMAOPS_CUDA_ROOT), "/usr/local/cuda-" + release,
                                  std::string("/usr/local/cuda"), std::string("/opt/cuda")})
    for (const char* folder : {"/lib64/", "/lib/", "/extras/CUPTI/lib64/"}) names.push_back(root + folder + file);
  return names;
}

Cupti load_cupti() {
  Cupti found;
  const SharedLibrary library(library_names());
  if (!library) {
    found.problem = library.problem();
    return found;
  }
  bool complete = true;
  const auto get = [&]<class Function>(Function*& function, const char* symbol) {
    function = library.function<Function>(symbol);
    complete = complete && function != nullptr;
  };
#define TMAOPS_GET(member, function) get(found.member, #function);
  TMAOPS_CUPTI_FUNCTIONS(TMAOPS_GET)
#undef TMAOPS_GET
  found.name = library.name();
  if (!complete) found.problem = library.name() + " has no range profiler: it is older than CUDA 12.6";
  return found;
}

/// What to do about a status, where there is something.
std::string mend(CUptiResult status) {
  switch (status) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return std::string("The driver lets only administrators read counters (ERR_NVGPUCTRPERM). ") + kCounterPermission;
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "Another profiler holds the counters (ncu, nsys, DCGM): end it, or leave --counters out under it.";
    case CUPTI_ERROR_NOT_COMPATIBLE:
      return "CUPTI and driver do not fit together: use CUPTI of the driver's CUDA release or an older one.";
    default:
      return {};
  }
}

}  // namespace

const Cupti& cupti() {
  static const Cupti loaded = load_cupti();
  return loaded;
}

void check_cupti(CUptiResult status, const char* what) {
  if (status == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  if (cupti().error_message(status, &text) != CUPTI_SUCCESS || text == nullptr) text = "unknown error";
  fail(ErrorCode::variant_refuses, "counters", std::string("CUPTI, ") + what + ": " + text, mend(status));
}

namespace {

/// Whether the kernel driver keeps the counters for administrators, and this process is none.
bool forbidden() {
  std::ifstream parameters("/proc/driver/nvidia/params");
  bool administrators_only = false;
  for (std::string line; std::getline(parameters, line);)
    if (line.starts_with("RmProfilingAdminOnly:")) administrators_only = line.find('1') != std::string::npos;
  if (!administrators_only) return false;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:")) {
      constexpr int kSysAdmin = 21;  // CAP_SYS_ADMIN
      return (std::strtoull(line.c_str() + 7, nullptr, 16) >> kSysAdmin & 1) == 0;
    }
  return false;
}

}  // namespace

#endif

CountersState counters_state() {
#ifdef TMAOPS_HAVE_CUPTI
  const Cupti& loaded = cupti();
  CountersState state{.found = loaded.name, .problem = loaded.problem, .mend = {}};
  if (!loaded.problem.empty()) {
    state.mend = "install CUPTI of CUDA " + std::to_string(CUDART_VERSION / 1000) +
                 " (package cuda-cupti), or name its library in TMAOPS_CUPTI";
  } else if (forbidden()) {
    state.problem = "the driver lets only administrators read counters (ERR_NVGPUCTRPERM)";
    state.mend = kCounterPermission;
  }
  return state;
#else
  return {.found = {},
          .problem = "built without: the CUDA toolkit had no CUPTI headers",
          .mend = "install CUPTI's headers (package cuda-cupti-dev), then build again"};
#endif
}

}  // namespace tmaops::bench
