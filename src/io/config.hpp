// The configuration of `tmaops bench` and `tmaops verify`: options of the run, and the problems to run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/settings.hpp"
#include "io/yaml.hpp"

namespace tmaops::io {

/// The top-level keys, and the problems of the operator sections with their lists expanded to products.
struct RunConfig {
  std::string device = "auto";           // auto, cpu, cuda
  std::vector<std::string> operators{};  // only these sections; empty: all
  std::string temperature = "hot";       // hot, cold, both
  std::int64_t samples = 30;             // samples of each implementation
  double min_time = 0.002;               // seconds one sample lasts at least (calls are repeated inside)
  double max_time = 3;                   // seconds after which an implementation with 5 samples gets no more
  std::uint64_t seed = 1;                // of the random data
  std::vector<std::string> peers{};      // names of the peers to time beside
  std::int64_t threads = 0;              // of the CPU variants and peers; 0: the default
  double tolerance = 0;                  // relative error that passes; 0: the operator's own
  bool all_variants = false;             // `variants: all`
  bool counters = false;                 // read hardware counters when all is timed
  std::vector<Settings> problems{};
};

/// Reads a file. `operators` are the sections there may be. Throws Error cannot_read and yaml_syntax to bad_value.
RunConfig read_config(const std::filesystem::path& path, std::span<const std::string_view> operators);
/// The same from a parsed document.
RunConfig parse_config(const YamlNode& document, std::span<const std::string_view> operators);

/// The device, temperature, samples, times, seed and tolerance among the values that are given, in a file or as
/// options. Throws Error wrong_type and bad_value.
void apply(const Settings& given, RunConfig& config);

/// Problems of the option `-p 'gemm: {mode: [RC, CR], size: 256}'`; `source` names the option in messages.
std::vector<Settings> parse_problems(const std::string& text, const std::string& source,
                                     std::span<const std::string_view> operators);

/// Keys whose list is one value of the problem, not a choice to expand.
inline constexpr std::string_view kVariantKeys[] = {"variant", "version"};
/// Most problems one section may expand to.
inline constexpr std::size_t kMostProblems = 10000;

}  // namespace tmaops::io
