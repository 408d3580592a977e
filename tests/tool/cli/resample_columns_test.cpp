// `tmaops resample`: choosing and renaming columns, trajectories from other files, and the mask of rows without data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/resample_fixture.hpp"
#include "io/npz.hpp"

namespace tmaops::test {
namespace {

using Values = std::vector<double>;

class ResampleColumns : public ResampleCommandTest {
 protected:
  io::Recording run(const std::string& in, std::vector<std::string> more, const char* out) {
    more.insert(more.begin(), {in, "-o", path(out), "--force"});
    return expect_done(more, path(out));
  }
  /// What the output is as text.
  std::string text(const std::string& in, std::vector<std::string> more, const char* out = "out.csv") {
    run(in, std::move(more), out);
    return read_all(path(out));
  }
};

TEST_F(ResampleColumns, columns_are_chosen_renamed_and_put_in_order) {
  const std::string in = file("in.csv", "t,x,y [m],z,task\n0,0.5,1.5,2.5,a\n");
  EXPECT_EQ(text(in, {"--hz", "1", "--columns", "z,x"}), "t,z,x\n0,2.5,0.5\n");
  EXPECT_EQ(text(in, {"--hz", "1", "--columns", "b=y,label=task,time=t"}), "b,label,time\n1.5,a,0\n");
  EXPECT_EQ(text(in, {"--hz", "1", "--columns", "x..y [m]"}), "t,x,y [m]\n0,0.5,1.5\n");
  EXPECT_EQ(text(in, {"--hz", "1", "--columns", "2,n=4"}), "t,x,n\n0,0.5,2.5\n");
  EXPECT_EQ(text(in, {"--hz", "1", "--columns", "task,*"}), "t,task,x,y [m],z\n0,a,0.5,1.5,2.5\n");
  EXPECT_EQ(text(in, {"--hz", "1", "--columns", "up=z", "--mode", "up=previous"}), "t,up\n0,2.5\n");
  const auto refuse = [&](const std::string& list, std::initializer_list<std::string> pieces) {
    expect_refused(ErrorCode::usage, {in, "-o", path("no.csv"), "--hz", "1", "--columns", list}, pieces);
  };
  refuse("w", {"no columns 'w'", "one of: x, y [m], z, task"});
  refuse("a=x,a=z", {"two columns named 'a'"});
  refuse("a=x..z", {"one name for several columns"});
  refuse("=x", {"an empty name"});
}

TEST_F(ResampleColumns, rows_of_each_value_of_a_group_are_an_episode) {
  const std::string rows = "0,2,cup,10,8.5\n0,1,box,0,9.5\n1,2,cup,20,8.5\n1,1,box,4,9.5\n2,1,box,8,9.5\n";
  const std::string in = file("in.csv", "t,id,name,x,y\n" + rows);
  EXPECT_EQ(text(in, {"--hz", "2", "--group", "name", "--mode", "x=linear", "--columns", "name,x"}),
            "t,name,x\n0.0,cup,10.0\n0.5,cup,15.0\n1.0,cup,20.0\n"
            "0.0,box,0.0\n0.5,box,2.0\n1.0,box,4.0\n1.5,box,6.0\n2.0,box,8.0\n");
  EXPECT_NE(last.err.find("8 rows from 5 samples, 2 episodes"), std::string::npos) << last.err;
  // Again from its own output, by numbers, and with targets that an episode does not reach.
  EXPECT_EQ(text(path("out.csv"), {"--hz", "1", "--group", "name"}, "again.csv"),
            "t,name,x\n0,cup,10.0\n1,cup,20.0\n0,box,0.0\n1,box,4.0\n2,box,8.0\n");
  const std::string times = file("times.txt", "0\n2\n");
  EXPECT_EQ(text(in, {"--times", times, "--group", "id", "--columns", "id,y", "--outside", "nan"}),
            "t,id,y\n0,2,8.5\n2,2,nan\n0,1,9.5\n2,1,9.5\n");
  expect_refused(ErrorCode::duplicate_times, {in, "-o", path("no.csv"), "--hz", "2"}, {"pass --group 'id'"});
  const std::string after = file("after.csv", "t,name,x\n0,cup,1\n1,cup,2\n0,box,1\n1,box,2\n");
  expect_refused(ErrorCode::times_not_sorted, {after, "-o", path("no.csv"), "--hz", "2"}, {"pass --group 'name'"});
  const auto refuse = [&](const std::string& name, std::initializer_list<std::string> pieces) {
    expect_refused(ErrorCode::usage, {in, "-o", path("no.csv"), "--hz", "2", "--group", name}, pieces);
  };
  refuse("person", {"--group person", "no such column", "one of id, name, x, y"});
  refuse("y", {"--group y", "a column of text, whole numbers or booleans"});
  expect_refused(ErrorCode::bad_parameter, {in, "-o", path("no.csv"), "--hz", "2", "--group", "name", "--columns", "x"},
                 {"2 episodes", "csv with the column of --group"});
}

TEST_F(ResampleColumns, channels_of_an_array_become_columns) {
  const std::string in = archive("in.npz", {{"t", npy("<f8", "(2,)", raw<double>({0, 1}))},
                                            {"state", npy("<f4", "(2, 3)", raw<float>({1, 2, 3, 3, 4, 5}))},
                                            {"camera", npy("<f8", "(3,)", raw<double>({7, 8, 9}))}});
  EXPECT_EQ(text(in, {"--hz", "2", "--columns", "a=state[1],b=state[0]"}),
            "t,a,b\n0.0,2.0,1.0\n0.5,3.0,2.0\n1.0,4.0,3.0\n");
  run(in, {"--hz", "1", "--columns", "tail=state[1:3],lens=camera"}, "out.npz");
  const io::NpzReader npz(path("out.npz"));
  EXPECT_EQ(npz.read("tail").text(), "(2, 2) <f4");
  EXPECT_EQ(npz.read("lens").text(), "(3,) <f8");
  EXPECT_EQ(std::ranges::count(npz.names(), "state"), 0);
}

const char* kEuroc =
    "#timestamp [ns],p_RS_R_x [m],p_RS_R_y [m],p_RS_R_z [m],q_RS_w [],q_RS_x [],q_RS_y [],q_RS_z [],v_RS_R_x [m s^-1]\n"
    "1403715523912140000,1.5,2.5,3.5,0.8,0,0,0.6,9.5\n"
    "1403715524912140000,2.5,2.5,3.5,0.8,0,0,0.6,9.5\n";

TEST_F(ResampleColumns, a_euroc_table_becomes_a_tum_trajectory) {
  EXPECT_EQ(text(file("data.csv", kEuroc), {"--hz", "2"}, "out.txt"),
            "# timestamp tx ty tz qx qy qz qw\n"
            "1403715523.91214 1.5 2.5 3.5 0.0 0.0 0.6 0.8\n"
            "1403715524.41214 2.0 2.5 3.5 0.0 0.0 0.6 0.8\n"
            "1403715524.91214 2.5 2.5 3.5 0.0 0.0 0.6 0.8\n");
  expect_text(last.err,
              "pose: p_RS_R_x [m] p_RS_R_y [m] p_RS_R_z [m] and q_RS_w [] q_RS_x [] q_RS_y [] q_RS_z [] (w first)",
              "left out", "v_RS_R_x");
  EXPECT_EQ(text(file("data.csv", kEuroc), {"--hz", "1", "--columns", "tx=p_RS_R_x,qw=q_RS_w,*"}),
            "#timestamp [ns],tx,qw,p_RS_R_y [m],p_RS_R_z [m],q_RS_x [],q_RS_y [],q_RS_z [],v_RS_R_x [m s^-1]\n"
            "1403715523912140000,1.5,0.8,2.5,3.5,0.0,0.0,0.6,9.5\n"
            "1403715524912140000,2.5,0.8,2.5,3.5,0.0,0.0,0.6,9.5\n");
}

TEST_F(ResampleColumns, a_quaternion_stays_one_when_some_of_its_columns_are_renamed) {
  const std::string in = file("in.csv", "t,qx,qy,qz,qw\n0,0,0,0,1\n1,0,0,1,0\n");
  const auto done = run(in, {"--hz", "2", "--columns", "t,a=qw,b=qx,*"}, "out.csv");
  EXPECT_NEAR(values(done, "a")[1], std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(values(done, "qz")[1], std::sqrt(0.5), 1e-12);
}

TEST_F(ResampleColumns, a_trajectory_takes_the_one_pose_there_is) {
  const std::string robot =
      archive("robot.npz", {{"t", npy("<f8", "(1,)", raw<double>({0}))},
                            {"robot0_eef_pos", npy("<f8", "(1, 3)", raw<double>({1.5, 2.5, 3.5}))},
                            {"robot0_eef_quat", npy("<f8", "(1, 4)", raw<double>({0.6, 0, 0, 0.8}))}});
  EXPECT_EQ(text(robot, {"--hz", "1"}, "out.txt"), "# timestamp tx ty tz qx qy qz qw\n0 1.5 2.5 3.5 0.6 0.0 0.0 0.8\n");
  expect_text(last.err, "pose: robot0_eef_pos and robot0_eef_quat (x y z w assumed)");
  const std::string two = file("two.csv",
                               "t,left_tx,left_ty,left_tz,left_qx,left_qy,left_qz,left_qw,right_tx,right_ty,right_tz,"
                               "right_qx,right_qy,right_qz,right_qw\n0,1,2,3,0,0,0,1,4,5,6,0,0,0,1\n");
  expect_refused(ErrorCode::bad_parameter, {two, "-o", path("no.txt"), "--hz", "1"},
                 {"more than one pose", "left_tx", "--columns"});
  EXPECT_EQ(text(two, {"--hz", "1", "--columns", "right_tx..right_qw"}, "out.txt"),
            "# timestamp tx ty tz qx qy qz qw\n0 4.0 5.0 6.0 0.0 0.0 0.0 1.0\n");
}

TEST_F(ResampleColumns, rows_that_an_earlier_run_found_without_data_are_no_samples) {
  const std::string gap =
      file("gap.csv", "t,x,qx,qy,qz,qw,n\n0,0.0,0,0,0,1,1\n1,1.0,0,0,0,1,2\n5,5.0,0,0,0,1,3\n6,6.0,0,0,0,1,4\n");
  run(gap, {"--hz", "1", "--max-gap", "2"}, "a.npz");
  const auto again = run(path("a.npz"), {"--hz", "2"}, "b.npz");
  EXPECT_EQ(values(again, "valid"), (Values{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(values(again, "x")[1], 0.5);
  EXPECT_TRUE(std::isnan(values(again, "x")[5]));
  EXPECT_EQ(values(again, "n"), (Values{1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3, 3, 4}));
  expect_text(last.err, "3 of 7 samples have no data (their 'valid' is 0); 7 of 13 targets lie beside them");
  run(path("b.npz"), {"--hz", "1", "--json"}, "c.npz");
  EXPECT_EQ(nlohmann::json::parse(last.out)["missing"]["samples"], 7);
  const io::NpzReader npz(path("c.npz"));
  EXPECT_EQ(std::ranges::count(npz.names(), "valid_2"), 0);
  EXPECT_EQ(values(io::read_recording(path("c.npz")), "valid"), (Values{1, 1, 0, 0, 0, 1, 1}));
  const auto text_rows = run(path("a.npz"), {"--hz", "1"}, "d.csv");
  EXPECT_EQ(values(text_rows, "x"), (Values{0, 1, 5, 6}));
}

TEST_F(ResampleColumns, a_mask_of_text_or_one_that_is_chosen_away_counts_all_the_same) {
  const std::string in = file("in.csv", "t,x,valid\n0,0.0,true\n1,99.0,false\n2,2.0,true\n3,3.0,true\n");
  EXPECT_EQ(values(run(in, {"--hz", "2"}, "out.csv"), "x"), (Values{0, 2, 2.5, 3}));
  EXPECT_EQ(values(run(in, {"--hz", "2", "--columns", "x"}, "out.csv"), "x"), (Values{0, 2, 2.5, 3}));
  EXPECT_EQ(values(run(in, {"--hz", "2"}, "out.npz"), "valid"), (Values{1, 0, 0, 0, 1, 1, 1}));
  expect_refused(ErrorCode::empty_trajectory,
                 {file("none.csv", "t,x,valid\n0,0.0,0\n1,1.0,0\n"), "-o", path("no.csv"), "--hz", "1"}, {"'valid'"});
  const std::string other = file("other.csv", "t,x,valid\n0,0.0,7\n1,1.0,8\n");
  EXPECT_EQ(values(run(other, {"--hz", "1"}, "out.csv"), "valid"), (Values{7, 8})) << "no mask: a column like others";
}

TEST_F(ResampleColumns, a_kitti_trajectory_takes_its_stamps_from_another_file) {
  const std::string poses = file("poses.txt", "1 0 0 1.5 0 1 0 2.5 0 0 1 3.5\n1 0 0 2.5 0 1 0 2.5 0 0 1 3.5\n");
  const std::string times = file("times.txt", "0.000000e+00\n1.000000e+00\n");
  EXPECT_EQ(text(poses, {"--kitti-times", times, "--hz", "2", "--to", "tum"}, "out.txt"),
            "# timestamp tx ty tz qx qy qz qw\n0.0 1.5 2.5 3.5 0.0 0.0 0.0 1.0\n0.5 2.0 2.5 3.5 0.0 0.0 0.0 1.0\n"
            "1.0 2.5 2.5 3.5 0.0 0.0 0.0 1.0\n");
  last =
      resample({path("out.txt"), "--hz", "1", "--to", "kitti", "--write-times", path("t.txt"), "-o", path("back.txt")});
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(read_all(path("back.txt")),
            "1.0 0.0 0.0 1.5 0.0 1.0 0.0 2.5 0.0 0.0 1.0 3.5\n1.0 0.0 0.0 2.5 0.0 1.0 0.0 2.5 0.0 0.0 1.0 3.5\n");
  EXPECT_EQ(read_all(path("t.txt")), "0\n1\n");
  expect_refused(ErrorCode::usage,
                 {poses, "--kitti-times", times, "-o", path("no.csv"), "--hz", "1", "--write-times", path("n.txt")},
                 {"--write-times", "--to kitti"});
  expect_refused(
      ErrorCode::usage,
      {file("in.csv", "t,x\n0,1.5\n"), "--from", "csv", "-o", path("no.csv"), "--hz", "1", "--kitti-times", times},
      {"--kitti-times", "--from kitti"});
}

}  // namespace
}  // namespace tmaops::test
