// Writing recordings as text: csv tables, TUM and KITTI trajectories, compressed where the name of the file says so.
#include <algorithm>
#include <set>

#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "io/compression.hpp"
#include "io/recording.hpp"
#include "io/table.hpp"
#include "io/trajectory.hpp"
#include "offers/output_file.hpp"

namespace tmaops::io {
namespace {

class TextOutput {
 public:
  explicit TextOutput(OutputFile& file)
      : compressor_(compression_of(file.path()), [&file](std::string_view bytes) { file.write(bytes); }) {}
  void line(std::string_view text) {
    pending_ += text;
    pending_ += '\n';
    if (pending_.size() >= kWrittenPiece) flush();
  }
  void finish() {
    flush();
    compressor_.finish();
  }

 private:
  static constexpr std::size_t kWrittenPiece = std::size_t{1} << 16;
  void flush() {
    compressor_.write(pending_);
    pending_.clear();
  }
  std::string pending_;
  Compressor compressor_;
};

/// Whether a reader takes times of a unit that nothing states for times of another one.
bool is_misread(const Recording& recording, TimeUnit unit) {
  const TimeColumn& time = recording.time;
  return time.form == TimeForm::number && time.unit_source > UnitSource::name && !unit_in_name(time.name) &&
         unit_read_back(recording.times, unit, digits_needed(recording.times, unit) == 0) != unit;
}

/// The columns of times and how they are written.
class TimeFields {
 public:
  TimeFields(const Recording& recording, FileFormat format, const WriteOptions& options) : recording_(recording) {
    const TimeColumn& time = recording.time;
    const bool csv = format == FileFormat::csv, kept = time.form != TimeForm::pair || fits_pair(recording);
    if (csv && !options.to_unit && kept) form_ = time.form;
    if (csv) unit_ = options.to_unit.value_or(form_ == TimeForm::number ? time.unit : TimeUnit::seconds);
    if (csv && !options.to_unit && !recording.named && is_misread(recording, unit_)) unit_ = TimeUnit::nanoseconds;
    digits_ = digits_needed(recording.times, unit_);
    places = {time.position};
    names = {form_ == TimeForm::number ? written_time_name(recording, format, unit_) : time.name};
    if (form_ != TimeForm::number && !time.second_name.empty()) {
      places.push_back(time.second_position);
      names.push_back(time.second_name);
    }
  }
  std::string text(std::int64_t row, std::size_t part) const {
    const std::int64_t time = recording_.times[static_cast<std::size_t>(row)];
    switch (form_) {
      case TimeForm::number:
        return time_text(time, unit_, digits_);
      case TimeForm::pair:
        return std::to_string(part == 0
                                  ? split_seconds(time).seconds
                                  : split_seconds(time).nanoseconds / nanoseconds_of(recording_.time.second_unit));
      case TimeForm::iso8601:
      case TimeForm::datetime64:
        break;
    }
    return iso_text_of(recording_.time, time, digits_, part);
  }

  std::vector<std::string> names;   // of one column, or of the two of a pair
  std::vector<std::size_t> places;  // of these columns in the input

 private:
  const Recording& recording_;
  TimeForm form_ = TimeForm::number;
  TimeUnit unit_ = TimeUnit::seconds;
  int digits_ = 0;
};

// Years of four digits, from 1 to 9999, in seconds since 1970.
constexpr std::int64_t kFirstYear = -62'135'596'800, kAfterLastYear = 253'402'300'800;

/// Element of a datetime64 array as ISO 8601 in UTC, with the digits of its unit; empty for NaT.
std::string datetime_text(const Array& array, std::int64_t index) {
  const std::int64_t count = element_i64(array, index).value_or(kNotATime);
  if (count == kNotATime) return {};
  const TimeUnit unit = unit_of_datetime(array.type);
  const int decimals = 9 - digits_to_nanoseconds(unit);
  const std::int64_t per_second = kSecond / nanoseconds_of(unit);
  const std::int64_t rest = (count % per_second + per_second) % per_second,
                     seconds = count / per_second - (count % per_second < 0 ? 1 : 0);
  if (seconds < kFirstYear || seconds >= kAfterLastYear) return std::to_string(count);  // no year of four digits
  return iso_time_text({seconds, rest * nanoseconds_of(unit)}, {}, decimals);
}

std::string field_text(const TextField& field, std::int64_t row, char delimiter) {
  const std::int64_t index = row * field.width + field.channel;
  switch (field.data->type.kind) {
    case ElementKind::real:
      return real_field_text(element_f64(*field.data, index));
    case ElementKind::boolean:
      return element_f64(*field.data, index) != 0 ? "true" : "false";
    case ElementKind::text:
      return quoted_field(element_text(*field.data, index), delimiter);
    case ElementKind::time:
      return datetime_text(*field.data, index);
    case ElementKind::integer:
    case ElementKind::row:
      break;
  }
  return element_digits(*field.data, index);
}

// The order of a row, as in the input: fields by their index, the parts of the time as -1 and -2.
std::vector<int> order_of(std::size_t fields, const TimeFields& times, bool times_first) {
  std::vector<int> order;
  for (std::size_t i = 0; i < fields; ++i) order.push_back(static_cast<int>(i));
  std::vector<std::size_t> parts{0};
  if (times.places.size() == 2) parts.insert(times.places[1] < times.places[0] ? parts.begin() : parts.end(), 1);
  for (const std::size_t part : parts) {
    const std::size_t place = times_first ? 0 : std::min(times.places[part], order.size());
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), -1 - static_cast<int>(part));
  }
  return order;
}

// A header that is a comment has words between the delimiters and no quotes, so that it is read back as a header.
bool fits_comment(const std::vector<std::string>& names, char delimiter) {
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return !name.empty() && name.find_first_of("\",;#\t\r\n") == std::string::npos && name.front() != ' ' &&
           name.back() != ' ' && (delimiter != ' ' || name.find(' ') == std::string::npos);
  });
}

std::string csv_header(const Recording& recording, const std::vector<std::string>& names, char delimiter) {
  const bool comment =
      recording.format == FileFormat::csv && !recording.header_comment.empty() && fits_comment(names, delimiter);
  std::string line = comment ? recording.header_comment : "";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) line += delimiter;
    const bool misleading = names[i].find(';') != std::string::npos;  // it would be taken for the delimiter
    line += comment ? names[i] : quoted_field(names[i], misleading ? ';' : delimiter);
  }
  return line;
}

char written_delimiter(const OutputFile& file, const Recording& recording) {
  const std::string extension = lower_case(without_compression(file.path()).extension().native());
  if (extension == ".tsv") return '\t';
  return recording.delimiter == '\t' ? ',' : recording.delimiter;  // elsewhere tabs are blanks like others
}

/// The values that tell the episodes; null where no column does.
const Array* group_of(const Recording& recording) {
  const auto found = std::ranges::find(recording.columns, true, &Column::group);
  return found == recording.columns.end() ? nullptr : &found->data;
}

void refuse_episodes(const Recording& recording, FileFormat format) {
  if (recording.offsets.size() <= 2 || (format == FileFormat::csv && group_of(recording) != nullptr)) return;
  fail(ErrorCode::bad_parameter, recording.where, std::to_string(recording.offsets.size() - 1) + " episodes",
       "one episode for a " + std::string(to_string(format)) + " file",
       "Write npz, or csv with the column of --group.");
}

}  // namespace

std::vector<std::string> left_out(const Recording& recording, FileFormat format) {
  std::vector<std::string> names;
  if (format == FileFormat::npz) return names;
  if (format == FileFormat::kitti) names.push_back(recording.time.name);
  if (format != FileFormat::csv) {
    std::set<const Array*> written;
    for (const TextField& field : pose_fields(recording, format)) written.insert(field.data);
    for (const Column& column : recording.columns)
      if (written.count(&column.data) == 0) names.push_back(column.name);
  }
  for (const Column& column : recording.others) names.push_back(column.name);
  return names;
}

void write_text_recording(OutputFile& file, const Recording& recording, FileFormat format,
                          const WriteOptions& options) {
  refuse_episodes(recording, format);
  const bool csv = format == FileFormat::csv;
  const std::vector<TextField> fields = csv ? flattened(recording) : pose_fields(recording, format);
  const char delimiter = csv ? written_delimiter(file, recording) : ' ';
  TextOutput output(file);
  if (format == FileFormat::kitti) {
    for (std::int64_t row = 0; row < recording.rows(); ++row) output.line(kitti_line(fields, row));
    return output.finish();
  }

  const TimeFields times(recording, format, options);
  const std::vector<int> order = order_of(fields.size(), times, !csv);
  if (!csv) {
    const bool kept = recording.format == format && !recording.header_comment.empty();
    output.line(kept ? recording.header_comment : "# " + joined(kTumColumns, " "));
  } else if (recording.named) {
    std::vector<std::string> names;
    std::set<std::string> taken(times.names.begin(), times.names.end());
    for (const int at : order) {
      const std::string& name =
          at < 0 ? times.names[static_cast<std::size_t>(-1 - at)] : fields[static_cast<std::size_t>(at)].name;
      names.push_back(at < 0 || name.empty() ? name : unique_name(name, taken));
    }
    output.line(csv_header(recording, names, delimiter));
  }
  std::string line;
  const Array* group = group_of(recording);
  for (std::int64_t row = 0; row < recording.rows(); ++row) {
    line.clear();
    const bool valid = recording.valid.empty() || recording.valid[static_cast<std::size_t>(row)] != 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i != 0) line += delimiter;
      if (order[i] < 0) {
        line += times.text(row, static_cast<std::size_t>(-1 - order[i]));
      } else if (const TextField& field = fields[static_cast<std::size_t>(order[i])];
                 valid || field.data->type.kind == ElementKind::real || field.data == group) {
        line += field_text(field, row, delimiter);
      } else {  // an integer or text without data, whose type has no NaN
        line += delimiter == ' ' ? "\"\"" : "";
      }
    }
    output.line(line);
  }
  output.finish();
}

void write_kitti_times(OutputFile& file, const Recording& recording) {
  TextOutput output(file);
  const int digits = digits_needed(recording.times, TimeUnit::seconds);
  for (const std::int64_t time : recording.times) output.line(time_text(time, TimeUnit::seconds, digits));
  output.finish();
}

std::string written_time_name(const Recording& recording, FileFormat format, TimeUnit unit) {
  const TimeColumn& time = recording.time;
  if (time.form == TimeForm::pair) return name_with_unit(joined_time_name(time), unit);
  // In an output of the same format the name, or its absence, states the unit as it did in the input, where a reader
  // sees it.
  if (time.form == TimeForm::number && format == recording.format && unit == time.unit)
    return format == FileFormat::csv && is_misread(recording, unit) ? name_with_unit(time.name, unit) : time.name;
  const bool nanoseconds = format == FileFormat::npz && time.integer;
  const TimeUnit assumed = unit_in_name(time.name).value_or(nanoseconds ? TimeUnit::nanoseconds : TimeUnit::seconds);
  return assumed == unit ? time.name : name_with_unit(time.name, unit);
}

}  // namespace tmaops::io
