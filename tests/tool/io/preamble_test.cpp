// What recorders write above the table of a text file, in small files of their layouts.
#include "io/preamble.hpp"

#include <algorithm>

#include "io/recording.hpp"
#include "support/scratch.hpp"

namespace tmaops::io {
namespace {

using test::Scratch;
using NameList = std::vector<std::string>;

NameList column_names(const Recording& recording) {
  NameList names;
  for (const Column& column : recording.columns) names.push_back(column.name);
  return names;
}

class PreambleTest : public testing::Test {
 protected:
  Recording read(const std::string& name, const std::string& text, const ReadOptions& options = {}) {
    return read_recording(folder.file(name, text), options);
  }
  Scratch folder;
};

void expect_said(const Recording& recording, const std::string& text) {
  ASSERT_EQ(recording.notes.size(), 1U);
  EXPECT_EQ(recording.notes[0].id, "lines_skipped");
  EXPECT_EQ(recording.notes[0].text, text);
}

TEST_F(PreambleTest, names_of_motive_are_those_of_bodies_with_their_parts) {
  const Recording recording = read("a.csv",
                                   "Format Version,1.23,Take Name,walk,Rotation Type,Quaternion\r\n"
                                   "\r\n"
                                   ",Type,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Rigid Body,Marker\r\n"
                                   ",Name,\"box\",\"box\",\"box\",\"box\",\"box\",\"box:Marker1\"\r\n"
                                   ",ID,\"1\",\"1\",\"1\",\"1\",\"1\",\"2\"\r\n"
                                   ",,Rotation,Rotation,Rotation,Rotation,Position,Position\r\n"
                                   "Frame,Time (Seconds),X,Y,Z,W,X,X\r\n"
                                   "0,0.000000,0.0,0.0,0.6,0.8,1.5,2.5\r\n"
                                   "1,0.008333,0.0,0.0,0.6,-0.8,1.5,\r\n");
  EXPECT_EQ(column_names(recording), (NameList{"Frame", "box.Rotation.X", "box.Rotation.Y", "box.Rotation.Z",
                                               "box.Rotation.W", "box.Position.X", "box:Marker1.Position.X"}));
  EXPECT_EQ(recording.times, (std::vector<std::int64_t>{0, 8'333'000}));
  EXPECT_EQ(recording.time.name, "Time (Seconds)");
  EXPECT_EQ(recording.time.unit_source, UnitSource::name);
  EXPECT_EQ(recording.columns[6].missing, 1);
  EXPECT_EQ(find_quaternions({recording.columns}).size(), 1U);
  EXPECT_EQ(recording.lines, (std::vector<std::int64_t>{8, 9}));
  expect_said(recording, "7 lines above the data are those of OptiTrack Motive");
}

TEST_F(PreambleTest, lines_of_an_xsens_recorder_are_comments_and_ticks_are_tenths_of_milliseconds) {
  const std::string text =
      "// Start Time: Unknown\n// Update Rate: 100.0Hz\n// Filter Profile: human (46.1)\n\n"
      "PacketCounter\tSampleTimeFine\tQuat_q0\tQuat_q1\tQuat_q2\tQuat_q3\tAcc_X\n"
      "5\t1000\t1.0\t0.0\t0.0\t0.0\t0.5\n6\t1100\t0.8\t0.0\t0.0\t0.6\t0.75\n";
  const Recording recording = read("MT_0120.txt", text);
  EXPECT_EQ(recording.times, (std::vector<std::int64_t>{100'000'000, 110'000'000}));
  EXPECT_EQ(recording.time.name, "SampleTimeFine_us");
  EXPECT_EQ(column_names(recording).front(), "PacketCounter");
  EXPECT_EQ(column_names(recording).back(), "Acc_X");
  expect_said(recording, "4 lines above the header are those of Xsens MT Manager");
  EXPECT_EQ(read("b.txt", text, {.unit = TimeUnit::microseconds}).times[0], 1'000'000);  // asked for
}

TEST_F(PreambleTest, a_movella_dot_counts_microseconds) {
  const Recording recording = read("dot.csv",
                                   "sep=,\nDeviceTag:,xsens DOT 1\nFirmwareVersion:,2.0.0\nOutputRate:,60Hz\n \n"
                                   "PacketCounter,SampleTimeFine,Quat_W,Quat_X,Quat_Y,Quat_Z,\n"
                                   "0,16667,1.0,0.0,0.0,0.0,\n1,33334,0.8,0.0,0.0,0.6,\n");
  EXPECT_EQ(recording.times, (std::vector<std::int64_t>{16'667'000, 33'334'000}));
  EXPECT_EQ(find_quaternions({recording.columns}).size(), 1U);
  expect_said(recording, "5 lines above the header are those of Movella DOT");
}

TEST_F(PreambleTest, tables_of_opensim_begin_below_endheader) {
  const std::string text =
      "Coordinates\nversion=1\nnRows=2\nnColumns=3\ninDegrees=yes\n\nUnits are S.I. units\n\nendheader\n"
      "time\tpelvis_tilt\thip_flexion_r\n      0.00000000\t     -1.50000000\t      2.00000000\n0.01\t-1.25\t2.5\n";
  for (const char* name : {"ik.mot", "ik.sto"}) {
    const Recording recording = read(name, text);
    EXPECT_EQ(recording.times, (std::vector<std::int64_t>{0, 10'000'000}));
    EXPECT_EQ(column_names(recording), (NameList{"pelvis_tilt", "hip_flexion_r"}));
    expect_said(recording, "9 lines above the header are those of OpenSim");
  }
}

TEST_F(PreambleTest, coordinates_of_opensim_have_the_names_of_their_markers) {
  const Recording recording =
      read("walk.trc",
           "PathFileType\t4\t(X/Y/Z)\twalk.trc\nDataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\n60\t60\t2\t2\tmm\n"
           "Frame#\tTime\tR.ASIS\t\t\tL.Heel\t\t\t\n\t\tX1\tY1\tZ1\tX2\tY2\tZ2\t\n\n"
           "1\t0.000\t1.5\t2.5\t3.5\t4.5\t5.5\t6.5\t\n2\t0.017\t1.75\t2.5\t3.5\t4.5\t5.5\t\t\n");
  EXPECT_EQ(column_names(recording),
            (NameList{"Frame#", "R.ASIS.X", "R.ASIS.Y", "R.ASIS.Z", "L.Heel.X", "L.Heel.Y", "L.Heel.Z"}));
  EXPECT_EQ(recording.times, (std::vector<std::int64_t>{0, 17'000'000}));
  EXPECT_EQ(recording.columns.back().missing, 1);
  expect_said(recording, "5 lines above the data are those of OpenSim (trc)");
}

TEST_F(PreambleTest, frames_of_vicon_are_times_by_the_rate_above_them) {
  const Recording recording = read("a.csv",
                                   "Trajectories\n120,Hz\n,,S:LFHD,,,S:RFHD,,\nFrame,Sub Frame,X,Y,Z,RX,RY,RZ\n"
                                   ",,mm,mm,mm,deg,deg,deg\n"
                                   "1,0,1.5,2.5,3.5,4.5,5.5,6.5\n2,0,1.5,2.5,3.5,4.5,5.5,\n301,0,1,2,3,4,5,6.25\n");
  EXPECT_EQ(column_names(recording),
            (NameList{"Sub Frame", "S:LFHD.X", "S:LFHD.Y", "S:LFHD.Z", "S:RFHD.RX", "S:RFHD.RY", "S:RFHD.RZ"}));
  EXPECT_EQ(recording.times, (std::vector<std::int64_t>{8'333'333, 16'666'667, 2'508'333'333}));
  EXPECT_EQ(recording.columns[6].missing, 1);
  expect_said(recording, "5 lines above the data are those of Vicon Nexus");
}

TEST_F(PreambleTest, a_line_of_excel_says_the_delimiter) {
  for (const char* text : {"sep=;\r\nt;x\r\n0;1.5\r\n0.5;2.5\r\n", "sep=,\n\"t\",\"x\"\n0,1.5\n0.5,2.5\n"}) {
    const Recording recording = read("excel.csv", text);
    EXPECT_EQ(recording.times, (std::vector<std::int64_t>{0, 500'000'000})) << text;
    EXPECT_EQ(element_f64(recording.columns.at(0).data, 1), 2.5) << text;
  }
}

TEST_F(PreambleTest, other_files_have_none) {
  for (const char* text : {"", "t,x\n0,1\n", "# a comment\n0 1 2\n", "Format,Version\n1,2\n", "endheader\n"})
    EXPECT_EQ(find_preamble(text).recorder, "") << text;
  EXPECT_EQ(read("a.csv", "t,endheader\n0,1\n").columns.at(0).name, "endheader");
}

}  // namespace
}  // namespace tmaops::io
