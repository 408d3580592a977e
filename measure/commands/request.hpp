// What bench, verify and list are asked for: problems and options, from a configuration and from the command line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/run/options.hpp"
#include "bench/run/runner.hpp"
#include "config/settings.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tmaops::cli {

class Progress;
class Refusals;

/// Names of the configurations that come with tmaops, without folder and extension.
std::vector<std::string> shipped_configurations();

/// The file that `name` stands for: itself, or, for a plain word that is no file here, the configuration of that name
/// that comes with tmaops. Throws Error cannot_read where there is neither.
std::filesystem::path find_configuration(const std::string& name);

/// The command line as it was written.
struct Arguments {
  std::string config;                 // file
  std::vector<std::string> problems;  // -p
  Settings given{};                   // options with the names of a configuration's keys
  bench::RunOptions options{};        // the other ones
};

/// The options of the configuration and of the command line, which goes before.
struct Request {
  bench::RunOptions options;
  std::vector<Settings> problems;
};

/// Adds --min-time for the key min_time.
CLI::Option* add_given(CLI::App& command, Arguments& arguments, const std::string& key, const std::string& help);
/// Adds a flag that gives a key this value.
CLI::Option* add_given_flag(CLI::App& command, Arguments& arguments, const std::string& flag, const std::string& key,
                            const std::string& value, const std::string& help);
/// The options of bench and verify alike.
void add_run_arguments(CLI::App& command, Arguments& arguments);

/// Throws Error usage when there is no problem to run, and what the configuration's readers throw.
Request read_request(const Arguments& arguments);

/// The device that a problem runs on: with `auto` the GPU where there is one that takes it, else the CPU. Throws one of
/// the five device errors for `cuda` where there is none.
Device resolve_device(const std::string& device, const Settings& problem);

/// Checks the device and sets the number of threads, before anything is opened or measured.
void prepare_run(const bench::RunOptions& options);

/// Runs the problems, each on its device: first those of the GPU, then those of the CPU.
bench::Report run_problems(const Request& request, const bench::Observer& observer);

/// What bench and verify show of a run alike: progress and refusals on the terminal, an end at Ctrl-C. Both arguments
/// must outlive it.
bench::Observer terminal_observer(Progress& progress, Refusals& refusals);

/// The configuration for the result file.
nlohmann::ordered_json config_json(const Request& request, const std::string& file);

}  // namespace tmaops::cli
