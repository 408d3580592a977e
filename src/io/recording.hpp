// A recording: columns of samples with one time per row, whatever file they come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/array.hpp"
#include "io/decimal.hpp"
#include "io/iso_time.hpp"
#include "io/time_names.hpp"

namespace tmaops::io {

class OutputFile;

enum class FileFormat : std::uint8_t { npy, npz, csv, tum, kitti };

/// "npy", "npz", "csv", "tum" or "kitti", and back.
std::string_view to_string(FileFormat format);
std::optional<FileFormat> parse_file_format(std::string_view text);
/// The format that the extension names: .npy, .npz, .csv and .tsv, .tum and .txt. Throws Error usage for another one.
/// The message lists `known` and the `option` that names the format instead ("--from").
FileFormat file_format_of(const std::filesystem::path& path, std::string_view option,
                          std::string_view known = ".npz, .csv, .tsv, .tum or .txt");

/// One block of samples.
struct Column {
  std::string name;
  Array data{};  // (rows, any further extents)

  bool from_text = false;           // of a text file, whose fields decide whether it holds numbers
  std::size_t position = 0;         // among the columns of a text file, from 0; the times have one too
  std::int64_t missing = 0;         // elements without a value: NaN, empty, NA, None, null, NaT
  std::int64_t numeric_fields = 0;  // of a text column of a text file: fields that are numbers
  std::string first_other{};        // the first field that is no number, where some are: "'0x10' at file.csv:12:5"

  /// Numbers per row: the product of the further extents.
  std::int64_t width() const;
};

/// The form of the times in a file.
enum class TimeForm : std::uint8_t {
  number,      // of one unit
  pair,        // whole seconds and whole nanoseconds, in two columns or arrays
  iso8601,     // 2024-05-01T12:00:00.5Z
  datetime64,  // an array of numpy's type of that name
};

/// Why this column or array was taken as the times.
enum class TimeChoice : std::uint8_t {
  format,      // the format has it in this place
  option,      // it was named
  known_name,  // its name is one of the usual ones
  only_array,  // there is no other (read_times)
  position,    // no name is known: the first column
};

/// Where the unit of the times comes from.
enum class UnitSource : std::uint8_t {
  format,    // TUM, KITTI, ISO 8601, datetime64, a pair of seconds and nanoseconds
  option,    // ReadOptions::unit
  name,      // "timestamp [ns]", or a name that one recorder uses for one unit
  only_fit,  // the timestamps are too large for every other unit
  usual,     // no source: integers of an archive are nanoseconds, all else is seconds
};

/// "format", "option", "known name", "only array", "position"; "format", "option", "name", "only fit", "usual".
std::string_view to_string(TimeChoice choice);
std::string_view to_string(UnitSource source);

/// How the times stand in a file, so that they are written the same way.
struct TimeColumn {
  std::string name = "timestamp";
  TimeUnit unit = TimeUnit::seconds;
  bool integer = false;      // whole numbers of the unit
  std::size_t position = 0;  // among the columns of a text file
  TimeForm form = TimeForm::number;
  TimeChoice choice = TimeChoice::position;
  UnitSource unit_source = UnitSource::usual;
  bool coarse = false;              // floating-point numbers of fewer than 64 bits
  std::string second_name{};        // of a pair: the column or array of nanoseconds
  std::size_t second_position = 0;  // of a pair
  IsoStyle iso{};                   // of ISO 8601
};

struct Recording {
  std::string where;  // for messages
  FileFormat format = FileFormat::csv;
  TimeColumn time{};
  std::vector<std::int64_t> times{};    // nanoseconds
  std::vector<std::uint8_t> valid{};    // of each row, when some have no data: 0 there. Empty: all have
  std::vector<std::int64_t> lines{};    // of each row, in a text file
  std::vector<std::int64_t> offsets{};  // of each episode's first row, and the number of rows
  std::string offsets_name{};           // empty: one episode, and no array of offsets in the file
  char delimiter = ',';                 // of a text file
  bool named = true;                    // the text file has (or, coming from an archive, gets) a header
  std::string header_comment{};         // "#" and the blanks behind it, where the header of a csv is a comment; the
                                        // whole comment line above the data of a TUM trajectory
  std::vector<Column> columns{};
  std::vector<Column> others{};  // arrays of an archive that have no row per time

  std::vector<std::string> warnings{};          // what looks wrong in the file, one sentence each
  std::vector<std::string> other_time_names{};  // columns named like times that were not taken as such

  std::int64_t rows() const { return static_cast<std::int64_t>(times.size()); }
  /// "file.csv:12" or "file.npz: row 12".
  std::string place(std::int64_t row) const;
};

struct ReadOptions {
  std::optional<FileFormat> format{};    // by the extension when not given
  std::optional<TimeUnit> unit{};        // of the times; otherwise: a unit in the column's name such as "[ns]", else
                                         // integers of an archive are nanoseconds and all else is seconds
  std::string times_name{};              // array or column; otherwise one of the usual names, or
                                         // with only_times the only array
  bool only_times = false;               // as read_times sets it: no columns are wanted
  std::string offsets_name{};            // array of an archive; otherwise `offsets` or `episode_offsets`
  std::string format_option = "--from";  // what messages name as the way to say it
  std::string times_option = "--times-array";
  std::optional<std::filesystem::path> kitti_times{};  // of a KITTI trajectory: text with one timestamp per line
  bool trust_sizes = false;                            // no limit on how far compressed data may expand
  bool tab_separated = false;                          // a csv that ends in .tsv: split at tabs where there are any
};

struct WriteOptions {
  bool deflate = false;               // the arrays of an npz
  std::optional<TimeUnit> to_unit{};  // times as numbers of this unit; otherwise as they were read
  bool trust_sizes = false;           // no limit on text arrays that are far larger than their text
};

/// Reads a recording. Throws the errors of the format, and times_not_finite, time_precision (f32 too coarse for its
/// timestamps), time_overflow (does not fit in int64 nanoseconds), array_missing, bad_offsets, bad_text.
Recording read_recording(const std::filesystem::path& path, const ReadOptions& options = {});
/// The same from memory; the extension of `where` does not matter, options.format must be given and not npy.
struct Bytes;
Recording parse_recording(const Bytes& file, const std::string& where, const ReadOptions& options);

/// Reads only the times: of a recording, of a plain npy array, or the first column of a text file. The recording has no
/// columns, but its description of the times and its warnings.
Recording read_times_only(const std::filesystem::path& path, const ReadOptions& options = {});
std::vector<std::int64_t> read_times(const std::filesystem::path& path, const ReadOptions& options = {});

/// Checks that times increase within each episode. Throws Error times_not_sorted or, unless equal timestamps are
/// allowed, duplicate_times, with the line or row.
void check_order(const Recording& recording, bool allow_duplicates);

/// Writes a recording as npz, csv, TUM or KITTI, compressed where the file's name ends in .gz or .zst. Throws Error
/// bad_parameter when it lacks a column of the format.
void write_recording(OutputFile& file, const Recording& recording, FileFormat format, const WriteOptions& options = {});

/// The columns and arrays that a file of `format` cannot hold.
std::vector<std::string> left_out(const Recording& recording, FileFormat format);

// --- parts of the above, one per format ------------------------------------------------------------------------------
Recording parse_text_recording(std::string_view text, const std::string& where, FileFormat format,
                               const ReadOptions& options);
Recording parse_kitti_recording(std::string_view text, const std::string& where, const ReadOptions& options);
Recording parse_npz_recording(const Bytes& file, const std::string& where, const ReadOptions& options);
void write_text_recording(OutputFile& file, const Recording& recording, FileFormat format, const WriteOptions& options);
/// The times of a KITTI trajectory: one timestamp per line, in seconds.
void write_kitti_times(OutputFile& file, const Recording& recording);
void write_npz_recording(OutputFile& file, const Recording& recording, const WriteOptions& options);
/// The times of an array of one dimension, in options.unit or else in the unit of its type or name.
std::vector<std::int64_t> array_times(const Array& array, const std::string& where, const ReadOptions& options,
                                      std::string_view name, TimeColumn& time);
/// The name of the times, written in `unit`, in a file of `format`. The unit stands behind the name where a reader of
/// that format would assume another one.
std::string written_time_name(const Recording& recording, FileFormat format, TimeUnit unit);
/// The name that a pair of seconds and nanoseconds has as one number: header.stamp for header.stamp.secs.
std::string joined_time_name(const TimeColumn& time);
/// Elements without a value: NaN and NaT.
std::int64_t count_missing(const Array& array);
/// The times as whole numbers of the unit; nothing when one of them is not whole.
std::optional<std::vector<std::int64_t>> whole_times(const std::vector<std::int64_t>& nanoseconds, TimeUnit unit);
/// Finds the times among names: options.times_name, a usual name, a pair, or nothing. Sets name, second_name and choice
/// of recording.time, and recording.other_time_names.
struct ChosenTimes {
  std::size_t index = 0;
  std::optional<std::size_t> second{};  // of a pair: that of nanoseconds
};
std::optional<ChosenTimes> choose_times(Recording& recording, const std::vector<std::string>& names,
                                        const ReadOptions& options);
/// Adds whole seconds and nanoseconds. Throws Error bad_text or time_overflow at recording.place(row).
std::int64_t join_pair(const Recording& recording, std::int64_t row, std::int64_t seconds, std::int64_t nanoseconds);

}  // namespace tmaops::io
