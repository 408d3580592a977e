#include "io/recording.hpp"

#include <cmath>

#include "io/npz.hpp"
#include "offers/output_file.hpp"
#include "support/expect_error.hpp"
#include "support/npy_bytes.hpp"
#include "support/scratch.hpp"

namespace tmaops::io {
namespace {

using test::expect_error;
using test::npy;
using test::raw;
using test::Scratch;
using test::zip;
using test::ZipPart;
using Times = std::vector<std::int64_t>;

ZipPart array(const std::string& name, const std::string& content) { return ZipPart::make(name + ".npy", content); }

TEST(Recording, a_tum_trajectory_has_exact_times_and_seven_columns) {
  const Scratch folder;
  const auto path = folder.file("a.txt", "# timestamp tx ty tz qx qy qz qw\n1311868163.8697 1 2 3 0 0 0 1\n");
  const Recording recording = read_recording(path);
  EXPECT_EQ(recording.times, Times{1311868163869700000});
  ASSERT_EQ(recording.columns.size(), 7U);
  EXPECT_EQ(recording.columns[0].name, "tx");
  EXPECT_EQ(recording.columns[0].data.type.kind, ElementKind::real);  // also where all are whole numbers
  expect_error(
      ErrorCode::bad_text, [&] { read_recording(folder.file("b.txt", "0 1 2 3 0 0 0 1\n1 2 3\n")); }, "b.txt:2:6",
      "3 fields");
  expect_error(ErrorCode::bad_text, [&] { read_recording(folder.file("c.txt", "0 1 2 3 0 0 0 x\n")); }, "c.txt:1:15");
  expect_error(
      ErrorCode::times_not_finite, [&] { read_recording(folder.file("d.txt", "nan 1 2 3 0 0 0 1\n")); }, "d.txt:1:1");
}

TEST(Recording, a_comment_with_as_many_words_as_columns_is_no_header) {
  const Scratch folder;
  const auto path = folder.file("a.txt", "# the pose of the camera in the room\n0 1 2 3 0 0 0 1\n");
  EXPECT_EQ(read_recording(path).columns.at(0).name, "tx");
  EXPECT_EQ(read_times_only(path).times, Times{0});
  EXPECT_EQ(read_recording(folder.file("b.csv", "# a b a\n1 2 3\n")).columns.at(0).name, "column_2");
  EXPECT_EQ(read_recording(folder.file("c.csv", "#time_ns,x,x\n1,2,3\n")).columns.at(1).name, "x_2");
}

TEST(Recording, finds_time_columns_and_their_units) {
  const Scratch folder;
  EXPECT_EQ(read_recording(folder.file("a.csv", "x,time\n1,0.5\n")).times, Times{500'000'000});
  EXPECT_EQ(read_recording(folder.file("b.csv", "#timestamp [ns],x\n1311868163869700000,1\n")).times,
            Times{1311868163869700000});
  EXPECT_EQ(read_recording(folder.file("c.csv", "time_us,x\n5,1\n")).times, Times{5'000});
  EXPECT_EQ(read_recording(folder.file("d.csv", "a,b\n1,2\n"), {.times_name = "b"}).times, Times{2'000'000'000});
  EXPECT_EQ(read_recording(folder.file("e.csv", "1,2\n"), {.times_name = "2"}).times, Times{2'000'000'000});
  EXPECT_EQ(read_recording(folder.file("f.csv", "a,b\n1,2\n"), {.unit = TimeUnit::milliseconds}).times,
            Times{1'000'000});
  expect_error(ErrorCode::array_missing, [&] { read_recording(folder / "a.csv", {.times_name = "c"}); }, "x, time");
  expect_error(
      ErrorCode::time_overflow, [&] { read_recording(folder.file("g.csv", "t_s\n9911868163870\n")); }, "g.csv:2:1",
      "--time-unit");
}

TEST(Recording, an_archive_has_times_columns_offsets_and_the_rest) {
  const Scratch folder;
  const auto path = folder.file("a.npz", zip({array("timestamps", npy("<f8", "(3,)", raw<double>({0, 0.5, 1}))),
                                              array("state", npy("<f4", "(3, 2)", raw<float>({1, 2, 3, 4, 5, 6}))),
                                              array("offsets", npy("<i8", "(3,)", raw<std::int64_t>({0, 1, 3}))),
                                              array("intrinsics", npy("<f8", "(2,)", raw<double>({7, 8})))}));
  const Recording recording = read_recording(path);
  EXPECT_EQ(recording.times, (Times{0, 500'000'000, 1'000'000'000}));
  EXPECT_EQ(recording.offsets, (Times{0, 1, 3}));
  ASSERT_EQ(recording.columns.size(), 1U);
  EXPECT_EQ(recording.columns[0].width(), 2);
  ASSERT_EQ(recording.others.size(), 1U);
  EXPECT_EQ(recording.others[0].name, "intrinsics");
  expect_error(
      ErrorCode::array_missing,
      [&] { read_recording(folder.file("b.npz", zip({array("x", npy("<f8", "()", raw<double>({0})))}))); },
      "--times-array");
  for (const Times& bad : {Times{0, 2}, Times{1, 3}, Times{0, 2, 1, 3}, Times{0}})
    expect_error(ErrorCode::bad_offsets, [&] {
      read_recording(
          folder.file("c.npz", zip({array("t", npy("<f8", "(3,)", raw<double>({0, 1, 2}))),
                                    array("offsets", npy("<i8", "(" + std::to_string(bad.size()) + ",)", raw(bad)))})));
    });
}

TEST(Recording, times_of_an_archive_have_a_unit_by_their_steps_and_f32_must_resolve_them) {
  const Scratch folder;
  const auto read = [&](const std::string& times, const ReadOptions& options = {}) {
    return read_recording(folder.file("a.npz", zip({array("t", times)})), options).times;
  };
  EXPECT_EQ(read(npy("<i8", "(1,)", raw<std::int64_t>({-5'000'000}))), Times{-5'000'000});
  EXPECT_EQ(read(npy("<i8", "(1,)", raw<std::int64_t>({5})), {.unit = TimeUnit::seconds}), Times{5'000'000'000});
  EXPECT_EQ(read(npy("<f4", "(2,)", raw<float>({0, 0.5F}))), (Times{0, 500'000'000}));
  expect_error(
      ErrorCode::time_precision, [&] { read(npy("<f4", "(2,)", raw<float>({1311868163.8F, 1311868163.9F}))); }, "128");
  expect_error(ErrorCode::times_not_finite, [&] { read(npy("<f8", "(2,)", raw<double>({0, INFINITY}))); }, "row 1");
  expect_error(ErrorCode::time_overflow, [&] { read(npy("<u8", "(1,)", raw<std::uint64_t>({1ULL << 63}))); });
  expect_error(ErrorCode::time_overflow, [&] { read(npy("<f8", "(1,)", raw<double>({1e30}))); });
  EXPECT_EQ(read(npy("<f8", "(2, 1)", raw<double>({0, 0.5}))), (Times{0, 500'000'000}));
  expect_error(ErrorCode::shape_mismatch, [&] { read(npy("<f8", "(1, 2)", raw<double>({0, 0.5}))); });
  expect_error(ErrorCode::unsupported_file_dtype, [&] { read(npy("|b1", "(1,)", "\x01")); });
}

TEST(Recording, says_which_column_is_the_time_and_why) {
  const Scratch folder;
  const auto time = [&](const char* text, const ReadOptions& options = {}) {
    return read_recording(folder.file("a.csv", text), options).time;
  };
  EXPECT_EQ(time("seq,ts,x\n1,0.5,2\n").name, "ts");
  EXPECT_EQ(time("seq,ts,x\n1,0.5,2\n").choice, TimeChoice::known_name);
  for (const char* name : {"Time", "header.stamp", "stamp_ns", "time_stamp", "t_s", "TIMESTAMP [us]",
                           "field.header.stamp", "%time", "__time", "time_sec"})
    EXPECT_EQ(time(("x," + std::string(name) + "\n5,7\n").c_str()).name, name);
  EXPECT_EQ(time("%time,x\n7,5\n").unit, TimeUnit::nanoseconds) << "as rostopic echo -p writes it";
  EXPECT_EQ(time("a,b\n1,2\n").choice, TimeChoice::position);
  EXPECT_EQ(time("a,b\n1,2\n", {.times_name = "b"}).choice, TimeChoice::option);
  EXPECT_EQ(time("a,b\n1,2\n").unit_source, UnitSource::usual);
  EXPECT_EQ(time("t_ms,b\n1,2\n").unit_source, UnitSource::name);
  EXPECT_EQ(time("t_ms,b\n1,2\n", {.unit = TimeUnit::seconds}).unit_source, UnitSource::option);
  EXPECT_EQ(to_string(time("a,b\n1,2\n").choice), "position");

  const auto others = [&](const char* text) { return read_recording(folder.file("a.csv", text)).other_time_names; };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(others("time,header.stamp,x\n1,2,3\n"), Texts{"header.stamp"});
  EXPECT_EQ(others("time,stamp.secs,stamp.nsecs\n1,2,3\n"), Texts{"stamp.secs"});
  EXPECT_EQ(others("time_sec,time_nsec,x\n1,2,3\n"), Texts{}) << "both are the times";
  EXPECT_EQ(others("Sec,NSec,x\n1,2,3\n"), Texts{});
  EXPECT_EQ(others("seq,capture_time\n1,2\n"), Texts{"capture_time"})
      << "the first column was taken for want of a name";
  EXPECT_EQ(others("time,exposure_time\n1,2\n"), Texts{}) << "a usual name leaves no doubt";
}

TEST(Recording, stamps_too_large_for_a_unit_have_a_smaller_one) {
  const Scratch folder;
  const Recording euroc = read_recording(folder.file("a.csv", "#timestamp,x\n1403715524912143104,1\n"));
  EXPECT_EQ(euroc.times, Times{1403715524912143104});
  EXPECT_EQ(euroc.time.unit, TimeUnit::nanoseconds);
  EXPECT_EQ(euroc.time.unit_source, UnitSource::dates);
  const Recording real = read_recording(folder.file("b.csv", "t\n5003715524912143.5\n"));
  EXPECT_EQ(real.time.unit, TimeUnit::microseconds);
  EXPECT_EQ(real.time.unit_source, UnitSource::only_fit);
  expect_error(
      ErrorCode::time_overflow, [&] { read_recording(folder.file("b.csv", "t_us\n1403715524912143104\n")); },
      "1403715524912143104 us");
}

/// Writes a recording, reads it again.
Recording rewritten(const Scratch& folder, const Recording& recording, const char* name, FileFormat format,
                    const WriteOptions& options = {}, ReadOptions read = {}) {
  OutputFile file(folder / name, {.force = true});
  write_recording(file, recording, format, options);
  file.commit();
  read.format = format;
  return read_recording(folder / name, read);
}

TEST(Recording, iso_times_stay_iso_times) {
  const Scratch folder;
  for (const auto& [first, zone] : {std::pair{"2024-05-01T12:00:00.25", "Z"}, {"2024-05-01 14:00:00.25", "+02:00"}}) {
    const std::string text = "time,x\n" + std::string(first) + zone + ",1.5\n";
    const Recording recording = read_recording(folder.file("a.csv", text));
    EXPECT_EQ(recording.times, Times{1'714'564'800'250'000'000}) << text;
    EXPECT_EQ(recording.time.form, TimeForm::iso8601);
    EXPECT_TRUE(recording.warnings.empty());
    rewritten(folder, recording, "b.csv", FileFormat::csv);
    EXPECT_EQ(test::read_all(folder / "b.csv"), text);
    const Recording npz = rewritten(folder, recording, "b.npz", FileFormat::npz);
    EXPECT_EQ(npz.time.form, TimeForm::datetime64);
    EXPECT_EQ(npz.times, recording.times);
    const Recording seconds =
        rewritten(folder, recording, "c.csv", FileFormat::csv, {.to_unit = TimeUnit::milliseconds});
    EXPECT_EQ(seconds.time.name, "time_ms");
    EXPECT_EQ(seconds.times, recording.times);
  }
  const Recording local = read_recording(folder.file("a.csv", "time,x\n2024-05-01 12:00:00,1\n"));
  ASSERT_EQ(local.warnings.size(), 1U);
  EXPECT_NE(local.warnings[0].text.find("UTC"), std::string::npos);
  expect_error(
      ErrorCode::bad_text,
      [&] { read_recording(folder.file("a.csv", "t\n2024-05-01T12:00:00Z\n2024-05-01T12:00:01\n")); }, "a.csv:3:1",
      "zone");
  expect_error(
      ErrorCode::bad_text, [&] { read_recording(folder.file("a.csv", "t\n2024-05-01T12:00:00Z\n5\n")); }, "a.csv:3:1");
}

TEST(Recording, pairs_of_seconds_and_nanoseconds_stay_pairs) {
  const Scratch folder;
  for (const char* names : {"header.stamp.secs,header.stamp.nsecs", "header.stamp.sec,header.stamp.nanosec",
                            "secs,nsecs", "sec,nanosec", "stamp.sec,stamp.nanosec"}) {
    const std::string text = "seq," + std::string(names) + ",x\n1,1700000000,5,1.5\n2,-1,999999999,2.5\n";
    const Recording recording = read_recording(folder.file("a.csv", text));
    EXPECT_EQ(recording.times, (Times{1'700'000'000'000'000'005, -1})) << names;
    EXPECT_EQ(recording.time.form, TimeForm::pair);
    EXPECT_EQ(recording.columns.size(), 2U);
    rewritten(folder, recording, "b.csv", FileFormat::csv);
    EXPECT_EQ(test::read_all(folder / "b.csv"), text);
    const Recording npz = rewritten(folder, recording, "b.npz", FileFormat::npz);
    EXPECT_EQ(npz.times, recording.times);
    EXPECT_EQ(npz.time.form, TimeForm::pair);
    EXPECT_EQ(npz.columns.size(), 2U);
  }
  const Recording joined = read_recording(folder.file("a.csv", "header.stamp.secs,header.stamp.nsecs\n1,5\n"));
  EXPECT_EQ(rewritten(folder, joined, "b.npz", FileFormat::npz, {.to_unit = TimeUnit::nanoseconds}).time.name,
            "header.stamp_ns");
  EXPECT_EQ(read_recording(folder / "a.csv", {.times_name = "header.stamp"}).times, Times{1'000'000'005});
  expect_error(
      ErrorCode::bad_text, [&] { read_recording(folder.file("a.csv", "secs,nsecs\n1,1000000000\n")); }, "a.csv:2");
  expect_error(ErrorCode::time_overflow,
               [&] { read_recording(folder.file("a.csv", "secs,nsecs\n9223372036855,0\n")); });
  expect_error(
      ErrorCode::bad_text, [&] { read_recording(folder.file("a.csv", "secs,nsecs\n1.5,0\n")); }, "a.csv:2:1", "whole");
}

TEST(Recording, datetime64_is_a_time_and_a_column) {
  const Scratch folder;
  const auto archive_of = [&](const char* type, const Times& times) {
    return folder.file("a.npz", zip({array("t", npy(type, "(2,)", raw(times))),
                                     array("seen", npy("<M8[ms]", "(2,)", raw(Times{1500, kNotATime})))}));
  };
  const Recording recording = read_recording(archive_of("<M8[us]", {-1, 1'000'000}));
  EXPECT_EQ(recording.times, (Times{-1000, 1'000'000'000}));
  EXPECT_EQ(recording.columns.at(0).missing, 1);
  rewritten(folder, recording, "b.npz", FileFormat::npz);
  EXPECT_EQ(NpzReader(folder / "b.npz").read("t").type.descr, "<M8[us]");
  EXPECT_EQ(NpzReader(folder / "b.npz").read("seen").type.descr, "<M8[ms]");
  rewritten(folder, recording, "b.csv", FileFormat::csv);
  EXPECT_EQ(test::read_all(folder / "b.csv"),
            "t,seen\n1969-12-31T23:59:59.999999Z,1970-01-01T00:00:01.500Z\n1970-01-01T00:00:01.000000Z,\n");
  Recording between = recording;
  between.times[0] = 1;  // no microsecond
  rewritten(folder, between, "b.npz", FileFormat::npz);
  EXPECT_EQ(NpzReader(folder / "b.npz").read("t").type.descr, "<M8[ns]");
  expect_error(ErrorCode::times_not_finite, [&] { read_recording(archive_of("<M8[ns]", {0, kNotATime})); }, "NaT");
}

TEST(Recording, text_seconds_that_f64_cannot_hold_become_nanoseconds_in_an_archive) {
  const Scratch folder;
  const Recording tum =
      read_recording(folder.file("a.tum", "1700000000.123456789 1 2 3 0 0 0 1\n1700000000.123456792 1 2 3 0 0 0 1\n"));
  const Recording back = rewritten(folder, tum, "a.npz", FileFormat::npz);
  EXPECT_EQ(back.times, tum.times);
  EXPECT_EQ(back.time.name, "timestamp_ns");
  EXPECT_TRUE(back.time.integer);
  EXPECT_FALSE(rewritten(folder, tum, "b.npz", FileFormat::npz, {.to_unit = TimeUnit::seconds}).time.integer);
  const Recording small = read_recording(folder.file("a.csv", "t,x\n0.123456789,1\n"));
  EXPECT_FALSE(rewritten(folder, small, "a.npz", FileFormat::npz).time.integer) << "f64 holds these";
}

TEST(Recording, times_are_written_in_the_unit_that_is_asked_for) {
  const Scratch folder;
  const Recording recording = read_recording(folder.file("a.csv", "timestamp [ns],x\n1500,1.5\n"));
  EXPECT_EQ(rewritten(folder, recording, "b.csv", FileFormat::csv, {.to_unit = TimeUnit::microseconds}).time.name,
            "timestamp [us]");
  EXPECT_EQ(test::read_all(folder / "b.csv"), "timestamp [us],x\n1.5,1.5\n");
  for (const TimeUnit unit : {TimeUnit::seconds, TimeUnit::milliseconds, TimeUnit::microseconds, TimeUnit::nanoseconds})
    for (const FileFormat format : {FileFormat::csv, FileFormat::npz}) {
      const Recording back = rewritten(folder, recording, "b", format, {.to_unit = unit});
      EXPECT_EQ(back.times, recording.times) << to_string(unit) << back.time.name;
      EXPECT_EQ(back.time.unit, unit) << back.time.name;
    }
}

TEST(Recording, a_header_that_was_a_comment_stays_one) {
  const Scratch folder;
  for (const char* text : {"#timestamp [ns],p_RS_R_x [m]\n5,1.5\n", "# t x\n0.5 1.5\n"}) {
    rewritten(folder, read_recording(folder.file("a.csv", text)), "b.csv", FileFormat::csv);
    EXPECT_EQ(test::read_all(folder / "b.csv"), text);
  }
  const char* tum = "# timestamp x y z q_x q_y q_z q_w\n0.5 1.0 2.0 3.0 0.0 0.0 0.0 1.0\n";
  rewritten(folder, read_recording(folder.file("a.txt", tum)), "b.txt", FileFormat::tum);
  EXPECT_EQ(test::read_all(folder / "b.txt"), tum);
  Recording renamed = read_recording(folder.file("a.csv", "#t,x\n0,1.5\n"));
  renamed.columns[0].name = "a,b";  // would be two columns in a comment
  EXPECT_EQ(rewritten(folder, renamed, "b.csv", FileFormat::csv).columns.at(0).name, "a,b");
}

TEST(Recording, kitti_poses_have_their_times_in_another_file) {
  const Scratch folder;
  const auto times = folder.file("times.txt", "0.0\n1.5\n");
  // A quarter turn about z, and half a turn about x.
  const auto poses = folder.file("poses.txt", "0 -1 0 1 1 0 0 2 0 0 1 3\n1 0 0 4 0 -1 0 5 0 0 -1 6\n");
  const ReadOptions options{.format = FileFormat::kitti, .kitti_times = times};
  const Recording recording = read_recording(poses, options);
  EXPECT_EQ(recording.times, (Times{0, 1'500'000'000}));
  ASSERT_EQ(recording.columns.size(), 7U);
  const auto value = [&](std::size_t column, std::int64_t row) {
    return element_f64(recording.columns[column].data, row);
  };
  EXPECT_EQ(recording.columns[6].name, "qw");
  EXPECT_EQ(value(0, 0), 1);
  EXPECT_EQ(value(2, 1), 6);
  EXPECT_NEAR(value(5, 0), std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(value(6, 0), std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(value(3, 1), 1, 1e-15);
  const Recording back = rewritten(folder, recording, "b.txt", FileFormat::kitti, {}, {.kitti_times = times});
  for (std::size_t column = 0; column < 7; ++column)
    for (std::int64_t row = 0; row < 2; ++row)
      EXPECT_NEAR(element_f64(back.columns[column].data, row), value(column, row), 1e-15) << column << row;
  EXPECT_EQ(left_out(recording, FileFormat::kitti), std::vector<std::string>{"timestamp"});
  expect_error(ErrorCode::usage, [&] { read_recording(poses, {.format = FileFormat::kitti}); }, "--kitti-times");
  expect_error(
      ErrorCode::shape_mismatch,
      [&] { read_recording(poses, {.format = FileFormat::kitti, .kitti_times = folder.file("one.txt", "0.0\n")}); },
      "1 times");
  expect_error(
      ErrorCode::bad_text,
      [&] { read_recording(folder.file("c.txt", "1 0 0 0 0 1 0 0 0 0 2 0\n1 0 0 0 0 1 0 0 0 0 1 0\n"), options); },
      "c.txt:1", "determinant 2");
  expect_error(
      ErrorCode::bad_text,
      [&] { read_recording(folder.file("d.txt", "1 0 0 0 0 1 0 0 0 0 -1 0\n1 0 0 0 0 1 0 0 0 0 1 0\n"), options); },
      "determinant -1");
  expect_error(ErrorCode::bad_text, [&] { read_recording(poses); }, "KITTI");
}

TEST(Recording, columns_say_what_is_missing_and_what_is_no_number) {
  const Scratch folder;
  const Recording recording = read_recording(folder.file("a.csv", "t,x,y\n0,1.5,1\n1,NA,0x10\n2,,3\n"));
  EXPECT_EQ(recording.columns.at(0).missing, 2);
  EXPECT_TRUE(recording.columns.at(0).from_text);
  EXPECT_EQ(recording.columns.at(1).numeric_fields, 2);
  EXPECT_NE(recording.columns.at(1).first_other.find("'0x10' at "), std::string::npos);
  EXPECT_NE(recording.columns.at(1).first_other.find("a.csv:3:6"), std::string::npos);
  const Recording whole = read_recording(folder.file("a.csv", "t_s,gripper\n0,1\n1,\n"));
  ASSERT_EQ(whole.warnings.size(), 1U);
  EXPECT_NE(whole.warnings[0].text.find("'gripper'"), std::string::npos);
  const Array real = real_array(read_recording(folder.file("a.csv", "t,x\n0,1\n1,2\n")).columns.at(0).data);
  EXPECT_EQ(real.type.descr, "<f8");
  EXPECT_EQ(element_f64(real, 1), 2);
}

TEST(Recording, names_that_are_not_utf8_never_reach_an_archive) {
  const Scratch folder;
  const Recording csv = read_recording(folder.file("a.csv",
                                                   "timestamp,temp_\xb0"
                                                   "C,temp_\xb1"
                                                   "C\n0,1.5,2.5\n"));
  rewritten(folder, csv, "a.npz", FileFormat::npz);
  const std::vector<std::string> mended{"timestamp",
                                        "temp_\xef\xbf\xbd"
                                        "C",
                                        "temp_\xef\xbf\xbd"
                                        "C_2"};
  EXPECT_EQ(NpzReader(folder / "a.npz").names(), mended);
  const std::string one = npy("<f8", "(1,)", raw<double>({1}));
  const Recording npz = read_recording(folder.file("b.npz", zip({array("t", one), array("temp_\xf8"
                                                                                        "C",
                                                                                        one)})));
  EXPECT_EQ(npz.warnings.size(), 1U);
  rewritten(folder, npz, "c.npz", FileFormat::npz);
  EXPECT_EQ(NpzReader(folder / "c.npz").names().back(), mended[1]);
}

TEST(Recording, text_out_of_proportion_is_no_array_unless_it_is_asked_for) {
  const Scratch folder;
  std::string text = "t,x\n0," + std::string(50'000, 'a') + "\n";
  for (int i = 1; i < 1000; ++i) text += std::to_string(i) + ",b\n";
  const Recording recording = read_recording(folder.file("a.csv", text));
  EXPECT_EQ(element_text(rewritten(folder, recording, "b.csv", FileFormat::csv).columns.at(0).data, 0).size(), 50'000U);
  expect_error(
      ErrorCode::bad_parameter, [&] { rewritten(folder, recording, "b.npz", FileFormat::npz); }, "'x'", "0.200 GB",
      "--trust-sizes");
  EXPECT_FALSE(std::filesystem::exists(folder / "b.npz"));
  const Recording back = rewritten(folder, recording, "b.npz", FileFormat::npz, {.deflate = true, .trust_sizes = true},
                                   {.trust_sizes = true});
  EXPECT_EQ(back.columns.at(0).data.type.descr, "<U50000");
}

TEST(Recording, dates_from_1990_to_2100_tell_the_unit_of_whole_and_real_numbers) {
  const Scratch folder;
  const std::pair<const char*, TimeUnit> cases[] = {{"1311868163870", TimeUnit::milliseconds},
                                                    {"1311868163870.25", TimeUnit::milliseconds},
                                                    {"1311868163870250", TimeUnit::microseconds},
                                                    {"1311868163", TimeUnit::seconds}};
  for (const auto& [text, unit] : cases) {
    const Recording read = read_recording(folder.file("a.csv", std::string("t,x\n") + text + ",1\n"));
    EXPECT_EQ(read.time.unit, unit) << text;
    EXPECT_EQ(read.times.at(0) / 1'000'000'000, 1311868163) << text;
  }
  const auto archive = [&](const std::vector<std::int64_t>& stamps) {
    const std::string shape = "(" + std::to_string(stamps.size()) + ",)";
    std::string bytes;
    for (const std::int64_t stamp : stamps) bytes += raw<std::int64_t>({stamp});
    return read_recording(folder.file("a.npz", zip({array("t", npy("<i8", shape, bytes))})));
  };
  EXPECT_EQ(archive({1311868163870, 1311868163880}).time.unit, TimeUnit::milliseconds);
  EXPECT_EQ(archive({1311868163, 1311868164}).time.unit, TimeUnit::seconds);
  EXPECT_EQ(archive({1311868163870, 1311868163880}).time.unit_source, UnitSource::dates);
  EXPECT_EQ(archive({800'000'000'000'000, 800'000'033'333'333}).time.unit, TimeUnit::nanoseconds)
      << "nine days after a start, at 30 Hz";
}

TEST(Recording, an_index_of_rows_is_no_time_where_another_column_can_be_it) {
  const Scratch folder;
  const auto read = [&](const std::string& names) {
    return read_recording(folder.file("a.csv", names + "\n0,10.5,1\n1,10.6,2\n2,10.7,3\n"));
  };
  for (const char* name :
       {"seconds", "secs", "elapsed", "elapsed_s", "seconds_elapsed", "epoch", "tick", "monotonic_s"})
    EXPECT_EQ(read(std::string(",") + name + ",x").time.name, name);
  const Recording like = read("frame,my_time_col,x");
  EXPECT_EQ(like.time.name, "my_time_col");
  EXPECT_EQ(like.time.choice, TimeChoice::like_name);
  const Recording index = read("frame,x,y");
  EXPECT_EQ(index.time.name, "frame");
  EXPECT_EQ(index.warnings.at(0).id, "index_as_time");
  EXPECT_EQ(read("a,x,y").warnings.at(0).id, "unit_ambiguous") << "the index is no news";
  const Recording text = read_recording(folder.file("b.csv", "uid,utc_timestamp_ns,x\nf0e1,1000,0.5\na9b2,2000,1.5\n"));
  EXPECT_EQ(text.time.name, "utc_timestamp_ns");
  EXPECT_EQ(text.times, (Times{1000, 2000}));
}

TEST(Recording, lines_above_a_header_are_skipped_and_lines_keep_their_numbers) {
  const Scratch folder;
  const std::string file = folder.file("a.csv", "Format Version,1.23\nTake,walk\nt,x\n0,1\n1,bad,3\n");
  expect_error(ErrorCode::bad_text, [&] { read_recording(file, {.skip_lines = 2}); }, "a.csv:5", "3 fields");
  const std::string good = folder.file("b.csv", "Format Version,1.23\nTake,walk\nt,x\n0,1\n1,2\n");
  EXPECT_EQ(read_recording(good, {.skip_lines = 2}).rows(), 2);
}

TEST(Recording, a_txt_that_is_no_trajectory_names_the_format_that_reads_it) {
  const Scratch folder;
  const std::string file = folder.file("a.txt", "0 1 2 3 4 5 6 7 8 9\n");
  expect_error(ErrorCode::bad_text, [&] { read_recording(file); }, "--from csv");
}

TEST(Recording, numbers_with_a_unit_or_thousands_are_counted_as_numbers_in_text) {
  const Scratch folder;
  const Recording read =
      read_recording(folder.file("a.csv", "t,height,price,name\n0,1.5m,\"1,000.5\",a1\n1,2.5m,\"2,000.5\",b2\n"));
  EXPECT_EQ(read.columns.at(0).numeric_fields, 2);
  EXPECT_EQ(read.columns.at(1).numeric_fields, 2);
  EXPECT_EQ(read.columns.at(2).numeric_fields, 0);
}

TEST(Recording, an_integer_time_out_of_range_is_shown) {
  const Scratch folder;
  expect_error(
      ErrorCode::time_overflow,
      [&] {
        read_recording(
            folder.file("a.npz", zip({array("t", npy("<u8", "(1,)", raw<std::uint64_t>({(1ULL << 63) + 5})))})));
      },
      "9223372036854775813 ns");
}

TEST(Recording, every_format_reads_back_what_was_written) {
  const Scratch folder;
  Recording recording;
  recording.times = {-1, 1311868163869700001, 1311868163869700002};
  recording.offsets = {0, 3};
  for (const char* name : {"tx", "ty", "tz", "qx", "qy", "qz", "qw"})
    recording.columns.push_back({name, make_array(std::vector<double>{0.1, 1e-300, -2}, {3})});
  const auto round_trip = [&](const char* name, FileFormat format) {
    OutputFile file(folder / name, {.force = true});
    write_recording(file, recording, format);
    file.commit();
    return read_recording(folder / name);
  };
  for (const auto& [name, format] : {std::pair{"a.txt", FileFormat::tum}, {"a.csv", FileFormat::csv}}) {
    const Recording back = round_trip(name, format);
    EXPECT_EQ(back.times, recording.times) << name;
    ASSERT_EQ(back.columns.size(), 7U) << name;
    for (std::int64_t row = 0; row < 3; ++row)
      EXPECT_EQ(element_f64(back.columns[3].data, row), element_f64(recording.columns[3].data, row)) << name << row;
  }
  recording.time.integer = true;
  recording.time.unit = TimeUnit::nanoseconds;
  EXPECT_EQ(round_trip("a.npz", FileFormat::npz).times, recording.times);
  recording.time.unit = TimeUnit::milliseconds;  // cannot hold these times: they become nanoseconds, and say so
  const Recording back = round_trip("a.npz", FileFormat::npz);
  EXPECT_EQ(back.times, recording.times);
  EXPECT_EQ(back.time.name, "timestamp_ns");

  recording.columns.pop_back();
  expect_error(ErrorCode::bad_parameter, [&] { round_trip("b.txt", FileFormat::tum); }, "'qw'");
  EXPECT_FALSE(std::filesystem::exists(folder / "b.txt"));
}

TEST(Recording, a_column_of_real_numbers_stays_one_where_all_of_them_are_whole) {
  const Scratch folder;
  for (const char* name : {"a.csv", "b.tsv"}) {
    Recording recording = read_recording(folder.file("in.csv", "t,x\n0,1.0\n1,-0.0\n2,1e22\n"));
    OutputFile file(folder / name);
    write_recording(file, recording, FileFormat::csv);
    file.commit();
    EXPECT_EQ(read_recording(folder / name).columns.at(0).data.type.kind, ElementKind::real)
        << "or the next run would take it for a column of integers, and not interpolate it";
  }
}

TEST(Recording, columns_of_a_csv_have_different_names) {
  const Scratch folder;
  Recording recording;
  recording.times = {0};
  recording.offsets = {0, 1};
  recording.columns.push_back({"a", make_array(std::vector<double>{1, 2}, {1, 2})});
  recording.columns.push_back({"a_0", make_array(std::vector<double>{3}, {1})});
  OutputFile file(folder / "a.csv");
  write_recording(file, recording, FileFormat::csv);
  file.commit();
  const Recording back = read_recording(folder / "a.csv");
  ASSERT_EQ(back.columns.size(), 3U);
  EXPECT_EQ(back.columns[2].name, "a_0_2");
}

TEST(Recording, names_from_a_table_become_harmless_members) {
  const Scratch folder;
  Recording recording = read_recording(folder.file("a.csv", "t,../x,/y,a:b,,\n0,1,2,3,4,5\n"));
  OutputFile file(folder / "a.npz");
  write_recording(file, recording, FileFormat::npz);
  file.commit();
  EXPECT_EQ(NpzReader(folder / "a.npz").names(),
            (std::vector<std::string>{"t", "_./x", "_y", "a_b", "column", "column_2"}));
}

TEST(Recording, order_is_checked_per_episode_with_the_line) {
  const Scratch folder;
  const auto read = [&](const char* text) { return read_recording(folder.file("a.csv", text)); };
  expect_error(
      ErrorCode::times_not_sorted, [&] { check_order(read("t,x\n0,1\n# pause\n2,1\n1,1\n"), true); }, "a.csv:5",
      "1 s after 2 s");
  expect_error(ErrorCode::duplicate_times, [&] { check_order(read("t,x\n0,1\n0,2\n"), false); }, "a.csv:3");
  check_order(read("t,x\n0,1\n0,2\n"), true);
  Recording two;
  two.times = {5, 6, 1, 2};
  two.offsets = {0, 2, 4};
  check_order(two, false);
}

TEST(Recording, plain_lists_of_times_are_read_from_any_format) {
  const Scratch folder;
  const auto read_times = [](const auto& path) { return read_times_only(path).times; };
  const Times expected{500'000'000, 1'250'000'000};
  EXPECT_EQ(read_times(folder.file("t.txt", "0.5\n1.25\n")), expected);
  EXPECT_EQ(read_times(folder.file("t.csv", "time\n0.5\n1.25\n")), expected);
  EXPECT_EQ(read_times(folder.file("t.npy", npy("<f8", "(2,)", raw<double>({0.5, 1.25})))), expected);
  EXPECT_EQ(read_times(folder.file("t.npz", zip({array("times", npy("<f8", "(2,)", raw<double>({0.5, 1.25})))}))),
            expected);
  EXPECT_EQ(read_times(folder.file("tum.txt", "0.5 1 2 3 0 0 0 1\n1.25 1 2 3 0 0 0 1\n")), expected);
  expect_error(ErrorCode::usage, [&] { read_times(folder.file("t.bin", "x")); }, "extension");
}

TEST(Recording, a_file_of_a_data_set_is_refused_with_the_command_that_reads_it) {
  const Scratch folder;
  for (const char* name : {"run.mcap", "run.bag", "run.db3", "table.parquet", "demo.hdf5"})
    expect_error(ErrorCode::usage, [&] { read_recording(folder.file(name, "x"), {}); }, "tmaops dataset resample");
}

}  // namespace
}  // namespace tmaops::io
