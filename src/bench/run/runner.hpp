// Runs problems: every implementation is checked, then timed in turn with the others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/run/report.hpp"
#include "core/settings.hpp"

namespace tmaops::bench {

struct RunOptions {
  Device device{};
  bool time = true;   // false: only verify
  bool hot = true;    // inputs stay in the caches
  bool cold = false;  // inputs rotate over more memory than the last-level cache holds
  std::int64_t samples = 30;
  double min_time = 0.002;  // seconds of one sample at least
  double max_time = 3;      // seconds after which an implementation with kFewestSamples gets no more
  std::uint64_t seed = 1;
  double tolerance = 0;          // 0: the operator's own
  bool all_variants = false;     // also every variant that takes the problem
  bool tune = false;             // instead of variants and peers, every way to run a case that there is to choose from
  bool counters = false;         // read hardware counters when all is timed
  bool single_run = false;       // instead of timing, launch `implementation` once where profilers see it
  std::string implementation{};  // name of its row; empty: the first
  std::vector<std::string> peers{};
  bool peers_by_name = false;  // asked for on the command line: a run without one of them is done in part
  std::string python{};        // interpreter of the external peers; empty: TMAOPS_PYTHON, then python3
  std::int64_t cold_bytes = std::int64_t{1} << 30;  // most memory that cold inputs rotate over
};

inline constexpr std::int64_t kFewestSamples = 5;

/// What happens meanwhile. Every function may be left out.
struct Observer {
  std::function<void(std::size_t done, std::size_t total, const std::string& what)> progress{};
  std::function<void(const Row&)> row{};
  std::function<void(const Refusal&)> refused{};
  std::function<void(const std::string&)> note{};
  std::function<bool()> interrupted{};
};

/// Names that RunOptions::peers may have.
std::span<const std::string_view> peer_names();

/// Throws Error for settings that make no sense; wrong results and refusals are in the report.
Report run(const std::vector<Settings>& problems, const RunOptions& options, const Observer& observer);

}  // namespace tmaops::bench
