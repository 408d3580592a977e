// The fields of a text row, and those that make a pose.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/recording.hpp"

namespace tmaops::io {

// https://cvg.cit.tum.de/data/datasets/rgbd-dataset/file_formats
inline constexpr std::array<std::string_view, 8> kTumColumns{"timestamp", "tx", "ty", "tz", "qx", "qy", "qz", "qw"};

/// One column of numbers or text per field of a text row.
struct TextField {
  std::string name;
  const Array* data;
  std::int64_t width;    // of the array
  std::int64_t channel;  // in its row
};

/// Adds column `i` of a trajectory that is read from text.
void add_tum_column(Recording& recording, std::size_t i, Array data);
/// A field for every channel of every column.
std::vector<TextField> flattened(const Recording& recording);
/// tx ty tz qx qy qz qw, under these names or as position_0.. and quaternion_0.. from an archive. Throws Error
/// bad_parameter when one is missing.
std::vector<TextField> pose_fields(const Recording& recording, FileFormat format);

}  // namespace tmaops::io
