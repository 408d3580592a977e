// Recordings from arrays by name, as archives, dictionaries and frames have them, and back.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recording/times.hpp"

namespace tmaops::recording {

/// The array that has the offsets of episodes: `wanted` where that is not empty, else `offsets` or `episode_offsets`;
/// nothing when there is none. Throws Error array_missing for a name that there is not.
std::optional<std::size_t> find_offsets(const std::vector<std::string>& names, const std::string& wanted,
                                        std::string_view where);

/// The offsets of episodes in an array. Throws Error bad_offsets.
std::vector<std::int64_t> array_offsets(const Array& array, const std::string& where, std::int64_t rows);

/// Takes the times, and the offsets of episodes, out of arrays. Arrays with a row per time are the recording's columns,
/// in order; those without one are its others. Nothing in `arrays` is copied. Throws Error array_missing and what
/// array_times() and array_offsets() throw.
Recording from_arrays(std::vector<Column> arrays, std::string where, const TimeOptions& options,
                      const std::string& offsets_array);

/// The times as arrays: one, or the two of a pair of seconds and nanoseconds. As they were given, unless `unit` asks
/// for numbers of it: integers where there were integers, else f64. Integers that are no longer whole become
/// nanoseconds, under a name that says so. `decimal`: they were text, which can have more digits than f64.
std::vector<Column> time_arrays(const Recording& recording, std::optional<TimeUnit> unit = {}, bool decimal = false);

/// All arrays of a recording in the order of an archive: times, columns, offsets where they had a name, others, and
/// `valid` where some rows have no data (valid_2 when a column has that name).
std::vector<Column> to_arrays(const Recording& recording, std::optional<TimeUnit> unit = {}, bool decimal = false);

}  // namespace tmaops::recording
