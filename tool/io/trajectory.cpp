#include "io/trajectory.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/fail.hpp"
#include "io/table.hpp"
#include "offers/input_file.hpp"

namespace tmaops::io {
namespace {

constexpr std::size_t kNumbers = 12;
constexpr double kTolerance = 1e-2;  // of the products of rows, whose numbers have six digits or more

double dot(const std::array<double, 9>& rows, std::size_t a, std::size_t b) {
  return rows[3 * a] * rows[3 * b] + rows[3 * a + 1] * rows[3 * b + 1] + rows[3 * a + 2] * rows[3 * b + 2];
}

double determinant(const std::array<double, 9>& m) {
  return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) + m[2] * (m[3] * m[7] - m[4] * m[6]);
}

std::vector<std::int64_t> read_kitti_times(const std::string& where, const ReadOptions& options) {
  if (!options.kitti_times)
    fail(ErrorCode::usage, where, "KITTI poses, which have no times",
         "the file of their times, one timestamp in seconds per line", "Name it with --kitti-times.");
  ReadOptions times;
  times.format = FileFormat::csv;
  return read_times_only(*options.kitti_times, times).times;
}

}  // namespace

void add_tum_column(Recording& recording, std::size_t i, Array data) {
  Column column{std::string(kTumColumns[i]), std::move(data)};
  column.from_text = true;
  column.position = i;
  column.missing = count_missing(column.data);
  recording.columns.push_back(std::move(column));
}

std::vector<TextField> flattened(const Recording& recording) {
  std::vector<TextField> fields;
  for (const Column& column : recording.columns)
    for (std::int64_t channel = 0; channel < column.width(); ++channel)
      fields.push_back({column.data.shape.size() > 1 ? column.name + "_" + std::to_string(channel) : column.name,
                        &column.data, column.width(), channel});
  return fields;
}

std::vector<TextField> pose_fields(const Recording& recording, FileFormat format) {
  const std::vector<TextField> all = flattened(recording);
  std::vector<TextField> chosen;
  for (std::size_t i = 1; i < kTumColumns.size(); ++i) {
    const std::string other = i <= 3 ? "position_" + std::to_string(i - 1) : "quaternion_" + std::to_string(i - 4);
    const auto found = std::find_if(all.begin(), all.end(), [&](const TextField& field) {
      const ElementKind kind = field.data->type.kind;
      return (field.name == kTumColumns[i] || field.name == other) && kind != ElementKind::text &&
             kind != ElementKind::time;
    });
    if (found == all.end())
      fail(ErrorCode::bad_parameter, recording.where,
           "no column '" + std::string(kTumColumns[i]) + "' for a " + (format == FileFormat::kitti ? "KITTI" : "TUM") +
               " trajectory",
           "tx ty tz qx qy qz qw, or arrays position (rows, 3) and quaternion (rows, 4)",
           "Write csv or npz, or rename the columns.");
    chosen.push_back(*found);
  }
  return chosen;
}

std::optional<std::array<double, 4>> quaternion_of(const std::array<double, 9>& m) {
  for (const std::size_t i : {0U, 1U, 2U})
    for (std::size_t j = i; j < 3; ++j)
      if (!(std::abs(dot(m, i, j) - (i == j ? 1.0 : 0.0)) <= kTolerance)) return {};
  if (determinant(m) < 0) return {};  // a mirror image
  // The products of every two components, times four. The row with the largest square gives all components.
  const double xy = m[1] + m[3], xz = m[2] + m[6], yz = m[5] + m[7];
  const double xw = m[7] - m[5], yw = m[2] - m[6], zw = m[3] - m[1];
  const std::array<std::array<double, 4>, 4> products{{{1 + m[0] - m[4] - m[8], xy, xz, xw},
                                                       {xy, 1 - m[0] + m[4] - m[8], yz, yw},
                                                       {xz, yz, 1 - m[0] - m[4] + m[8], zw},
                                                       {xw, yw, zw, 1 + m[0] + m[4] + m[8]}}};
  std::size_t largest = 0;
  for (const std::size_t i : {1U, 2U, 3U})
    if (products[i][i] > products[largest][largest]) largest = i;
  std::array<double, 4> q = products[largest];
  const double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (double& component : q) component /= q[3] < 0 ? -norm : norm;
  return q;
}

std::array<double, 9> rotation_of(const std::array<double, 4>& quaternion) {
  const auto [x, y, z, w] = quaternion;
  const double s = 2 / (x * x + y * y + z * z + w * w);
  if (!std::isfinite(s)) {
    std::array<double, 9> none{};
    none.fill(std::nan(""));
    return none;
  }
  return {1 - s * (y * y + z * z), s * (x * y - z * w),     s * (x * z + y * w),
          s * (x * y + z * w),     1 - s * (x * x + z * z), s * (y * z - x * w),
          s * (x * z - y * w),     s * (y * z + x * w),     1 - s * (x * x + y * y)};
}

std::string kitti_line(const std::vector<TextField>& fields, std::int64_t row) {
  const auto value = [&](std::size_t i) {
    return element_f64(*fields[i].data, row * fields[i].width + fields[i].channel);
  };
  const std::array<double, 9> rotation = rotation_of({value(3), value(4), value(5), value(6)});
  std::string line;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      line += (line.empty() ? "" : " ") + real_field_text(j < 3 ? rotation[3 * i + j] : value(i));
  return line;
}

Recording parse_kitti_recording(std::string_view text, const std::string& where, const ReadOptions& options) {
  if (text.empty()) fail(ErrorCode::bad_format, where, "an empty file", "a KITTI trajectory");
  const Table table = parse_table(text, where, {.delimiter = ' ', .header = false, .columns = kNumbers});
  if (table.rows() == 0) fail(ErrorCode::empty_trajectory, where, "no line of data", "at least one row");
  Recording recording;
  recording.where = where;
  recording.format = FileFormat::kitti;
  recording.lines = table.lines;
  recording.time.choice = TimeChoice::format;
  recording.time.unit_source = UnitSource::format;
  recording.times = read_kitti_times(where, options);
  if (recording.times.size() != table.rows())
    fail(ErrorCode::shape_mismatch, input_name(*options.kitti_times), std::to_string(recording.times.size()) + " times",
         std::to_string(table.rows()) + ", one for each pose of " + where);
  if (options.only_times) return recording;

  std::array<std::vector<double>, kNumbers> numbers;
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] = column_reals(table, i);
  std::array<std::vector<double>, 4> quaternions;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    std::array<double, 9> rotation{};
    for (std::size_t i = 0; i < 9; ++i) rotation[i] = numbers[4 * (i / 3) + i % 3][row];
    const auto quaternion = quaternion_of(rotation);
    if (!quaternion)
      fail(ErrorCode::bad_text, table.place(row, 0),
           "a matrix of determinant " + real_text(determinant(rotation)) + " that is no rotation",
           "the rows of a rotation matrix, each with a translation behind it");
    for (std::size_t i = 0; i < 4; ++i) quaternions[i].push_back((*quaternion)[i]);
  }
  const std::vector<std::int64_t> shape{recording.rows()};
  for (std::size_t i = 1; i < kTumColumns.size(); ++i) {
    const std::vector<double>& values = i <= 3 ? numbers[4 * (i - 1) + 3] : quaternions[i - 4];
    add_tum_column(recording, i, make_array(values, shape));
  }
  return recording;
}

}  // namespace tmaops::io
