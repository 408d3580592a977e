// CUPTI's range profiler: metrics of this chip, and passes over calls that this process launches.
#pragma once

#include "bench/measure/cupti.hpp"

#ifdef TMAOPS_HAVE_CUPTI
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tmaops::bench {

/// The ranges whose counters a pass reads.
enum class Ranges {
  kernels,  // each kernel by itself
  marked    // from begin_range() to end_range(), where kernels run as they do without a profiler
};

/// Knows the chip: which counters the metrics need, and how to compute the metrics from them.
class Metrics {
 public:
  /// Throws Error variant_refuses.
  Metrics(CUcontext context, int device, std::vector<const char*> names);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  const std::vector<std::uint8_t>& config() const { return config_; }
  std::vector<const char*>& names() { return names_; }

  /// In the order of the names.
  std::vector<double> values(const std::vector<std::uint8_t>& data, std::size_t range);

 private:
  std::vector<const char*> names_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
  std::vector<std::uint8_t> config_;
};

/// The profiler is on while this lives. Switching it is slow.
class ProfilerSession {
 public:
  static constexpr std::size_t kMostRanges = 1024;  // of all runs in a pass

  /// This and the functions throw Error variant_refuses.
  ProfilerSession(CUcontext context, Ranges ranges);
  ~ProfilerSession();
  ProfilerSession(const ProfilerSession&) = delete;
  ProfilerSession& operator=(const ProfilerSession&) = delete;

  /// Before the first pass. `metrics` lives as long as the passes go on.
  void prepare(Metrics& metrics);
  Ranges ranges() const { return ranges_; }
  void start();
  void begin_range();
  void end_range();
  /// Whether this was the last pass.
  bool stop();
  /// The values of each range; nothing where there were more than kMostRanges.
  std::optional<std::vector<std::vector<double>>> values(Metrics& metrics);

 private:
  Ranges ranges_;
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  std::vector<std::uint8_t> data_;
};

/// Throws Error cuda_failed.
CUcontext current_context();

}  // namespace tmaops::bench
#endif
