// A recording: columns of samples with one time per row, whatever file they come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/array.hpp"
#include "io/decimal.hpp"

namespace tmaops::io {

class OutputFile;

enum class FileFormat : std::uint8_t { npy, npz, csv, tum };

/// "npy", "npz", "csv" or "tum", and back.
std::string_view to_string(FileFormat format);
std::optional<FileFormat> parse_file_format(std::string_view text);
/// By the extension: .npy, .npz, .csv and .tsv, .tum and .txt. Throws Error usage for another one; `option` is what
/// names the format instead ("--from"), `known` what the message lists.
FileFormat file_format_of(const std::filesystem::path& path, std::string_view option,
                          std::string_view known = ".npz, .csv, .tsv, .tum or .txt");

/// One block of samples.
struct Column {
  std::string name;
  Array data{};  // (rows, any further extents)

  /// Numbers per row: the product of the further extents.
  std::int64_t width() const;
};

/// How a file wrote its times, so that they are written the same way.
struct TimeColumn {
  std::string name = "timestamp";
  TimeUnit unit = TimeUnit::seconds;
  bool integer = false;      // whole numbers of the unit
  std::size_t position = 0;  // among the columns of a text file
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
  std::vector<Column> columns{};
  std::vector<Column> others{};  // arrays of an archive that have no row per time

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
};

/// Reads a recording. Throws the errors of the format, and times_not_finite, time_precision (f32 too coarse for its
/// stamps), time_overflow (does not fit in int64 nanoseconds), array_missing, bad_offsets, bad_text.
Recording read_recording(const std::filesystem::path& path, const ReadOptions& options = {});
/// The same from memory; the extension of `where` does not matter, options.format must be given and not npy.
struct Bytes;
Recording parse_recording(const Bytes& file, const std::string& where, const ReadOptions& options);

/// Only the times: of a recording, of a plain npy array, or the first column of a text file.
std::vector<std::int64_t> read_times(const std::filesystem::path& path, const ReadOptions& options = {});

/// Checks that times increase within each episode. Throws Error times_not_sorted or, unless equal stamps are allowed,
/// duplicate_times, with the line or row.
void check_order(const Recording& recording, bool allow_duplicates);

/// Writes a recording as npz, csv or TUM. Throws Error bad_parameter when it has not the columns of the format.
void write_recording(OutputFile& file, const Recording& recording, FileFormat format, bool deflate = false);

/// The columns and arrays that a file of `format` has no place for.
std::vector<std::string> left_out(const Recording& recording, FileFormat format);

// --- parts of the above, one per format ------------------------------------------------------------------------------
Recording parse_text_recording(std::string_view text, const std::string& where, FileFormat format,
                               const ReadOptions& options);
Recording parse_npz_recording(const Bytes& file, const std::string& where, const ReadOptions& options);
void write_text_recording(OutputFile& file, const Recording& recording, FileFormat format);
void write_npz_recording(OutputFile& file, const Recording& recording, bool deflate);
/// Times of a one-dimensional array of numbers in `unit` (or the unit its type and name say).
std::vector<std::int64_t> array_times(const Array& array, const std::string& where, const ReadOptions& options,
                                      std::string_view name, TimeColumn& time);
/// The unit that a name states in brackets or as its ending: "timestamp [ns]", "time_us", "t(ms)".
std::optional<TimeUnit> unit_in_name(std::string_view name);
/// `name`, or name_2, name_3, ... where that is taken already; it is taken then.
std::string unique_name(const std::string& name, std::set<std::string>& taken);
/// What the times, written in `unit`, are called in a file of `format`: with the unit behind the name where a reader of
/// that format would take another one for granted.
std::string written_time_name(const Recording& recording, FileFormat format, TimeUnit unit);
/// Index of the first usual name of a time column in `names`: timestamp, timestamps, time, times, t, stamp, stamps, in
/// this order and any case, units behind it left out.
std::optional<std::size_t> find_time_name(const std::vector<std::string>& names);

}  // namespace tmaops::io
