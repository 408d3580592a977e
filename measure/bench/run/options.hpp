// What a run does: the keys of a configuration and what only the command line says. Names, defaults and limits are here
// alone.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/workloads/workload.hpp"
#include "config/settings.hpp"

namespace tmaops::bench {

inline constexpr std::int64_t kFewestSamples = 5;

/// What the reference makes of problems, by their texts.
using References = std::map<std::string, Reference>;

struct RunOptions {
  // Keys of a configuration, in the order of the result file.
  std::string device = "auto";           // auto, cpu, cuda, executor
  std::vector<std::string> operators{};  // only these sections; empty: all
  std::string temperature = "hot";       // hot: inputs stay in the caches; cold: they rotate past them; both
  std::int64_t samples = 30;             // of each implementation
  double min_time = 0.002;               // seconds of one sample at least
  double max_time = 3;                   // seconds after which an implementation with kFewestSamples gets no more
  std::uint64_t seed = 1;                // of the random data
  std::int64_t threads = 0;              // of the CPU variants and peers; 0: the default
  double tolerance = 0;                  // relative error that passes; 0: the operator's own
  double check_time = 60;                // seconds that the reference of a case may take before only a part is compared
  bool all_variants = false;             // also every variant that takes the problem
  bool counters = false;                 // read hardware counters when all is timed
  bool dependent_launch = true;          // on a GPU: every variant also with dependent launch, in a row of its own
  std::vector<std::string> peers{};      // to time beside
  // What only the command line says.
  bool time = true;         // false: only verify
  bool tune = false;        // instead of variants and peers, every way to run a case that there is to choose from
  bool single_run = false;  // instead of timing, launch `implementations` once where profilers see them
  std::vector<std::string> implementations{};  // names of their rows; empty: the first
  bool peers_by_name = false;                  // the user named the peers: a run without one of them is done in part
  std::string python{};                        // interpreter of the Python peers; empty: TMAOPS_PYTHON, then python3
  std::int64_t cold_bytes = std::int64_t{1} << 30;  // most memory that cold inputs rotate over
  References* references = nullptr;                 // kept for further runs of the same problems with the same data

  bool hot() const { return temperature != "cold"; }
  bool cold() const { return temperature != "hot"; }
};

/// Keys that a configuration may have beside its problems, and those of them that take a list.
std::span<const std::string_view> option_keys();
std::span<const std::string_view> option_list_keys();

/// Takes the options that are given, by a configuration or on the command line. Throws Error wrong_type and bad_value.
void apply(const Settings& given, RunOptions& options);

/// For the result file.
nlohmann::ordered_json to_json(const RunOptions& options);

}  // namespace tmaops::bench
