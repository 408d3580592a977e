// The options that bench, verify and list share: which problems, on which device.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "bench/run/runner.hpp"
#include "io/config.hpp"
#include "tmaops/tensor.hpp"

namespace CLI {
class App;
}

namespace tmaops::cli {

class Progress;
class Refusals;

struct ProblemOptions {
  std::string config;                  // file
  std::vector<std::string> problems;   // -p
  std::vector<std::string> operators;  // --operator
  std::string device;                  // empty: the configuration's
};

struct RunFlags : ProblemOptions {
  std::string seed;
  std::string threads;
  std::string tolerance;
  bool all_variants = false;
};

void add_problem_options(CLI::App& command, ProblemOptions& options);
void add_run_flags(CLI::App& command, RunFlags& flags);

/// Values given as options, to be read like those of the configuration: {"min_time", &text} is --min-time. Empty texts
/// were not given.
Settings option_values(std::initializer_list<std::pair<const char*, const std::string*>> values);

/// The configuration: the file's, then the flags'. Throws Error usage when there is no problem to run.
io::RunConfig read_problems(const ProblemOptions& options);
io::RunConfig read_run(const RunFlags& flags);

/// The device that a problem runs on: with `auto` the GPU where there is one that takes it, else the CPU. Throws one of
/// the five device errors for `cuda` where there is none.
Device resolve_device(const std::string& device, const Settings& problem);

/// RunOptions of a configuration, without the device; also sets the number of threads.
bench::RunOptions run_options(const io::RunConfig& config);

/// Runs the problems, each on its device: first those of the GPU, then those of the CPU.
bench::Report run_problems(const io::RunConfig& config, const bench::RunOptions& options,
                           const bench::Observer& observer);

/// What bench and verify show of a run alike: progress and refusals on the terminal, an end at Ctrl-C. Both arguments
/// must outlive it.
bench::Observer terminal_observer(Progress& progress, Refusals& refusals);

/// The configuration for the result file.
nlohmann::ordered_json config_json(const io::RunConfig& config, const std::string& file);

}  // namespace tmaops::cli
