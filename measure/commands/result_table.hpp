// Results as tables for people.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "bench/run/compare.hpp"
#include "bench/run/report.hpp"
#include "offers/console.hpp"

namespace tmaops::cli {

/// "1.23", "12.3", "123".
std::string three_digits(double value);
/// "12.3 MB": of units a thousand apart the first that leaves three digits before the point, or the last.
std::string in_units(double value, std::initializer_list<std::string_view> units);
/// "tmaops (wgmma_tma)", or the implementation's name.
std::string name_text(const bench::Row& row);
/// Times, rates, percentage of the copy's bandwidth, and how many times slower than `tmaops` each other row is.
std::string times_table(const bench::Report& report, bool color, std::size_t width = kAnyWidth);
/// Loads per second, time of one and cycles of a block, for cases that measure loading; empty when there are none.
std::string loads_table(const bench::Report& report, bool color, std::size_t width = kAnyWidth);
/// Hardware counters of one call; empty when none were read.
std::string counters_table(const bench::Report& report, bool color, std::size_t width = kAnyWidth);
/// A line about rows whose clock power or temperature held down; empty when there are none.
std::string held_clocks_note(const bench::Report& report);
/// One line per checked variant.
std::string verify_table(const bench::Report& report, bool color, std::size_t width = kAnyWidth);
std::string compare_table(const std::vector<bench::Difference>& differences, bool color, std::size_t width = kAnyWidth);
/// Empty where no counter differs.
std::string compare_counters_table(const std::vector<bench::CounterDifference>& differences, bool color,
                                   std::size_t width = kAnyWidth);
/// "gemm RC 256 f32 blocked: why", for stderr.
std::string refusal_line(const bench::Refusal& refusal);
/// The message about a wrong result, with the command that repeats it.
std::string failure_text(const bench::Row& row, std::uint64_t seed);

}  // namespace tmaops::cli
