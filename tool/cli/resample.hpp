// `tmaops resample IN -o OUT`: resamples the recording in a file to other times.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "recording/options.hpp"
#include "recording/recording.hpp"

namespace tmaops::cli {

/// The options of the command, as the user gave them. The targets are hz, times or like, exactly one of them.
struct ResampleCommand : recording::Options {
  std::filesystem::path input{};
  std::filesystem::path output{};
  std::optional<std::filesystem::path> times{};  // file of target times
  std::optional<std::filesystem::path> like{};   // recording whose times are the targets
  std::string from{};                            // format of the input; empty: by its extension
  std::string to{};
  std::string times_unit{};                            // of --times
  std::int64_t skip_lines = 0;                         // of a text, above its header
  std::string like_unit{};                             // of --like
  std::string to_unit{};                               // of the output; empty: as in the input
  std::string targets_array{};                         // of --times or --like
  std::optional<std::filesystem::path> kitti_times{};  // timestamps of a KITTI trajectory
  std::optional<std::filesystem::path> write_times{};  // timestamps of a KITTI trajectory that is written
  std::optional<std::filesystem::path> plot{};         // page of the Python package
  std::optional<std::filesystem::path> plot_data{};    // folder for what the page shows
  bool trust_sizes = false;
  bool compress = false;
  bool force = false;
  bool json = false;
  bool quiet = false;
};

/// The messages of a run.
struct ResampleReport {
  std::vector<std::string> lines{};         // the summary
  std::vector<recording::Note> warnings{};  // what looks wrong
  std::string json{};                       // both, and the counts
};

/// Does all of the work and prints nothing. When it throws Error, `report.warnings` has the warnings until then.
void resample_file(const ResampleCommand& command, ResampleReport& report);

/// The same, with the summary and the warnings on stderr, and with `json` the JSON on stdout. Returns the exit code. On
/// SIGINT and SIGTERM it removes the unfinished output and exits with 130.
int run_resample(const ResampleCommand& command);

}  // namespace tmaops::cli
