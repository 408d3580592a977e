// Clocks of a GPU and what holds them down. The clock is measured on the GPU, since NVML may return an old value. Only
// NVML knows what holds it down. The library comes with the driver and is loaded when it is first needed. Without it
// the reasons are not recorded, and nothing else changes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tmaops::bench {

/// After one sample.
struct ClockReading {
  double sm_mhz = 0;
  std::uint64_t reasons = 0;  // NVML's clock event reasons, one bit each
};

/// What the readings of a row say together.
struct Clocks {
  double sm_mhz = 0;                     // median
  std::map<std::string, double> held{};  // reason -> share of the readings in which it held the clock down
};

/// Why a clock is not at its highest, in NVML's words without their prefix: "sw_power_cap", "sw_thermal_slowdown", ...
/// An idle GPU is no reason.
std::vector<std::string> reason_names(std::uint64_t reasons);
/// Whether the power or the temperature is the reason, and not a setting.
bool is_power_or_thermal(const std::string& reason);

/// Nothing where there are no readings.
std::optional<Clocks> summarize(std::span<const ClockReading> readings);

class Nvml {
 public:
  /// pci_bus_id: as cudaDeviceGetPCIBusId writes it; empty: only loads the library.
  explicit Nvml(const std::string& pci_bus_id);

  /// Why no reasons can be read, in words; empty when they can.
  const std::string& problem() const { return problem_; }
  /// Version of the library, "13.580.159.04"; empty when it is not loaded.
  const std::string& version() const { return version_; }
  /// Clock event reasons; 0 when they cannot be read.
  std::uint64_t reasons() const;
  /// The highest clock of the memory, and the width of its bus; 0 when they cannot be read.
  unsigned highest_memory_mhz() const;
  unsigned memory_bus_bits() const;

 private:
  using Handle = void*;
  Handle device_ = nullptr;
  int (*reasons_)(Handle, unsigned long long*) = nullptr;
  int (*highest_clock_)(Handle, int, unsigned*) = nullptr;
  int (*bus_bits_)(Handle, unsigned*) = nullptr;  // not before driver 510
  std::string version_;
  std::string problem_;
};

}  // namespace tmaops::bench
