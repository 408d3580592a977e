// What a caller asks for, with the values as the user wrote them. The names are those of `tmaops resample`'s options.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tmaops::recording {

struct Options {
  std::optional<double> hz{};        // targets at this rate; otherwise they are given
  std::string start{};               // first target: seconds of the recording's clock or ISO 8601
  std::string end{};                 // last target
  bool align = false;                // the grid of hz begins at a multiple of its period
  double snap = 0;                   // seconds within which a target hits a sample
  std::string columns{};             // "NEW=SELECTOR,SELECTOR,..."; empty: all
  std::vector<std::string> modes{};  // "SELECTOR=MODE" or "MODE"
  std::optional<double> max_gap{};   // seconds
  std::string outside{};             // hold, nan, extrapolate, error, drop; empty: nan for arrays, drop for text
  std::string duplicates{};          // error, last; empty: last for TUM, whose recorders repeat timestamps
  double offset = 0;                 // seconds that are added to the times of the recording
  bool sort = false;                 // rows by time, within each episode
  bool strict = false;               // a warning is an error
  std::string time_unit{};           // s, ms, us, ns; empty: as TimeOptions says
  std::string times_array{};         // of the times; empty: one of the usual names
  std::string offsets_array{};       // of the episodes' first rows; empty: offsets or episode_offsets
  std::string group{};               // column each of whose values is an episode
};

}  // namespace tmaops::recording
