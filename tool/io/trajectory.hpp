// Trajectories as text: the fields of a row, those that make a pose, and KITTI odometry poses, whose lines have the
// upper three rows of a 4 x 4 matrix, twelve numbers, and whose times are in a second file, one per line.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

/// x y z w, with w >= 0, of a rotation given by rows; nothing when the matrix is no rotation within 1e-2.
std::optional<std::array<double, 4>> quaternion_of(const std::array<double, 9>& rotation);
/// Rows of the rotation that a quaternion x y z w of any norm stands for; NaN where the norm is 0 or not finite.
std::array<double, 9> rotation_of(const std::array<double, 4>& quaternion);

/// The line of a row: `fields` are tx ty tz qx qy qz qw.
std::string kitti_line(const std::vector<TextField>& fields, std::int64_t row);

}  // namespace tmaops::io
