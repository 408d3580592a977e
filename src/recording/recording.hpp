// A recording in memory: columns of samples with one time per row, whatever it comes from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "recording/array.hpp"
#include "recording/decimal.hpp"
#include "recording/iso_time.hpp"

namespace tmaops::recording {

/// What was assumed, or what looks wrong: a sentence, and an id that stays when the sentence changes.
struct Note {
  std::string id{};  // "unit_assumed"
  std::string text{};
};

/// One block of samples.
struct Column {
  std::string name;
  Array data{};  // (rows, any further extents)

  bool from_text = false;           // of a text file, whose fields decide whether it holds numbers
  std::size_t position = 0;         // among the columns of a text file, from 0; the times have one too
  std::int64_t missing = 0;         // elements without a value: NaN, empty, NA, None, null, NaT
  std::int64_t numeric_fields = 0;  // of a text column of a text file: fields that are numbers
  std::string first_other{};        // the first field that is no number, where some are: "'0x10' at file.csv:12:5"
  std::vector<std::string> channel_names{};  // of each number of a row, where the caller knows them
  std::size_t source = kMade;                // among the arrays that the caller gave
  bool group = false;                        // its values tell the episodes

  static constexpr std::size_t kMade = static_cast<std::size_t>(-1);  // of a column that the caller did not give

  /// Numbers per row: the product of the further extents.
  std::int64_t width() const;
};

/// The form of the times.
enum class TimeForm : std::uint8_t {
  number,      // of one unit
  pair,        // whole seconds and whole fractions of a second, in two columns or arrays
  iso8601,     // 2024-05-01T12:00:00.5Z, 5/1/2024 12:00, 12:00:00.5; the date may have a column of its own
  datetime64,  // an array of numpy's type of that name
};

/// Why this column or array was taken as the times.
enum class TimeChoice : std::uint8_t {
  format,      // the format has it in this place
  option,      // it was named
  known_name,  // its name is one of the usual ones
  only_array,  // there is no other
  only_dates,  // there is no other one of dates, and no known name
  like_name,   // its name is like that of a time, and its values rise
  position,    // no name is known: the first column
};

/// Where the unit of the times comes from.
enum class UnitSource : std::uint8_t {
  format,    // TUM, KITTI, ISO 8601, datetime64, a pair of seconds and nanoseconds
  option,    // TimeOptions::unit
  name,      // "timestamp [ns]", or a name that one recorder uses for one unit
  only_fit,  // the timestamps are too large for every larger unit
  dates,     // in no other unit are they dates from 1990 to 2100
  step,      // whole numbers step in it like the samples of a recorder
  usual,     // no source: seconds
};

std::string_view to_string(TimeChoice choice);
std::string_view to_string(UnitSource source);

/// How the times were given, so that they are written the same way.
struct TimeColumn {
  std::string name = "timestamp";
  TimeUnit unit = TimeUnit::seconds;
  bool integer = false;      // whole numbers of the unit
  std::size_t position = 0;  // among the columns of a text file
  TimeForm form = TimeForm::number;
  TimeChoice choice = TimeChoice::position;
  UnitSource unit_source = UnitSource::usual;
  std::string unit_doubt{};                      // why the unit may be another one; else empty
  bool coarse = false;                           // floating-point numbers of fewer than 64 bits
  std::string second_name{};                     // of a pair: the column or array of fractions of a second, or of dates
  TimeUnit second_unit = TimeUnit::nanoseconds;  // of these
  std::size_t second_position = 0;               // of a pair
  IsoStyle iso{};                                // of ISO 8601
  std::size_t source = 0;                        // among the arrays that the caller gave
  std::size_t second_source = Column::kMade;     // of these
  ElementType second_type = kText;               // of the dates
};

struct Recording {
  std::string where;                 // for messages
  std::string_view kind = "column";  // what its source calls a column: "array" of an archive or a dictionary
  TimeColumn time{};
  std::vector<std::int64_t> times{};    // nanoseconds
  std::vector<std::uint8_t> valid{};    // of each row, when some have no data: 0 there. Empty: all have
  std::vector<std::int64_t> lines{};    // of each row, in a text file
  std::vector<std::int64_t> offsets{};  // of each episode's first row, and the number of rows
  std::string offsets_name{};           // empty: one episode, and no array of offsets in the source
  std::vector<Column> columns{};
  std::vector<Column> others{};  // arrays that have no row per time

  std::vector<Note> notes{};                    // what was assumed when it was read
  std::vector<Note> warnings{};                 // what looks wrong in the source
  std::vector<std::string> other_time_names{};  // columns named like times that were not taken as such

  std::int64_t rows() const { return static_cast<std::int64_t>(times.size()); }
  /// "file.csv:12" or "file.npz: row 12".
  std::string place(std::int64_t row) const;
};

/// Elements without a value: NaN and NaT.
std::int64_t count_missing(const Array& array);

}  // namespace tmaops::recording
