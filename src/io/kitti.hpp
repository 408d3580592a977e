// KITTI odometry poses: a line has the upper three rows of a 4 x 4 matrix, twelve numbers. The times are in a second
// file, one timestamp per line.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/tum_columns.hpp"

namespace tmaops::io {

/// x y z w, with w >= 0, of a rotation given by rows; nothing when the matrix is no rotation within 1e-2.
std::optional<std::array<double, 4>> quaternion_of(const std::array<double, 9>& rotation);
/// Rows of the rotation that a quaternion x y z w of any norm stands for; NaN where the norm is 0 or not finite.
std::array<double, 9> rotation_of(const std::array<double, 4>& quaternion);

/// The line of a row: `fields` are tx ty tz qx qy qz qw.
std::string kitti_line(const std::vector<TextField>& fields, std::int64_t row);

}  // namespace tmaops::io
