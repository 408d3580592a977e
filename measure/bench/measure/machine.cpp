#include "bench/measure/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "bench/measure/gpu_memory.hpp"
#include "core/cache_size.hpp"
#include "core/device_info.hpp"
#include "tmaops/threads.hpp"

#ifdef TMAOPS_HAVE_HIGHWAY
#include <hwy/highway.h>
#endif

namespace tmaops::bench {
namespace {

/// The value behind `key` and a separator in a file of "key<separator>value" lines, without quotes.
std::string value_in(const char* path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t at = line.find(separator);
    if (at == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t\"", at + 1);
    const std::size_t last = line.find_last_not_of(" \t\"");
    if (first != std::string::npos) return line.substr(first, last - first + 1);
  }
  return {};
}

std::string simd_target() {
#ifdef TMAOPS_HAVE_HIGHWAY
  // Targets are bits, the best one lowest; only those that were compiled can be chosen.
  const auto usable = static_cast<std::int64_t>(hwy::SupportedTargets() & HWY_TARGETS);
  return std::string(hwy::TargetName(usable & -usable)) + " (Highway)";
#else
  return "the compiler's baseline (built without Highway)";
#endif
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ..."
std::string nvidia_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  return {};
}

Machine inspect() {
  Machine found;
  found.cpu = value_in("/proc/cpuinfo", "model name", ':');
  found.processors = static_cast<int>(std::thread::hardware_concurrency());
  found.simd = simd_target();
  found.memory_bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  found.last_level_cache_bytes = detail::last_level_cache_bytes();
  found.os = value_in("/etc/os-release", "PRETTY_NAME", '=');
  utsname system{};
  if (uname(&system) == 0)
    found.os += (found.os.empty() ? "" : ", ") + std::string(system.sysname) + " " + system.release;
  if (found.cpu.empty()) found.cpu = system.machine;
  found.compiler = TMAOPS_COMPILER;
  found.driver = nvidia_driver();
  return found;
}

}  // namespace

const Machine& machine() {
  static const Machine found = inspect();
  return found;
}

nlohmann::ordered_json machine_json() {
  const Machine& found = machine();
  nlohmann::ordered_json json{{"cpu", found.cpu},
                              {"processors", found.processors},
                              {"threads", num_threads()},
                              {"simd", found.simd},
                              {"memory_bytes", found.memory_bytes},
                              {"last_level_cache_bytes", found.last_level_cache_bytes},
                              {"os", found.os},
                              {"compiler", found.compiler}};
  json["gpu"] = nullptr;
  if (const int count = cuda_device_count(); count > 0) {
    const DeviceInfo& gpu = device_info({DeviceType::cuda, 0});
    json["gpu"] = {{"name", gpu.name},
                   {"count", count},
                   {"compute_capability", gpu.compute_capability},
                   {"multiprocessors", gpu.multiprocessors},
                   {"memory_bytes", gpu.memory_bytes}};
    const GpuMemory& memory = gpu_memory(gpu.device);
    if (memory.peak_gbps() > 0)
      json["gpu"].update({{"memory_clock_mhz", memory.clock_mhz},
                          {"memory_bus_bits", memory.bus_bits},
                          {"memory_peak_gbps", memory.peak_gbps()}});
  }
  json["driver"] = found.driver.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(found.driver);
  return json;
}

}  // namespace tmaops::bench
