#include "io/tum_columns.hpp"

#include <algorithm>
#include <utility>

#include "tmaops/error.hpp"

namespace tmaops::io {

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
      throw Error(ErrorCode::bad_parameter,
                  {.where = recording.where,
                   .got = "no column '" + std::string(kTumColumns[i]) + "' for a " +
                          (format == FileFormat::kitti ? "KITTI" : "TUM") + " trajectory",
                   .needed = "tx ty tz qx qy qz qw, or arrays position (rows, 3) and quaternion (rows, 4)",
                   .mend = "Write csv or npz, or rename the columns."});
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace tmaops::io
