#include "io/recording.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/display.hpp"
#include "core/enum_name.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "core/utf8.hpp"
#include "io/compression.hpp"
#include "io/npy.hpp"
#include "offers/input_file.hpp"
#include "offers/output_file.hpp"

namespace tmaops::io {
namespace {

constexpr std::string_view kFormats[] = {"npy", "npz", "csv", "tum", "kitti"};
constexpr std::string_view kRecordingExtensions = ".npz, .csv, .tsv, .tum or .txt";
constexpr std::string_view kDatasetExtensions[] = {".mcap", ".bag", ".db3", ".parquet", ".h5", ".hdf5", ".zarr"};

void refuse_compressed_arrays(const std::filesystem::path& path, FileFormat format) {
  if (compression_of(path) == Compression::none || (format != FileFormat::npz && format != FileFormat::npy)) return;
  fail(ErrorCode::usage, display(path), "a compressed " + std::string(to_string(format)) + " file",
       "gzip and zstd for text only",
       "Name it without the last extension; an npz is compressed inside, with --compress.");
}

/// UTF-16 that begins with a byte order mark, as UTF-8; other text as it is. Halves of characters become U+FFFD.
Bytes as_utf8(const Bytes& bytes) {
  const std::string_view text = bytes.text();
  const bool little = text.starts_with("\xff\xfe");
  if (!little && !text.starts_with("\xfe\xff")) return bytes;
  const auto unit = [&](std::size_t at) {
    const auto byte = [&](bool second) { return static_cast<unsigned char>(text[at + (second ? 1 : 0)]); };
    return static_cast<char32_t>(byte(little) << 8 | byte(!little));
  };
  const auto made = std::make_shared<std::string>();
  for (std::size_t at = 2; at + 1 < text.size(); at += 2) {
    char32_t code = unit(at);
    const char32_t low = at + 3 < text.size() ? unit(at + 2) : 0;
    if (code >= 0xd800 && code < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      at += 2;
    }
    append_utf8(*made, code);
  }
  return {{made, reinterpret_cast<const std::byte*>(made->data())}, made->size()};
}

// The bytes of the file, decompressed where its name says so.
Bytes read_input(const std::filesystem::path& path, const ReadOptions& options) {
  refuse_compressed_arrays(path, *options.format);
  const Bytes bytes = read_file(path);
  const Compression compression = compression_of(path);
  if (compression != Compression::none) {
    ExpansionLimit limit;
    if (options.trust_sizes) limit.largest_ratio = std::numeric_limits<std::uint32_t>::max();
    return as_utf8(decompress(bytes, compression, input_name(path), limit));
  }
  const Compression found = detect_compression(bytes.text());
  if (*options.format == FileFormat::npz || *options.format == FileFormat::npy) return bytes;
  if (found == Compression::none) return as_utf8(bytes);
  const bool gzip = found == Compression::gzip;
  fail(ErrorCode::bad_format, input_name(path),
       std::string("data compressed with ") + (gzip ? "gzip" : "zstd") + ", and a name that does not say so",
       std::string("plain text, or a name that ends in ") + (gzip ? ".gz" : ".zst"),
       std::string("Rename the file, or decompress it: ") + (gzip ? "zcat" : "zstdcat") +
           " FILE | tmaops resample - --from csv ...");
}

ReadOptions with_format(const std::filesystem::path& path, const ReadOptions& options, std::string_view known) {
  ReadOptions all = options;
  if (!all.format) all.format = file_format_of(path, options.format_option, known);
  all.tab_separated = lower_case(without_compression(path).extension().native()) == ".tsv";
  return all;
}

}  // namespace

std::string_view to_string(FileFormat format) { return enum_name(kFormats, format); }
std::optional<FileFormat> parse_file_format(std::string_view text) { return parse_enum<FileFormat>(kFormats, text); }

FileFormat file_format_of(const std::filesystem::path& path, std::string_view option, std::string_view known) {
  std::string mend = "Name the format with " + std::string(option) + ".";
  if (is_standard(path))
    fail(ErrorCode::usage, "-", "standard input or standard output, which has no extension", "a format by name",
         mend + " (A file of that name is './-'.)");
  const std::string extension = lower_case(without_compression(path).extension().native());
  const bool compressed = compression_of(path) != Compression::none;
  std::optional<FileFormat> format;
  if (!extension.empty()) format = parse_file_format(std::string_view(extension).substr(1));
  const bool opensim = extension == ".mot" || extension == ".sto" || extension == ".trc";
  if (extension == ".tsv" || (opensim && option != "--to")) format = FileFormat::csv;
  if (extension == ".txt") format = FileFormat::tum;
  if (format && compressed) refuse_compressed_arrays(path, *format);
  if (format && *format != FileFormat::kitti) return *format;
  if (option == "--from" && std::ranges::find(kDatasetExtensions, extension) != std::end(kDatasetExtensions))
    mend = "The Python package reads it: tmaops dataset resample IN OUT --hz F.";
  fail(ErrorCode::usage, display(path),
       path.extension().empty() ? "a name without extension"
                                : "the extension '" + display_text(path.extension().native()) + "'",
       std::string(known) + (compressed ? " before it" : ""), mend);
}

Recording parse_recording(const Bytes& file, const std::string& where, const ReadOptions& options) {
  const FileFormat format = options.format.value_or(FileFormat::csv);
  Recording recording = format == FileFormat::npz     ? parse_npz_recording(file, where, options)
                        : format == FileFormat::kitti ? parse_kitti_recording(file.text(), where, options)
                                                      : parse_text_recording(file.text(), where, format, options);
  if (recording.offsets.empty()) recording.offsets = {0, recording.rows()};
  return recording;
}

Recording read_recording(const std::filesystem::path& path, const ReadOptions& options) {
  const ReadOptions known = with_format(path, options, kRecordingExtensions);
  if (*known.format == FileFormat::npy)
    fail(ErrorCode::usage, input_name(path), "one npy array", "times and values together",
         "Put them into one npz: numpy.savez(FILE, times=..., values=...).");
  return parse_recording(read_input(path, known), input_name(path), known);
}

Recording read_times_only(const std::filesystem::path& path, const ReadOptions& options) {
  ReadOptions known = with_format(path, options, ".npy, .npz, .csv, .tsv, .tum or .txt");
  known.only_times = true;
  const Bytes bytes = read_input(path, known);
  if (*known.format == FileFormat::npy) {
    Recording recording;
    recording.where = input_name(path);
    recording.format = FileFormat::npy;
    recording.kind = "array";
    recording.time.choice = TimeChoice::only_array;
    const Array array = parse_npy(bytes, recording.where, path.stem().native());
    recording.times = array_times(array, recording.where, known.times(), "", recording.time);
    recording.offsets = {0, recording.rows()};
    return recording;
  }
  // A .txt may be any text whose first column is the time, such as a TUM trajectory.
  if (*known.format == FileFormat::tum) known.format = FileFormat::csv;
  return parse_recording(bytes, input_name(path), known);
}

void write_recording(OutputFile& file, const Recording& recording, FileFormat format, const WriteOptions& options) {
  if (format == FileFormat::npz) return write_npz_recording(file, recording, options);
  write_text_recording(file, recording, format, options);
}

}  // namespace tmaops::io
