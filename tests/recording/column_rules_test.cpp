// Which columns are quaternions, positions, angles and masks.
#include "recording/column_rules.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace tmaops::test {
namespace {

using recording::ChannelReference;
using recording::Column;
using recording::ColumnView;
using Names = std::vector<std::string>;

/// A column of (rows, width) reals, or of whole numbers of a text file.
Column column(const std::string& name, std::vector<double> values, std::int64_t width = 0) {
  Column made;
  made.name = name;
  const auto rows = static_cast<std::int64_t>(values.size()) / std::max<std::int64_t>(width, 1);
  made.data = recording::make_array(values, width == 0 ? std::vector{rows} : std::vector{rows, width});
  return made;
}
Column whole(const std::string& name, std::vector<std::int64_t> values, bool from_text = true) {
  Column made;
  made.name = name;
  made.data = recording::make_array(values, {static_cast<std::int64_t>(values.size())});
  made.from_text = from_text;
  return made;
}
/// One row of 1 0 0 0 under each name.
std::vector<Column> columns(const Names& names) {
  std::vector<Column> all;
  for (const std::string& name : names) all.push_back(column(name, {all.empty() ? 1.0 : 0.0}));
  return all;
}
Names found(const std::vector<recording::NamedVector>& vectors) {
  Names texts;
  for (const recording::NamedVector& vector : vectors) texts.push_back(vector.text);
  return texts;
}
Names quaternions(const std::vector<Column>& all) { return found(recording::find_quaternions({all})); }
Names positions(const std::vector<Column>& all) { return found(recording::find_positions({all})); }

TEST(ColumnRules, quaternions_are_found_by_the_names_of_each_recorder) {
  for (const Names& names :
       {Names{"qx", "qy", "qz", "qw"},
        {"q_RS_x []", "q_RS_y []", "q_RS_z []", "q_RS_w []"},
        {"pose.orientation.x", "pose.orientation.y", "pose.orientation.z", "pose.orientation.w"},
        {"field.pose.pose.orientation.x", "field.pose.pose.orientation.y", "field.pose.pose.orientation.z",
         "field.pose.pose.orientation.w"},
        {"orientation.x", "orientation.y", "orientation.z", "orientation.w"},
        {"orientation_x", "orientation_y", "orientation_z", "orientation_w"},
        {"transform.rotation.x", "transform.rotation.y", "transform.rotation.z", "transform.rotation.w"},
        {"left_qx", "left_qy", "left_qz", "left_qw"},
        {"left.qx", "left.qy", "left.qz", "left.qw"},
        {"Quat_X", "Quat_Y", "Quat_Z", "Quat_W"},
        {"quaternion_0", "quaternion_1", "quaternion_2", "quaternion_3"},
        {"quat[0]", "quat[1]", "quat[2]", "quat[3]"}}) {
    const auto all = columns(names);
    ASSERT_EQ(quaternions(all).size(), 1u) << names[0];
    const auto quaternion = recording::find_quaternions({all})[0];
    EXPECT_EQ(quaternion.components, (std::vector<ChannelReference>{{0, 0}, {1, 0}, {2, 0}, {3, 0}})) << names[0];
    EXPECT_FALSE(quaternion.w_first);
  }
}

TEST(ColumnRules, the_order_of_the_components_is_found) {
  const auto all = columns({"q_RS_w []", "q_RS_x []", "q_RS_y []", "q_RS_z []"});
  const auto quaternion = recording::find_quaternions({all}).at(0);
  EXPECT_EQ(quaternion.components, (std::vector<ChannelReference>{{1, 0}, {2, 0}, {3, 0}, {0, 0}}));
  EXPECT_TRUE(quaternion.w_first);
  EXPECT_TRUE(quaternion.order_named);
  EXPECT_FALSE(recording::find_quaternions({std::vector{column("eef_quat", {1, 0, 0, 0}, 4)}}).empty());
}

TEST(ColumnRules, several_quaternions_are_found_in_one_file) {
  const auto all =
      columns({"left_qx", "left_qy", "left_qz", "left_qw", "right_qx", "right_qy", "right_qz", "right_qw"});
  EXPECT_EQ(quaternions(all), (Names{"left_qx left_qy left_qz left_qw", "right_qx right_qy right_qz right_qw"}));
  const std::vector<Column> arrays{column("quat", {1, 0, 0, 0, 0, 1, 0, 0}, 8)};
  EXPECT_TRUE(quaternions(arrays).empty()) << "eight channels have no name as two quaternions";
}

TEST(ColumnRules, arrays_of_four_channels_are_quaternions_by_their_words) {
  for (const char* name :
       {"quat", "quaternion", "robot0_eef_quat", "eef_quat", "robot0_eef_quat_site", "observation/quat"})
    EXPECT_EQ(quaternions({column(name, {5, 0, 0, 0}, 4)}).size(), 1u) << name;
  // These words have other meanings: the values decide.
  for (const char* name : {"orientation", "rotation", "observation.orientation", "q"}) {
    EXPECT_EQ(quaternions({column(name, {0, 0.6, 0.8, 0, 0, 0, 0, 1}, 4)}).size(), 1u) << name;
    EXPECT_EQ(quaternions({column(name, {0, 0.6, 0.8, 3, 0, 0, 0, 5}, 4)}).size(), 0u) << name;
  }
  EXPECT_TRUE(quaternions({column("orientation", {0, 0, 1}, 3)}).empty());
  for (const char* name : {"a | b", "a : b"}) EXPECT_TRUE(quaternions({column(name, {5, 0, 0, 0}, 4)}).empty()) << name;
}

TEST(ColumnRules, the_name_of_an_array_may_end_with_the_order_of_its_numbers) {
  for (const char* name : {"quat_wxyz", "orientation_wxyz", "orientation_xyzw"}) {
    const std::vector<Column> all{column(name, {0, 0.6, 0.8, 0, 0, 0, 0, 1}, 4)};
    const auto quaternions = recording::find_quaternions({all});
    ASSERT_EQ(quaternions.size(), 1u) << name;
    const bool w_first = std::string(name).ends_with("wxyz");
    EXPECT_EQ(quaternions[0].order(), w_first ? "w x y z" : "x y z w") << name;
    EXPECT_EQ(quaternions[0].components[3].channel, w_first ? 0 : 3) << name;
  }
}

TEST(ColumnRules, what_is_no_quaternion_is_not_taken_for_one) {
  for (const Names& names : {Names{"qx", "qy", "qz"},
                             {"x", "y", "z", "w"},
                             {"q1", "q2", "q3", "q4"},
                             {"q_0", "q_1", "q_2", "q_3", "q_4", "q_5", "q_6"},
                             {"ax", "ay", "az", "aw"}})
    EXPECT_TRUE(quaternions(columns(names)).empty()) << names[0];
  auto text = columns({"qx", "qy", "qz", "qw"});
  text[1].data = recording::make_text_array(std::vector<std::string_view>{"0"});
  EXPECT_TRUE(quaternions(text).empty());
}

TEST(ColumnRules, whole_numbers_count_in_text_and_not_in_archives) {
  std::vector<Column> all{whole("qx", {0}), whole("qy", {0}), column("qz", {0.6}), column("qw", {0.8})};
  EXPECT_EQ(quaternions(all).size(), 1u);
  all[0].from_text = false;
  EXPECT_TRUE(quaternions(all).empty());
}

TEST(ColumnRules, positions_are_found_likewise) {
  for (const Names& names : {Names{"tx", "ty", "tz"},
                             {"px", "py", "pz"},
                             {"p_RS_R_x [m]", "p_RS_R_y [m]", "p_RS_R_z [m]"},
                             {"field.pose.pose.position.x", "field.pose.pose.position.y", "field.pose.pose.position.z"},
                             {"transform.translation.x", "transform.translation.y", "transform.translation.z"},
                             {"x", "y", "z"},
                             {"x", "y"}})
    EXPECT_EQ(positions(columns(names)).size(), 1u) << names[0];
  EXPECT_EQ(positions({column("robot0_eef_pos", {1, 2, 3}, 3)}), Names{"robot0_eef_pos"});
  EXPECT_TRUE(positions({column("robot0_joint_pos", {1, 2, 3}, 3)}).empty());
  EXPECT_TRUE(positions(columns({"vx", "vy", "vz"})).empty());
  EXPECT_TRUE(positions({whole("x", {1}), whole("y", {2})}).empty()) << "pixels are whole numbers";
  EXPECT_EQ(positions(columns({"tx", "ty", "tz", "x", "y", "z"})), Names{"tx ty tz"});
}

TEST(ColumnRules, four_neighbours_of_norm_1_are_found) {
  std::vector<double> pose, one_hot, constant;
  for (int i = 0; i < 20; ++i) {
    pose.insert(pose.end(), {1.0 * i, 2, 3, std::sin(0.1 * i), 0, 0, std::cos(0.1 * i)});
    one_hot.insert(one_hot.end(), {i % 2 == 0 ? 1.0 : 0, i % 2 == 0 ? 0.0 : 1, 0, 0});
    constant.insert(constant.end(), {0.6, 0, 0, 0.8});
  }
  const std::vector<Column> all{column("pose", pose, 7), column("class", one_hot, 4), column("bias", constant, 4)};
  const auto windows = recording::find_unit_quaternions({all}, {});
  ASSERT_EQ(windows.size(), 1u);
  EXPECT_EQ(windows[0], (std::vector<ChannelReference>{{0, 3}, {0, 4}, {0, 5}, {0, 6}}));
  EXPECT_TRUE(recording::find_unit_quaternions({all}, {{0, 5}}).empty());
}

TEST(ColumnRules, angles_are_found_by_name_and_their_unit_by_name_or_range) {
  for (const char* name : {"yaw", "Heading [deg]", "vehicle_yaw", "vehicleYaw", "base.theta", "yaw_deg", "THETA (rad)",
                           "imu.roll", "course [deg]", "bearing", "azimuth_deg", "longitude"})
    EXPECT_TRUE(recording::named_angle(name)) << name;
  for (const char* name : {"yaw_rate", "heading_error", "thetas", "lawyaw", "x"})
    EXPECT_FALSE(recording::named_angle(name)) << name;
  const auto rule = [](const std::string& name, std::vector<double> values, double turn = 0) {
    const auto rows = static_cast<std::int64_t>(values.size());
    return recording::find_angle_rule({std::vector{column(name, std::move(values))}}, {0, 0}, {0, rows}, turn);
  };
  EXPECT_EQ(rule("yaw", {3, -3})->turn, 2 * std::numbers::pi);
  EXPECT_TRUE(rule("yaw", {3, -3})->jumps);
  EXPECT_EQ(rule("yaw", {3, -3})->low, -std::numbers::pi);
  EXPECT_EQ(rule("yaw", {350, 10})->turn, 360);
  EXPECT_EQ(rule("yaw", {350, 10})->low, 0);
  EXPECT_EQ(rule("yaw [deg]", {1, 2})->turn, 360);
  EXPECT_FALSE(rule("yaw", {1, 2})->jumps);
  EXPECT_FALSE(rule("yaw", {1, 2000}).has_value());
  EXPECT_EQ(rule("yaw", {1, 2000}, 360)->low, std::nullopt);
}

TEST(ColumnRules, numbers_of_an_array_have_the_roles_of_their_own_names) {
  std::vector<Column> all{column("observation.state", {1, 2, 3, 0, 0, 0, 1, 0.5, 1, 2, 3, 0, 0, 1, 0, 0.5}, 8)};
  all[0].channel_names = {"x", "y", "z", "qx", "qy", "qz", "qw", "gripper"};
  EXPECT_EQ(found(recording::find_quaternions({all})), Names{"observation.state[3:7]"});
  EXPECT_EQ(found(recording::find_positions({all})), Names{"observation.state[0:3]"});
}

TEST(ColumnRules, what_the_names_of_numbers_say_of_an_array_is_said_once) {
  std::vector<Column> all{column("pose.rotation", {0, 0, 0, 1, 0, 0, 1, 0}, 4), column("position", {1, 2, 3}, 3)};
  all[0].channel_names = {"qx", "qy", "qz", "qw"};
  all[1].channel_names = {"x", "y", "z"};
  ASSERT_EQ(recording::find_quaternions({all}).size(), 1u);
  EXPECT_EQ(recording::find_quaternions({all})[0].order(), "x y z w");
  EXPECT_EQ(recording::find_positions({all}).size(), 1u);
}

TEST(ColumnRules, components_may_stand_in_front_of_names_of_frames) {
  const Names names{"tx_world_device", "ty_world_device", "tz_world_device", "qx_world_device",
                    "qy_world_device", "qz_world_device", "qw_world_device"};
  EXPECT_EQ(found(recording::find_quaternions({columns(names)})),
            Names{"qx_world_device qy_world_device qz_world_device qw_world_device"});
}

TEST(ColumnRules, px4_writes_w_first) {
  const std::vector<Column> all = columns({"q[0]", "q[1]", "q[2]", "q[3]"});
  const auto quaternions = recording::find_quaternions({all});
  ASSERT_EQ(quaternions.size(), 1u);
  EXPECT_EQ(quaternions[0].components[3].column, 0u);
  EXPECT_NE(quaternions[0].order().find("PX4"), std::string_view::npos);
}

TEST(ColumnRules, a_mask_is_a_column_valid_of_zeros_and_ones) {
  EXPECT_EQ(recording::find_valid_mask({std::vector{whole("x", {3, 4}), whole("valid", {0, 1})}}), 1u);
  EXPECT_EQ(recording::find_valid_mask({std::vector{whole("valid", {0, 2})}}), std::nullopt);
  EXPECT_EQ(recording::find_valid_mask({std::vector{whole("is_valid", {0, 1})}}), std::nullopt);
}

TEST(ColumnRules, flags_of_a_first_step_are_told_from_those_of_what_happened) {
  for (const char* name : {"is_first", "steps.is_first"}) {
    EXPECT_TRUE(recording::named_first(name)) << name;
    EXPECT_FALSE(recording::named_flag(name)) << name;
  }
  for (const char* name : {"is_last", "next.done", "terminated", "success"}) {
    EXPECT_TRUE(recording::named_flag(name)) << name;
    EXPECT_FALSE(recording::named_first(name)) << name;
  }
  EXPECT_FALSE(recording::named_first("first"));
}

}  // namespace
}  // namespace tmaops::test
