// A recording: columns of samples with one time per row, whatever file they come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/names.hpp"

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

/// A recording, and how it stands in its file.
struct Recording : recording::Recording {
  FileFormat format = FileFormat::csv;
  char delimiter = ',';          // of a text file
  bool named = true;             // the text file has (or, coming from an archive, gets) a header
  std::string header_comment{};  // "#" and the blanks behind it, where the header of a csv is a comment; the whole
                                 // comment line above the data of a TUM trajectory
};

struct ReadOptions {
  std::optional<FileFormat> format{};    // by the extension when not given
  std::optional<TimeUnit> unit{};        // of the times; otherwise: a unit in the column's name such as "[ns]", else
                                         // as recording::find_unit() says
  std::string times_name{};              // array or column; otherwise one of the usual names, or
                                         // with only_times the only array
  bool only_times = false;               // as read_times sets it: no columns are wanted
  std::string offsets_name{};            // array of an archive; otherwise `offsets` or `episode_offsets`
  std::string format_option = "--from";  // what messages name as the way to say it
  std::string times_option = "--times-array";
  std::optional<std::filesystem::path> kitti_times{};  // of a KITTI trajectory: text with one timestamp per line
  bool trust_sizes = false;                            // no limit on how far compressed data may expand
  std::int64_t skip_lines = 0;                         // of text: lines above the header
  bool tab_separated = false;                          // a csv that ends in .tsv: split at tabs where there are any

  TimeOptions times() const { return {unit, times_name, only_times, times_option}; }
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
/// The name of the times, written in `unit`, in a file of `format`. The unit stands behind the name where a reader of
/// that format would assume another one.
std::string written_time_name(const Recording& recording, FileFormat format, TimeUnit unit);

}  // namespace tmaops::io
