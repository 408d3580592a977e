// `tmaops resample IN -o OUT`: resamples the recording in a file to other times.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tmaops::cli {

/// The options of the command, as the user gave them.
struct ResampleCommand {
  std::filesystem::path input{};
  std::filesystem::path output{};
  std::optional<double> hz{};                    // exactly one of these three
  std::optional<std::filesystem::path> times{};  // file of target times
  std::optional<std::filesystem::path> like{};   // recording whose times are the targets
  std::string start{};                           // first target: seconds of the recording's clock or ISO 8601
  std::string end{};                             // last target
  bool align = false;                            // the grid of --hz begins at a multiple of its period
  double snap = 0;                               // seconds within which a target hits a sample
  std::string from{};                            // format of the input; empty: by its extension
  std::string to{};
  std::string columns{};             // "NEW=SELECTOR,SELECTOR,..."; empty: all
  std::vector<std::string> modes{};  // "SELECTOR=MODE" or "MODE"
  std::optional<double> max_gap{};   // seconds
  std::string outside{};             // hold, nan, extrapolate, error, drop; empty: nan for npz, else drop
  std::string duplicates{};          // error, last; empty: last for TUM, whose recorders repeat timestamps
  bool sort = false;                 // rows by time, within each episode
  std::string time_unit{};           // s, ms, us, ns; empty: as ReadOptions says
  std::string times_unit{};          // of --times
  std::string like_unit{};           // of --like
  std::string to_unit{};             // of the output; empty: as in the input
  std::string times_array{};         // of the input; empty: one of the usual names
  std::string targets_array{};       // of --times or --like
  std::string offsets_array{};
  std::optional<std::filesystem::path> kitti_times{};  // timestamps of a KITTI trajectory
  std::optional<std::filesystem::path> write_times{};  // timestamps of a KITTI trajectory that is written
  std::optional<std::filesystem::path> plot{};         // page of the Python package
  std::optional<std::filesystem::path> plot_data{};    // folder for what the page shows
  bool trust_sizes = false;
  bool compress = false;
  bool force = false;
  bool strict = false;
  bool json = false;
  bool quiet = false;
};

/// The messages of a run.
struct ResampleReport {
  std::vector<std::string> lines{};     // the summary
  std::vector<std::string> warnings{};  // what looks wrong
  std::string json{};                   // both, and the counts
};

/// Does all of the work and prints nothing. When it throws Error, `report.warnings` has the warnings until then.
void resample_file(const ResampleCommand& command, ResampleReport& report);

/// The same, with the summary and the warnings on stderr, and with `json` the JSON on stdout. Returns the exit code. On
/// SIGINT and SIGTERM it removes the unfinished output and exits with 130.
int run_resample(const ResampleCommand& command);

}  // namespace tmaops::cli
