#include "io/recording.hpp"

#include <cmath>

#include "io/npz.hpp"
#include "io/output_file.hpp"
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
  expect_error(
      ErrorCode::bad_text, [&] { read_recording(folder.file("c.txt", "0 1 2 3 0 0 0 x\n")); }, "c.txt:1:15");
  expect_error(
      ErrorCode::times_not_finite, [&] { read_recording(folder.file("d.txt", "nan 1 2 3 0 0 0 1\n")); }, "d.txt:1:1");
}

TEST(Recording, a_comment_with_as_many_words_as_columns_is_no_header) {
  const Scratch folder;
  const auto path = folder.file("a.txt", "# the pose of the camera in the room\n0 1 2 3 0 0 0 1\n");
  EXPECT_EQ(read_recording(path).columns.at(0).name, "tx");
  EXPECT_EQ(read_times(path), Times{0});
  EXPECT_EQ(read_recording(folder.file("b.csv", "# a b a\n1 2 3\n")).columns.at(0).name, "column_2");
  expect_error(
      ErrorCode::bad_text, [&] { read_recording(folder.file("c.csv", "#time_ns,x,x\n1,2,3\n")); }, "'x'");
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
  expect_error(
      ErrorCode::array_missing, [&] { read_recording(folder / "a.csv", {.times_name = "c"}); }, "x, time");
  expect_error(
      ErrorCode::time_overflow, [&] { read_recording(folder.file("g.csv", "t\n1311868163869700000\n")); }, "g.csv:2:1",
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

TEST(Recording, integer_times_of_an_archive_are_nanoseconds_and_f32_must_resolve_the_steps) {
  const Scratch folder;
  const auto read = [&](const std::string& times, const ReadOptions& options = {}) {
    return read_recording(folder.file("a.npz", zip({array("t", times)})), options).times;
  };
  EXPECT_EQ(read(npy("<i8", "(1,)", raw<std::int64_t>({-5}))), Times{-5});
  EXPECT_EQ(read(npy("<i8", "(1,)", raw<std::int64_t>({5})), {.unit = TimeUnit::seconds}), Times{5'000'000'000});
  EXPECT_EQ(read(npy("<f4", "(2,)", raw<float>({0, 0.5F}))), (Times{0, 500'000'000}));
  expect_error(
      ErrorCode::time_precision,
      [&] {
        read(npy("<f4", "(2,)", raw<float>({1311868163.8F, 1311868163.9F})));
      },
      "128");
  expect_error(
      ErrorCode::times_not_finite,
      [&] {
        read(npy("<f8", "(2,)", raw<double>({0, INFINITY})));
      },
      "row 1");
  expect_error(ErrorCode::time_overflow, [&] { read(npy("<u8", "(1,)", raw<std::uint64_t>({1ULL << 63}))); });
  expect_error(ErrorCode::time_overflow, [&] { read(npy("<f8", "(1,)", raw<double>({1e10}))); });
  expect_error(ErrorCode::shape_mismatch, [&] { read(npy("<f8", "(1, 1)", raw<double>({0}))); });
  expect_error(ErrorCode::unsupported_file_dtype, [&] { read(npy("|b1", "(1,)", "\x01")); });
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
  expect_error(
      ErrorCode::bad_parameter, [&] { round_trip("b.txt", FileFormat::tum); }, "'qw'");
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
            (std::vector<std::string>{"t_s", "_./x", "_y", "a_b", "column", "column_2"}));
}

TEST(Recording, order_is_checked_per_episode_with_the_line) {
  const Scratch folder;
  const auto read = [&](const char* text) { return read_recording(folder.file("a.csv", text)); };
  expect_error(
      ErrorCode::times_not_sorted, [&] { check_order(read("t,x\n0,1\n# pause\n2,1\n1,1\n"), true); }, "a.csv:5",
      "1 s after 2 s");
  expect_error(
      ErrorCode::duplicate_times, [&] { check_order(read("t,x\n0,1\n0,2\n"), false); }, "a.csv:3");
  check_order(read("t,x\n0,1\n0,2\n"), true);
  Recording two;
  two.times = {5, 6, 1, 2};
  two.offsets = {0, 2, 4};
  check_order(two, false);
}

TEST(Recording, plain_lists_of_times_are_read_from_any_format) {
  const Scratch folder;
  const Times expected{500'000'000, 1'250'000'000};
  EXPECT_EQ(read_times(folder.file("t.txt", "0.5\n1.25\n")), expected);
  EXPECT_EQ(read_times(folder.file("t.csv", "time\n0.5\n1.25\n")), expected);
  EXPECT_EQ(read_times(folder.file("t.npy", npy("<f8", "(2,)", raw<double>({0.5, 1.25})))), expected);
  EXPECT_EQ(read_times(folder.file("t.npz", zip({array("times", npy("<f8", "(2,)", raw<double>({0.5, 1.25})))}))),
            expected);
  EXPECT_EQ(read_times(folder.file("tum.txt", "0.5 1 2 3 0 0 0 1\n1.25 1 2 3 0 0 0 1\n")), expected);
  expect_error(
      ErrorCode::usage, [&] { read_times(folder.file("t.bin", "x")); }, "extension");
}

}  // namespace
}  // namespace tmaops::io
