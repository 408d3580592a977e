// What only a GPU's results have, as tables and notes for people.
#pragma once

#include <string>

#include "bench/run/report.hpp"
#include "cli/console.hpp"

namespace tmaops::cli {

/// Loads per second, time of one and cycles of a block, for cases that measure loading; empty when there are none.
std::string loads_table(const bench::Report& report, bool color, std::size_t width = kAnyWidth);
/// Hardware counters of one call; empty when none were read.
std::string counters_table(const bench::Report& report, bool color, std::size_t width = kAnyWidth);
/// A line about rows whose clock power or temperature held down; empty when there are none.
std::string held_clocks_note(const bench::Report& report);

}  // namespace tmaops::cli
