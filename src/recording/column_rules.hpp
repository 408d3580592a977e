// Finds quaternions, positions, angles and masks among the columns of a recording by their names and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recording/recording.hpp"

namespace tmaops::recording {

/// One number of a row: channel `channel` of column `column`.
struct ChannelReference {
  std::size_t column = 0;
  std::int64_t channel = 0;

  friend bool operator==(const ChannelReference&, const ChannelReference&) = default;
};

/// A quaternion or a position.
struct NamedVector {
  std::vector<ChannelReference> components{};  // x y z w, x y z, or x y of a position in the plane
  std::string text{};                          // "qx qy qz qw", "eef_quat", "eef_quat[4:8]"
  std::string prefix{};                        // "left_" of "left_qx"; the parts of a pose share it
  bool w_first = false;                        // in the file
  bool order_named = true;                     // the names say which component is which; otherwise x y z w is assumed
  bool by_px4 = false;                         // q[0] to q[3], which PX4 writes with w first

  std::string_view order() const;  // "x y z w assumed"
};

/// Numbers of a row; rows of more are images and scans, which are not interpolated by themselves.
inline constexpr std::int64_t kMostChannels = 4096;

/// The columns of a recording.
struct ColumnView {
  std::span<const Column> columns{};

  /// Real numbers, no images, or whole numbers of a text file, where real numbers may be written without a point.
  bool numeric(std::size_t column) const;
  double value(const ChannelReference& channel, std::int64_t row) const;
  std::int64_t rows() const;
  /// "qx qy qz qw", "pose[3:7]".
  std::string text(std::span<const ChannelReference> channels, std::string_view between = " ") const;
};

/// Finds quaternions by the names that EuRoC (q_RS_w []), ROS (pose.orientation.x), robomimic (robot0_eef_quat),
/// LeRobot and RLDS use. A word with other meanings (orientation, rotation, q) names an array or numbered columns only
/// when their norms are 1.
std::vector<NamedVector> find_quaternions(const ColumnView& view);
/// Finds positions: tx ty tz, p_RS_R_x, pose.position.x, x y z, eef_pos. Plain x y z (or x y) must have a component of
/// real numbers, because pixels have such names too.
std::vector<NamedVector> find_positions(const ColumnView& view);

/// Finds four neighbouring channels whose norm is 1 in nearly every row, none of them `taken`. Rows of 0 and 1 alone (a
/// one-hot code) and constant rows do not count.
std::vector<std::vector<ChannelReference>> find_unit_quaternions(const ColumnView& view,
                                                                 const std::vector<ChannelReference>& taken);
/// True when the norms of these channels are 1 in nearly every row.
bool has_unit_norm(const ColumnView& view, std::span<const ChannelReference> channels);
/// Least and greatest norm of the rows; rows with NaN are left out.
std::pair<double, double> norm_range(const ColumnView& view, std::span<const ChannelReference> channels);

/// How an angle wraps around.
struct AngleRule {
  double turn = 0;              // 2 pi or 360
  std::optional<double> low{};  // the values lie in [low, low + turn]; nothing: they span more than a turn
  bool unit_named = false;      // by the column's name, not by its range
  bool jumps = false;           // some neighbouring values differ by more than half a turn
  std::string text() const;     // "rad by its range -3.1 to 3.1"
  double least = 0, greatest = 0;
};

/// True for rewards by their names: reward, rewards, next.reward, obs/reward.
bool named_reward(std::string_view name);
/// True for flags of what happened by their names: done, terminated, truncated, success, is_last, next.done.
bool named_flag(std::string_view name);
/// True for those that end an episode, and not for done, which may be of a part of it.
bool named_end(std::string_view name);
/// True for the flag of a first step by its name: is_first, steps.is_first.
bool named_first(std::string_view name);
/// True for actions by their names: action, actions, action.arm.
bool named_action(std::string_view name);
/// True for booleans, and for numbers that are all 0, 1 or missing.
bool is_flag(const Array& array);

/// True for columns named yaw, heading, roll, longitude and so on, in any case and with prefixes and units ("vehicleYaw
/// [deg]").
bool named_angle(std::string_view name);
/// The rule of one channel. Its turn is `turn` where that is above 0, else that of the unit in the name, else that of
/// the range of the values. Nothing when none of them says it.
std::optional<AngleRule> find_angle_rule(const ColumnView& view, const ChannelReference& channel,
                                         const std::vector<std::int64_t>& offsets, double turn = 0);

/// The turn, 2 pi or 360, of a channel whose values jump by nearly a whole one now and then and move little otherwise,
/// within one turn in all, and about as far across a jump as elsewhere; 0 for others.
double turn_by_value(const ColumnView& view, const ChannelReference& channel, const std::vector<std::int64_t>& offsets);

/// Twelve or sixteen neighbouring channels that are the rows of a pose matrix in nearly every row, none of them
/// `taken`.
std::vector<std::vector<ChannelReference>> find_pose_matrices(const ColumnView& view,
                                                              const std::vector<ChannelReference>& taken);

/// Three neighbouring channels that are rotation vectors (axis times angle): none is longer than half a turn, and one
/// turns over there, so that the numbers between it and the next one are of other rotations.
std::vector<std::vector<ChannelReference>> find_rotation_vectors(const ColumnView& view,
                                                                 const std::vector<ChannelReference>& taken);

/// The mask of rows with data: a column named valid that holds booleans, 0 and 1, or true and false. Nothing when there
/// is no such column.
std::optional<std::size_t> find_valid_mask(const ColumnView& view);
/// True when a mask's row has data.
bool mask_value(const Array& mask, std::int64_t row);

/// The name without a unit in brackets behind it: "p_RS_R_x" for "p_RS_R_x [m]".
std::string name_without_unit(std::string_view name);

}  // namespace tmaops::recording
