// `tmaops resample IN -o OUT`: a recording in a file onto other times.
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
  std::string from{};                            // format of the input; empty: by its extension
  std::string to{};
  std::vector<std::string> modes{};  // "SELECTOR=MODE" or "MODE"
  std::optional<double> max_gap{};   // seconds
  std::string outside{};             // hold, nan, extrapolate, error, drop; empty: nan for npz, drop for text
  std::string duplicates{};          // error, last; empty: last for TUM, whose recorders repeat stamps, else error
  std::string time_unit{};           // s, ms, us, ns; empty: as ReadOptions says
  std::string times_array{};         // of the input; empty: one of the usual names
  std::string targets_array{};       // of --times or --like
  std::string offsets_array{};
  bool compress = false;
  bool force = false;
  bool json = false;
  bool quiet = false;
};

/// Does all of it. Writes the summary to stderr (JSON to stdout with `json`), returns the exit code, throws Error.
/// On SIGINT and SIGTERM it removes the unfinished output and exits with 130.
int run_resample(const ResampleCommand& command);

}  // namespace tmaops::cli
