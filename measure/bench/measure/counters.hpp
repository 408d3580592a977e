// Hardware counters of calls that launch in this process, through CUPTI's range profiler. CUPTI is loaded when counters
// are asked for; builds whose toolkit has no CUPTI headers say so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

/// How the values of a call's kernels make one value.
enum class Fold { sum, mean };  // mean: weighted with the kernels' durations

struct CounterInfo {
  const char* name;  // as NVIDIA's profilers have it
  Fold fold;
};

/// The counters that are read, in this order. Together they take eleven passes on GH100. The first is the duration,
/// with which means are weighted. The counter before one of hits is the number of look-ups.
inline constexpr std::array kCounters{
    CounterInfo{"gpu__time_duration.sum", Fold::sum},  // nanoseconds
    CounterInfo{"dram__throughput.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    CounterInfo{"lts__throughput.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    CounterInfo{"l1tex__throughput.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    CounterInfo{"sm__throughput.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    CounterInfo{"dram__bytes_read.sum", Fold::sum}, CounterInfo{"dram__bytes_write.sum", Fold::sum},
    CounterInfo{"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", Fold::sum},
    // time in cycles
    CounterInfo{"sm__cycles_elapsed.max", Fold::sum},
    CounterInfo{"sm__cycles_elapsed.avg.per_second", Fold::mean},  // clock, Hz
    CounterInfo{"sm__cycles_active.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    // instructions and the pipes they go to
    CounterInfo{"smsp__inst_executed.sum", Fold::sum},
    CounterInfo{"smsp__issue_active.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    CounterInfo{"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    CounterInfo{"sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    CounterInfo{"sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    // L1 and shared memory: passes of 128 bytes, looked up sectors of 32 bytes, bytes that come in
    CounterInfo{"l1tex__data_pipe_lsu_wavefronts.sum", Fold::sum},
    CounterInfo{"l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    CounterInfo{"l1tex__t_sectors.sum", Fold::sum}, CounterInfo{"l1tex__t_sectors_lookup_hit.sum", Fold::sum},
    CounterInfo{"l1tex__m_xbar2l1tex_read_bytes.sum", Fold::sum},
    CounterInfo{"l1tex__m_xbar2l1tex_read_bytes.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    // what the multiprocessors ask the L2 for
    CounterInfo{"lts__t_requests_srcunit_tex.sum", Fold::sum},
    CounterInfo{"lts__t_requests_srcunit_tex.avg.pct_of_peak_sustained_elapsed", Fold::mean},
    CounterInfo{"lts__t_sectors_srcunit_tex.sum", Fold::sum},
    CounterInfo{"lts__t_sectors_srcunit_tex_lookup_hit.sum", Fold::sum},
    // warps that wait, per instruction that is issued
    CounterInfo{"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", Fold::mean},
    CounterInfo{"smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", Fold::mean},
    CounterInfo{"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", Fold::mean},
    CounterInfo{"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", Fold::mean},
    CounterInfo{"smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio", Fold::mean},
    CounterInfo{"smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", Fold::mean},
    CounterInfo{"smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", Fold::mean},
    CounterInfo{"smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", Fold::mean}};

/// The names of waits are this prefix, the reason and this suffix.
inline constexpr std::string_view kWaitPrefix = "smsp__average_warps_issue_stalled_";
inline constexpr std::string_view kWaitSuffix = "_per_issue_active.ratio";

/// In the order of kCounters.
using CounterValues = std::array<double, kCounters.size()>;

/// This many counters at the start of kCounters are also read around many calls (see BackToBack).
inline constexpr std::size_t kBackToBackCounters = 7;

/// Counters of one range around many calls in a graph, as they are timed: kernels follow each other without a pause,
/// and those of dependent launches overlap.
struct BackToBack {
  std::int64_t calls = 0;
  std::array<double, kBackToBackCounters> values{};  // in the order of kCounters; sums are of one call
};

/// Counters of a call over several of its runs, each counter by itself. One run is only a sample: its values scatter.
struct Counters {
  int kernels = 0;  // of one run
  int runs = 0;
  CounterValues values{};  // medians
  CounterValues p10{};     // 10th percentiles
  CounterValues p90{};     // 90th
  std::optional<BackToBack> back_to_back{};
};

/// The counters of one run from those of its kernels.
CounterValues fold_kernels(std::span<const CounterValues> kernels);

/// The counters of the last `runs` of `all_runs` runs from those of all their kernels, in order. Throws Error
/// variant_refuses where the runs cannot all have had as many kernels.
Counters fold_runs(std::span<const CounterValues> kernels, int all_runs, int runs);

/// From the values of a range around `calls`.
BackToBack back_to_back(std::span<const double> range, std::int64_t calls);

/// What most warps wait for, and how many wait per issued instruction.
struct LongestWait {
  std::string reason;  // "long scoreboard"
  double warps = 0;
};
LongestWait longest_wait(const CounterValues& values);

/// Index in kCounters of a name that is there.
constexpr std::size_t counter_index(std::string_view name) {
  for (std::size_t i = 0; i < kCounters.size(); ++i)
    if (name == kCounters[i].name) return i;
  return kCounters.size();
}

class CounterReader {
 public:
  virtual ~CounterReader() = default;
  /// Counters of the calls, which are one call on different sets of inputs. In each pass the calls first run uncounted,
  /// until the caches are in the state that timed calls find, and then counted. Kernels run one after the other. Throws
  /// Error variant_refuses.
  virtual Counters read(const std::vector<Call>& calls) = 0;
  /// The same calls in turn, back to back for a twentieth of a second; one takes about `seconds_each`, which is more
  /// than 0. Throws Error variant_refuses.
  virtual BackToBack read_back_to_back(const std::vector<Call>& calls, double seconds_each) = 0;
};

/// Throws Error variant_refuses where CUPTI is missing or refuses, with what to do.
std::unique_ptr<CounterReader> make_cuda_counters(Device device);

/// What can be known without running anything.
struct CountersState {
  std::string found{};    // the library; empty: cannot be loaded
  std::string problem{};  // in words; empty: counters can be read
  std::string mend{};
};
CountersState counters_state();

/// How to get the driver's permission (ERR_NVGPUCTRPERM).
extern const char* const kCounterPermission;

}  // namespace tmaops::bench
