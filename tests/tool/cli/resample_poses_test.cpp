// `tmaops resample` on poses and angles as recorders write them.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "cli/resample_fixture.hpp"

namespace tmaops::test {
namespace {

using Values = std::vector<double>;

class ResamplePoses : public ResampleCommandTest {
 protected:
  /// The norm of four columns in a row of the result.
  static double norm(const io::Recording& recording, const std::vector<std::string>& names, std::size_t row) {
    double sum = 0;
    for (const std::string& name : names) sum += values(recording, name).at(row) * values(recording, name).at(row);
    return std::sqrt(sum);
  }
  io::Recording at(const std::string& in, const std::string& times, std::vector<std::string> more = {},
                   const char* out = "out.npz") {
    more.insert(more.begin(), {in, "-o", path(out), "--times", file("at.txt", times), "--force"});
    return expect_done(more, path(out));
  }
};

const char* kPlanar = "timestamp,tx,ty,tz,qx,qy,qz,qw\n0.0,0,0,0,0,0,0,1\n1.0,1.5,0.5,0,0,0,0.9,0.436\n";

TEST_F(ResamplePoses, a_planar_drive_written_with_whole_zeros_is_slerped) {
  const auto done = at(file("p.csv", kPlanar), "0.5\n");
  EXPECT_NEAR(values(done, "qz").at(0), 0.5310465735, 1e-9);
  EXPECT_NEAR(values(done, "qw").at(0), 0.8473426324, 1e-9);
  EXPECT_EQ(values(done, "tx"), Values{0.75});
  EXPECT_EQ(values(done, "tz"), Values{0});
  expect_text(last.err, "whole numbers read as real ones: qx, qy, tz", "qx slerp", "quaternion: qx qy qz qw (x y z w)");
}

TEST_F(ResamplePoses, a_planar_drive_becomes_the_same_trajectory_from_csv_and_tum) {
  const std::string csv = file("p.csv", kPlanar);
  const std::string tum = file("p.tum", "0 0 0 0 0 0 0 1\n1 1.5 0.5 0 0 0 0.9 0.436\n");
  expect_done({csv, "-o", path("a.tum"), "--hz", "8"}, path("a.tum"));
  expect_done({tum, "-o", path("b.tum"), "--hz", "8"}, path("b.tum"));
  EXPECT_EQ(read_all(path("a.tum")), read_all(path("b.tum")));
}

TEST_F(ResamplePoses, quaternions_are_recognised_by_the_names_of_recorders) {
  const std::string values_text = "\n0.0,0.0,0.0,0.1,0.995\n1.0,0.0,0.0,-0.1,-0.995\n";
  const std::vector<std::vector<std::string>> names{
      {"pose.orientation.x", "pose.orientation.y", "pose.orientation.z", "pose.orientation.w"},
      {"orientation_x", "orientation_y", "orientation_z", "orientation_w"},
      {"left_qx", "left_qy", "left_qz", "left_qw"}};
  for (const auto& four : names) {
    std::string header = "time";
    for (const std::string& name : four) header += "," + name;
    const auto done = at(file("in.csv", header + values_text), "0.5\n");
    EXPECT_NEAR(norm(done, four, 0), 1, 1e-12) << last.err;
  }
  const auto euroc =
      at(file("e.csv", "#timestamp [ns],q_RS_w [],q_RS_x [],q_RS_y [],q_RS_z []\n0,1,0,0,0\n10,-0.6,0,0,-0.8\n"),
         "0.000000005\n");
  EXPECT_NEAR(norm(euroc, {"q_RS_w []", "q_RS_x []", "q_RS_y []", "q_RS_z []"}, 0), 1, 1e-12);
  expect_text(last.err, "(w x y z)");
}

TEST_F(ResamplePoses, arrays_named_like_quaternions_are_slerped) {
  const std::string two = raw<double>({0, 0, 0.1, 0.995, 0, 0, -0.1, -0.995});
  for (const char* name : {"quat", "eef_quat", "robot0_eef_quat", "orientation", "rotation"}) {
    const auto done =
        at(archive("in.npz", {{"t", npy("<f8", "(2,)", raw<double>({0, 1}))}, {name, npy("<f8", "(2, 4)", two)}}),
           "0.5\n");
    const Values q = values(done, name);
    ASSERT_EQ(q.size(), 4u);
    EXPECT_NEAR(q[2] * q[2] + q[3] * q[3], 1, 1e-12) << name;
    expect_text(last.err, std::string("quaternion: ") + name + " (x y z w assumed)");
  }
}

TEST_F(ResamplePoses, quaternion_stands_for_every_one_that_is_recognised) {
  const std::string in =
      file("in.csv",
           "t_s,left_qx,left_qy,left_qz,left_qw,orientation.x,orientation.y,orientation.z,orientation.w\n"
           "0,0,0,0,1,0,0,0,1\n1,0,0,1,0,0,0,1,0\n");
  const auto held = at(in, "0.5\n", {"--mode", "quaternion=previous"});
  EXPECT_EQ(values(held, "left_qw"), Values{1});
  EXPECT_EQ(values(held, "orientation.w"), Values{1});
  const auto turned = at(in, "0.5\n", {"--mode", "linear", "--mode", "quaternion=slerp"});
  EXPECT_NEAR(values(turned, "left_qw").at(0), std::sqrt(0.5), 1e-12);
  EXPECT_EQ(last.err.find("warning"), std::string::npos) << last.err;
}

TEST_F(ResamplePoses, a_mode_makes_whole_numbers_of_text_real_ones) {
  const std::string in = file("in.csv", "t,n,a,b,c,d\n0,0,0,0,0,1\n1,3,0,0,1,0\n");
  EXPECT_EQ(values(at(in, "0.5\n", {}), "n"), Values{0});
  EXPECT_EQ(values(at(in, "0.5\n", {"--mode", "n=linear"}), "n"), Values{1.5});
  EXPECT_EQ(values(at(in, "0.5\n", {"--mode", "n=cubic"}), "n"), Values{1.5});
  EXPECT_NEAR(values(at(in, "0.5\n", {"--mode", "a,b,c,d=slerp"}), "c").at(0), std::sqrt(0.5), 1e-12);
}

TEST_F(ResamplePoses, integers_of_an_archive_stay_integers) {
  const std::string in = archive(
      "in.npz", {{"t", npy("<f8", "(2,)", raw<double>({0, 1}))}, {"n", npy("<i8", "(2,)", raw<std::int64_t>({0, 3}))}});
  expect_refused(ErrorCode::bad_column_mode, {in, "-o", path("o.npz"), "--hz", "2", "--mode", "n=linear"},
                 {"integers"});
}

TEST_F(ResamplePoses, four_columns_of_norm_1_that_nobody_named_are_a_warning) {
  std::string csv = "t_s,a,b,c,d\n";
  for (int i = 0; i < 30; ++i)
    csv += std::to_string(i) + ",0," + std::to_string(std::sin(0.1 * i)) + ",0," + std::to_string(std::cos(0.1 * i)) +
           "\n";
  const std::string in = file("in.csv", csv);
  at(in, "0.5\n");
  expect_text(last.err, "warning: the norm of a,b,c,d is 1 in nearly every row", "--mode 'a,b,c,d=slerp'");
  at(in, "0.5\n", {"--mode", "a,b,c,d=slerp"});
  EXPECT_EQ(last.err.find("warning"), std::string::npos) << last.err;
  expect_refused(ErrorCode::warnings_refused, {in, "-o", path("s.csv"), "--hz", "2", "--strict"}, {"a,b,c,d"});
}

TEST_F(ResamplePoses, a_quaternion_that_is_not_slerped_or_has_no_norm_of_1_is_a_warning) {
  at(file("p.csv", kPlanar), "0.5\n", {"--mode", "linear"});
  expect_text(last.err, "warning: the quaternion qx qy qz qw is interpolated linear", "--mode quaternion=slerp");
  at(file("q.csv", "t,qx,qy,qz,qw\n0,0,0,0,1\n1,0,0,0,2\n"), "0.5\n");
  expect_text(last.err, "warning: the norm of the quaternion qx qy qz qw goes from 1 to 2");
}

TEST_F(ResamplePoses, warnings_stay_when_the_summary_is_silenced) {
  at(file("p.csv", kPlanar), "0.5\n", {"--mode", "linear", "--quiet"});
  EXPECT_EQ(last.err.find("warning: "), 0u) << last.err;
  EXPECT_EQ(last.err.find("modes:"), std::string::npos) << last.err;
  at(file("p.csv", kPlanar), "0.5\n", {"--mode", "linear", "--json"});
  EXPECT_EQ(nlohmann::json::parse(last.out)["warnings"].size(), 1u) << last.out;
}

TEST_F(ResamplePoses, angles_turn_the_shorter_way) {
  const std::string in = file("in.csv", "t,yaw,heading_deg,roll\n0,3.0,350,3.0\n1,-3.0,10.0,-3.0\n2,-2.9,20.0,-2.9\n");
  auto done = at(in, "0.25\n0.5\n1.5\n");
  const double turn = 2 * std::numbers::pi, step = turn - 6;
  EXPECT_NEAR(values(done, "yaw").at(0), 3 + step / 4, 1e-12);
  EXPECT_NEAR(std::abs(values(done, "yaw").at(1)), turn / 2, 1e-12);
  EXPECT_NEAR(values(done, "yaw").at(2), -2.95, 1e-12);
  EXPECT_NEAR(values(done, "heading_deg").at(0), 355, 1e-12);
  EXPECT_NEAR(values(done, "heading_deg").at(2), 15, 1e-12);
  EXPECT_NEAR(std::abs(values(done, "roll").at(1)), turn / 2, 1e-12);
  expect_text(last.err, "angle: yaw in rad by its range", "angle: heading_deg in deg by its name");
  done = at(in, "0.5\n", {"--mode", "roll=linear", "--mode", "yaw=linear"});
  EXPECT_EQ(values(done, "roll").at(0), 0);
  EXPECT_EQ(values(done, "yaw").at(0), 0);
}

TEST_F(ResamplePoses, what_jumps_by_a_turn_is_taken_for_an_angle_and_said) {
  std::string csv = "t,phase,noise\n";
  for (int i = 0; i < 20; ++i)
    csv += std::to_string(i) + "," + std::to_string((350 + 3 * i) % 360) + "," + (i % 2 == 0 ? "0.5" : "300.5") + "\n";
  const std::string in = file("in.csv", csv + "20,50.5,0.5\n");
  const auto done = at(in, "3.5\n");
  EXPECT_NEAR(values(done, "phase").at(0), 0.5, 1e-12);
  EXPECT_NEAR(values(done, "noise").at(0), 150.5, 1e-12);
  expect_text(last.err, "'phase' jumps by a turn and was taken for an angle in deg", "--mode 'phase=linear'");
}

TEST_F(ResamplePoses, a_clock_that_is_behind_is_corrected) {
  const std::string in = file("in.csv", "t,x\n0,0.5\n1,1.5\n");
  const auto done = at(in, "100.5\n", {"--offset", "100"});
  EXPECT_NEAR(values(done, "x").at(0), 1.0, 1e-12);
}

TEST_F(ResamplePoses, rows_of_a_pose_matrix_are_said_to_lose_their_rotation) {
  std::string csv = "t,r11,r12,r13,tx,r21,r22,r23,ty,r31,r32,r33,tz\n";
  for (int i = 0; i < 5; ++i) {
    const double c = std::cos(0.3 * i), s = std::sin(0.3 * i);
    csv += std::to_string(i) + "," + std::to_string(c) + "," + std::to_string(-s) + ",0.0,1.5," + std::to_string(s) +
           "," + std::to_string(c) + ",0.0,2.5,0.0,0.0,1.0,3.5\n";
  }
  at(file("in.csv", csv), "0.5\n");
  expect_text(last.err, "the rows of a pose matrix");
}

TEST_F(ResamplePoses, the_unit_of_an_angle_can_be_named) {
  const std::string in = file("in.csv", "t,a\n0,0.5\n1,359.5\n2,7200.0\n");
  expect_refused(ErrorCode::usage, {in, "-o", path("o.csv"), "--hz", "2", "--mode", "a=angle"},
                 {"more than a turn", "angle:deg"});
  EXPECT_NEAR(values(at(in, "0.5\n", {"--mode", "a=angle:deg"}), "a").at(0), 0, 1e-12);
  const std::string small = file("small.csv", "t,a\n0,0.5\n1,-3.0\n2,6.0\n");
  EXPECT_NEAR(values(at(small, "0.5\n", {"--mode", "a=angle:deg"}), "a").at(0), -1.25, 1e-12);
  expect_refused(ErrorCode::usage, {in, "-o", path("o.csv"), "--hz", "2", "--mode", "angle"}, {"yaw=angle"});
}

}  // namespace
}  // namespace tmaops::test
