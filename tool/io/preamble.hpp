// What recorders write above the table of a text file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tmaops::io {

struct Preamble {
  std::string_view recorder{};       // empty: none is known
  std::int64_t lines = 0;            // above the header, or with `names` above the data
  char delimiter = 0;                // 0: that of the first line below
  std::vector<std::string> names{};  // of the columns, where several lines have them together
  std::string_view time{};           // name of the column of times, where it is no usual one
  double tick = 0;                   // of these times, which are whole numbers of it, in nanoseconds
};

/// Recognises the files of OptiTrack Motive and Vicon Nexus (csv), Xsens MT Manager (txt), Movella DOT (csv) and
/// OpenSim (mot, sto, trc), and the line `sep=;` of Excel.
Preamble find_preamble(std::string_view text);

}  // namespace tmaops::io
