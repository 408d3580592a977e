#include "bench/measure/nvml.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "bench/measure/shared_library.hpp"
#include "bench/run/statistics.hpp"

namespace tmaops::bench {
namespace {

// The few names of NVML's interface (stable since version 11) that are used; its header is not part of every toolkit.
constexpr int kSuccess = 0;
constexpr std::array<std::pair<std::uint64_t, const char*>, 8> kReasons{{{0x2, "applications_clocks_setting"},
                                                                         {0x4, "sw_power_cap"},
                                                                         {0x8, "hw_slowdown"},
                                                                         {0x10, "sync_boost"},
                                                                         {0x20, "sw_thermal_slowdown"},
                                                                         {0x40, "hw_thermal_slowdown"},
                                                                         {0x80, "hw_power_brake_slowdown"},
                                                                         {0x100, "display_clock_setting"}}};
constexpr int kMemoryClock = 2;
constexpr std::uint64_t kPowerOrThermal = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

}  // namespace

std::vector<std::string> reason_names(std::uint64_t reasons) {
  std::vector<std::string> names;
  for (const auto& [bit, name] : kReasons)
    if ((reasons & bit) != 0) names.emplace_back(name);
  return names;
}

bool is_power_or_thermal(const std::string& reason) {
  return std::ranges::any_of(
      kReasons, [&](const auto& known) { return reason == known.second && (known.first & kPowerOrThermal) != 0; });
}

std::optional<Clocks> summarize(std::span<const ClockReading> readings) {
  if (readings.empty()) return {};
  std::vector<double> mhz;
  Clocks clocks;
  for (const ClockReading& reading : readings) {
    mhz.push_back(reading.sm_mhz);
    for (const std::string& name : reason_names(reading.reasons))
      clocks.held[name] += 1.0 / static_cast<double>(readings.size());
  }
  clocks.sm_mhz = percentile(mhz, 0.5);
  return clocks;
}

Nvml::Nvml(const std::string& pci_bus_id) {
  const SharedLibrary library({"libnvidia-ml.so.1"});
  if (!library) {
    problem_ = "NVML is not there (" + library.problem() + "); it comes with NVIDIA's driver";
    return;
  }
  const auto init = library.function<int()>("nvmlInit_v2");
  const auto error_text = library.function<const char*(int)>("nvmlErrorString");
  const auto version = library.function<int(char*, unsigned)>("nvmlSystemGetNVMLVersion");
  const auto find = library.function<int(const char*, Handle*)>("nvmlDeviceGetHandleByPciBusId_v2");
  // The name before driver 535.
  reasons_ = library.function<int(Handle, unsigned long long*)>("nvmlDeviceGetCurrentClocksEventReasons");
  if (reasons_ == nullptr)
    reasons_ = library.function<int(Handle, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  highest_clock_ = library.function<int(Handle, int, unsigned*)>("nvmlDeviceGetMaxClockInfo");
  bus_bits_ = library.function<int(Handle, unsigned*)>("nvmlDeviceGetMemoryBusWidth");
  if (init == nullptr || error_text == nullptr || find == nullptr || reasons_ == nullptr) {
    problem_ = "NVML is too old: it lacks functions of version 11";
    return;
  }
  if (const int status = init(); status != kSuccess) {
    problem_ = std::string("NVML does not start: ") + error_text(status);
    return;
  }
  std::array<char, 96> text{};
  if (version != nullptr && version(text.data(), text.size()) == kSuccess) version_ = text.data();
  if (pci_bus_id.empty()) return;
  unsigned long long reasons = 0;
  int status = find(pci_bus_id.c_str(), &device_);
  if (status == kSuccess) status = reasons_(device_, &reasons);
  if (status != kSuccess) problem_ = std::string("NVML does not know this GPU: ") + error_text(status);
}

std::uint64_t Nvml::reasons() const {
  unsigned long long reasons = 0;
  if (!problem_.empty() || device_ == nullptr || reasons_(device_, &reasons) != kSuccess) return 0;
  return reasons;
}

unsigned Nvml::highest_memory_mhz() const {
  unsigned mhz = 0;
  const bool known = device_ != nullptr && highest_clock_ != nullptr;
  return known && highest_clock_(device_, kMemoryClock, &mhz) == kSuccess ? mhz : 0;
}

unsigned Nvml::memory_bus_bits() const {
  unsigned bits = 0;
  return device_ != nullptr && bus_bits_ != nullptr && bus_bits_(device_, &bits) == kSuccess ? bits : 0;
}

}  // namespace tmaops::bench
