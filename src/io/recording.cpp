#include "io/recording.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "io/file_error.hpp"
#include "io/input_file.hpp"
#include "io/npy.hpp"
#include "io/output_file.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::string stamp_text(std::int64_t nanoseconds) {
  return time_text(nanoseconds, TimeUnit::seconds, digits_needed({nanoseconds}, TimeUnit::seconds)) + " s";
}

// f32 stamps must be told apart: the resolution at the largest one within the mean step.
void check_precision(const Array& array, const std::string& where) {
  const std::int64_t count = array.size();
  if (array.type.kind != ElementKind::real || array.type.bytes == 8 || count == 0) return;
  float largest = 0;
  double first = std::numeric_limits<double>::infinity(), last = -first;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = element_f64(array, i);
    if (!std::isfinite(value)) return;  // another error
    largest = std::max(largest, static_cast<float>(std::abs(value)));
    first = std::min(first, value);
    last = std::max(last, value);
  }
  const int digits = array.type.bytes == 4 ? 23 : array.type.bfloat16 ? 7 : 10;  // of the mantissa
  const double resolution = largest == 0 ? 0 : std::ldexp(1.0, std::ilogb(largest) - digits);
  if (resolution * static_cast<double>(count - 1) > last - first || (count == 1 && resolution > 1e-3))
    throw Error(ErrorCode::time_precision,
                {.where = where,
                 .got = std::to_string(count) + " stamps of type " + (array.type.bfloat16 ? "bf16" : array.type.descr) +
                        " up to " + real_text(largest) + ", where that type resolves " + real_text(resolution),
                 .needed = "a type that resolves the mean step"});
}

}  // namespace

std::string_view to_string(FileFormat format) {
  static constexpr std::string_view kNames[] = {"npy", "npz", "csv", "tum"};
  return kNames[static_cast<int>(format)];
}

std::optional<FileFormat> parse_file_format(std::string_view text) {
  for (const FileFormat format : {FileFormat::npy, FileFormat::npz, FileFormat::csv, FileFormat::tum})
    if (to_string(format) == text) return format;
  return {};
}

FileFormat file_format_of(const std::filesystem::path& path, std::string_view option, std::string_view known) {
  const std::string extension = lower_case(path.extension().native());
  if (extension == ".tsv") return FileFormat::csv;
  if (extension == ".txt") return FileFormat::tum;
  if (!extension.empty())
    if (const auto format = parse_file_format(std::string_view(extension).substr(1))) return *format;
  throw Error(ErrorCode::usage, {.where = display(path),
                                 .got = extension.empty() ? "a name without extension"
                                                          : "the extension '" + display_text(extension) + "'",
                                 .needed = std::string(known),
                                 .mend = "Name the format with " + std::string(option) + "."});
}

std::int64_t Column::width() const {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < data.shape.size(); ++i) product *= data.shape[i];
  return product;
}

std::string Recording::place(std::int64_t row) const {
  if (lines.empty()) return where + ": row " + std::to_string(row);
  return where + ":" + std::to_string(lines[static_cast<std::size_t>(row)]);
}

std::optional<TimeUnit> unit_in_name(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const TimeUnit unit :
       {TimeUnit::nanoseconds, TimeUnit::microseconds, TimeUnit::milliseconds, TimeUnit::seconds}) {
    const std::string text(to_string(unit));
    for (const std::string& ending : {"[" + text + "]", "(" + text + ")", "_" + text})
      if (lower.ends_with(ending)) return unit;
  }
  return {};
}

std::string unique_name(const std::string& name, std::set<std::string>& taken) {
  std::string unique = name;
  for (int n = 2; !taken.insert(unique).second; ++n) unique = name + "_" + std::to_string(n);
  return unique;
}

std::string written_time_name(const Recording& recording, FileFormat format, TimeUnit unit) {
  const TimeColumn& time = recording.time;
  // In a file like the one that was read, whatever told the unit there tells it again.
  if (format == recording.format && unit == time.unit) return time.name;
  const bool nanoseconds = format == FileFormat::npz && time.integer;
  const TimeUnit assumed = unit_in_name(time.name).value_or(nanoseconds ? TimeUnit::nanoseconds : TimeUnit::seconds);
  return assumed == unit ? time.name : time.name + "_" + std::string(to_string(unit));
}

std::optional<std::size_t> find_time_name(const std::vector<std::string>& names) {
  for (const std::string_view usual : {"timestamp", "timestamps", "time", "times", "t", "stamp", "stamps"})
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::string name = lower_case(names[i]);
      while (unit_in_name(name)) name.resize(name.find_last_of("[(_"));
      while (name.ends_with(' ')) name.pop_back();
      if (name == usual) return i;
    }
  return {};
}

std::vector<std::int64_t> array_times(const Array& array, const std::string& where, const ReadOptions& options,
                                      std::string_view name, TimeColumn& time) {
  if (array.shape.size() != 1)
    throw Error(ErrorCode::shape_mismatch, {.where = where, .got = array.text(), .needed = "times of shape (rows,)"});
  if (array.type.kind != ElementKind::real && array.type.kind != ElementKind::integer)
    throw Error(ErrorCode::unsupported_file_dtype,
                {.where = where, .got = array.text(), .needed = "times as integers or floating-point numbers"});
  time.integer = array.type.kind == ElementKind::integer;
  time.unit = options.unit ? *options.unit
                           : unit_in_name(name).value_or(time.integer ? TimeUnit::nanoseconds : TimeUnit::seconds);
  check_precision(array, where);
  std::vector<std::int64_t> times(static_cast<std::size_t>(array.size()));
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    ParseResult result = ParseResult::out_of_range;
    std::string got;
    if (!time.integer) {
      result = time_from_f64(element_f64(array, index), time.unit, times[i]);
      got = real_text(element_f64(array, index));
    } else if (const auto value = element_i64(array, index)) {
      result = parse_time(std::to_string(*value), time.unit, times[i]);
      got = std::to_string(*value);
    }
    if (result == ParseResult::good) continue;
    const bool finite = result != ParseResult::not_finite;
    throw Error(finite ? ErrorCode::time_overflow : ErrorCode::times_not_finite,
                {.where = where + ": row " + std::to_string(i),
                 .got = got + " " + std::string(to_string(time.unit)),
                 .needed = finite ? "a time within 292 years of 0, the range of int64 nanoseconds" : "a finite time",
                 .mend = finite ? "Name the unit with --time-unit." : ""});
  }
  return times;
}

Recording parse_recording(const Bytes& file, const std::string& where, const ReadOptions& options) {
  const FileFormat format = options.format.value_or(FileFormat::csv);
  Recording recording = format == FileFormat::npz ? parse_npz_recording(file, where, options)
                                                  : parse_text_recording(file.text(), where, format, options);
  if (recording.offsets.empty()) recording.offsets = {0, recording.rows()};
  return recording;
}

Recording read_recording(const std::filesystem::path& path, const ReadOptions& options) {
  ReadOptions known = options;
  if (!known.format) known.format = file_format_of(path, options.format_option);
  if (*known.format == FileFormat::npy)
    throw Error(ErrorCode::usage, {.where = display(path),
                                   .got = "one npy array",
                                   .needed = "times and values together",
                                   .mend = "Put them into one npz: numpy.savez(FILE, times=..., values=...)."});
  return parse_recording(read_file(path), display(path), known);
}

std::vector<std::int64_t> read_times(const std::filesystem::path& path, const ReadOptions& options) {
  ReadOptions known = options;
  if (!known.format) known.format = file_format_of(path, options.format_option, ".npy, .npz, .csv, .tsv, .tum or .txt");
  known.only_times = true;
  TimeColumn time;
  if (*known.format == FileFormat::npy) return array_times(read_npy(path), display(path), known, "", time);
  if (*known.format == FileFormat::tum) {  // any text whose first column is the time, TUM files among them
    known.format = FileFormat::csv;
    known.times_name = options.times_name;
  }
  return parse_recording(read_file(path), display(path), known).times;
}

void check_order(const Recording& recording, bool allow_duplicates) {
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
    for (std::int64_t row = recording.offsets[e] + 1; row < recording.offsets[e + 1]; ++row) {
      const std::int64_t before = recording.times[static_cast<std::size_t>(row - 1)];
      const std::int64_t now = recording.times[static_cast<std::size_t>(row)];
      if (now < before)
        throw Error(ErrorCode::times_not_sorted, {.where = recording.place(row),
                                                  .got = stamp_text(now) + " after " + stamp_text(before),
                                                  .needed = "times that increase from row to row"});
      if (now == before && !allow_duplicates)
        throw Error(ErrorCode::duplicate_times,
                    {.where = recording.place(row),
                     .got = "twice " + stamp_text(now),
                     .needed = "different times",
                     .mend = "Remove one of the two, or pass --duplicates last: the later sample then wins."});
    }
}

void write_recording(OutputFile& file, const Recording& recording, FileFormat format, bool deflate) {
  if (format == FileFormat::npz) return write_npz_recording(file, recording, deflate);
  write_text_recording(file, recording, format);
}

}  // namespace tmaops::io
