// `tmaops resample` on bad input: a named error, nothing written or lost, and the next call right.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "cli/resample_fixture.hpp"

namespace tmaops::test {
namespace {

using std::string;
using namespace std::string_literals;

class ResampleRefusal : public ResampleCommandTest {
 protected:
  void refuse_file(ErrorCode code, const string& input, std::initializer_list<string> pieces = {}) {
    for (const char* output : {"out.csv", "out.npz"})
      expect_refused(code, {input, "-o", path(output), "--hz", "2"}, pieces);
  }
  /// An archive of these times and one column.
  string timed(const string& descr, const string& data, std::size_t rows) const {
    return archive("in.npz",
                   {{"t", npy(descr, "(" + std::to_string(rows) + ",)", data)},
                    {"x", npy("<f8", "(" + std::to_string(rows) + ",)", raw(std::vector<double>(rows, 1.0)))}});
  }
};

// --- time series
// ------------------------------------------------------------------------------------------------------

TEST_F(ResampleRefusal, unsorted_times) {
  refuse_file(ErrorCode::times_not_sorted, file("a.csv", "t,x\n0,1\n2,1\n1,1\n"), {"a.csv:4", "1 s after 2 s"});
  refuse_file(ErrorCode::times_not_sorted, timed("<f8", raw<double>({0, 2, 1}), 3), {"in.npz: row 2"});
}

TEST_F(ResampleRefusal, duplicate_times_unless_allowed) {
  const string in = file("a.csv", "t,x\n0,0.0\n1,1.0\n1,2.0\n2,3.0\n");
  refuse_file(ErrorCode::duplicate_times, in, {"a.csv:4", "--duplicates last"});
  const auto done = expect_done({in, "-o", path("o.csv"), "--hz", "2", "--duplicates", "last"}, path("o.csv"));
  EXPECT_EQ(values(done, "x"), (std::vector<double>{0, 0.5, 2, 2.5, 3}));
}

TEST_F(ResampleRefusal, times_that_are_not_finite) {
  refuse_file(ErrorCode::times_not_finite, file("a.csv", "t,x\n0,1\nnan,1\n"), {"a.csv:3:1"});
  refuse_file(ErrorCode::times_not_finite, file("a.txt", "0 0 0 0 0 0 0 1\ninf 0 0 0 0 0 0 1\n"), {"a.txt:2:1"});
  refuse_file(ErrorCode::times_not_finite, timed("<f8", raw<double>({0, std::nan("")}), 2), {"row 1"});
}

TEST_F(ResampleRefusal, recordings_without_samples) {
  refuse_file(ErrorCode::empty_trajectory, file("a.csv", "t,x\n"));
  refuse_file(ErrorCode::empty_trajectory, file("a.txt", "# timestamp tx ty tz qx qy qz qw\n"));
  refuse_file(ErrorCode::empty_trajectory, timed("<f8", "", 0));
}

TEST_F(ResampleRefusal, f32_unix_times) {
  refuse_file(ErrorCode::time_precision, timed("<f4", raw<float>({1311868163.0F, 1311868291.0F, 1311868292.0F}), 3),
              {"<f4", "128"});
}

TEST_F(ResampleRefusal, times_at_the_ends_of_int64) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                         kLeast = std::numeric_limits<std::int64_t>::min();
  refuse_file(ErrorCode::time_overflow, timed("<i8", raw<std::int64_t>({kLeast + 1, kMost}), 2), {"292 years"});
  const auto far = expect_done(
      {timed("<i8", raw<std::int64_t>({kMost - 2, kMost}), 2), "-o", path("a.npz"), "--hz", "1e9"}, path("a.npz"));
  EXPECT_EQ(far.times, (std::vector<std::int64_t>{kMost - 2, kMost - 1, kMost}));
  const auto early =
      expect_done({timed("<i8", raw<std::int64_t>({kLeast + 1, kLeast + 3}), 2), "-o", path("b.npz"), "--hz", "1e9"},
                  path("b.npz"));
  EXPECT_EQ(early.times.front(), kLeast + 1);
  EXPECT_EQ(early.rows(), 3);
}

TEST_F(ResampleRefusal, an_absurd_number_of_targets) {
  const string in = file("a.csv", "t,x\n0.5,0.0\n1000000000.5,1.0\n");  // nanoseconds that nobody declared
  expect_refused(ErrorCode::bad_parameter, {in, "-o", path("o.csv"), "--hz", "30"}, {"--time-unit"});
  expect_done({in, "-o", path("o.csv"), "--hz", "30", "--time-unit", "ns"}, path("o.csv"));
}

TEST_F(ResampleRefusal, files_without_target_times) {
  const string in = file("a.csv", "t,x\n0,0.0\n1,1.0\n");
  expect_refused(ErrorCode::bad_parameter, {in, "-o", path("o.csv"), "--times", file("t.txt", "stamp\n")},
                 {"t.txt", "no target times"});
  expect_refused(ErrorCode::usage, {in, "-o", path("o.csv"), "--times", file("t.dat", "1\n")}, {"t.dat", ".npy"});
}

TEST_F(ResampleRefusal, arrays_that_nothing_would_read) {
  const string in = file("a.csv", "t,x\n0,0.0\n1,1.0\n");
  const auto refuse = [&](std::vector<string> more) {
    more.insert(more.begin(), {in, "-o", path("o.csv"), "--hz", "2"});
    expect_refused(ErrorCode::usage, more, {more[5]});
  };
  refuse({"--offsets-array", "episodes"});
  refuse({"--targets-array", "t"});
}

TEST_F(ResampleRefusal, columns_that_cannot_be_interpolated_so) {
  const string in = file("a.csv", "t,x,n,task\n0,0.0,1,pick\n1,1.0,2,place\n");
  const auto refuse = [&](const string& mode, std::initializer_list<string> pieces) {
    expect_refused(ErrorCode::bad_column_mode, {in, "-o", path("o.csv"), "--hz", "2", "--mode", mode}, pieces);
  };
  refuse("task=cubic", {"'task'", "text", "previous, next or nearest"});
  refuse("x..task=linear", {"'task'"});
  refuse("task=angle", {"'task'", "text with mode angle"});
  expect_refused(
      ErrorCode::bad_column_mode,
      {archive("n.npz", {{"t", npy("<f8", "(1,)", raw<double>({0}))}, {"n", npy("<i4", "(1,)", "\1\0\0\0"s)}}), "-o",
       path("o.npz"), "--hz", "2", "--mode", "n=linear"},
      {"'n'", "integers"});
  expect_refused(ErrorCode::bad_column_mode,
                 {archive("b.npz", {{"t", npy("<f8", "(1,)", raw<double>({0}))}, {"done", npy("|b1", "(1,)", "\1")}}),
                  "-o", path("o.npz"), "--hz", "2", "--mode", "done=linear"},
                 {"booleans"});
  expect_refused(ErrorCode::bad_quaternion, {in, "-o", path("o.csv"), "--hz", "2", "--mode", "x=slerp"},
                 {"1 channels"});
  expect_refused(ErrorCode::bad_quaternion,
                 {file("q.txt", "0 0 0 0 0 0 0 0\n1 0 0 0 0 0 0 1\n"), "-o", path("o.txt"), "--hz", "2"},
                 {"q.txt:1: qx qy qz qw", "0 0 0 0"});
}

// --- files read
// -------------------------------------------------------------------------------------------------------

TEST_F(ResampleRefusal, files_that_are_cut_off_or_something_else) {
  for (const char* name : {"a.csv", "a.txt", "a.npz"}) refuse_file(ErrorCode::bad_format, file(name, ""), {"empty"});
  const string good = zip({ZipPart::make("t.npy", npy("<f8", "(1,)", raw<double>({0})))});
  refuse_file(ErrorCode::bad_format, file("a.npz", good.substr(0, good.size() / 2)), {"end is missing"});
  refuse_file(ErrorCode::bad_format, file("b.npz", "t,x\n0,1\n"), {"no zip archive"});
  refuse_file(ErrorCode::bad_format, file("c.csv", good));
  refuse_file(ErrorCode::bad_format, archive("d.npz", {{"t", "garbage"}}), {"'t'"});
  refuse_file(ErrorCode::bad_text, file("e.csv", "t,x\n0,1\n1\n"), {"e.csv:3"});
  refuse_file(ErrorCode::bad_text, file("f.csv", "t;x\n0;0,5\n"), {"f.csv:2:3", "decimal comma"});
  refuse_file(ErrorCode::cannot_read, path("missing.csv"), {"No such file"});
  expect_refused(ErrorCode::cannot_read, {folder.path(), "--from", "csv", "-o", path("o.csv"), "--hz", "2"},
                 {"directory"});
  expect_refused(ErrorCode::cannot_read,
                 {file("g.csv", "t,x\n0,1\n"), "-o", path("o.csv"), "--times", path("missing.txt")});
}

TEST_F(ResampleRefusal, arrays_that_are_not_what_they_say) {
  const auto refuse = [&](ErrorCode code, const string& array) {
    refuse_file(code, archive("a.npz", {{"t", array}}), {"'t'"});
  };
  refuse(ErrorCode::pickle_refused, npy("|O", "(1,)", "\x80\x04N."));
  refuse(ErrorCode::unsupported_file_dtype, npy(">f8", "(1,)", raw<double>({0})));
  refuse(ErrorCode::file_too_large, npy("<f8", "(4611686018427387904,)", ""));
  refuse(ErrorCode::file_too_large, npy("<f8", "(3,)", raw<double>({0})));
  refuse(ErrorCode::file_too_large, npy_prefix("{}", 2, 9'000));
  refuse(ErrorCode::bad_npy_header, npy_prefix(string(20'000, ' '), 2));
  refuse(ErrorCode::bad_npy_header, npy_prefix("__import__('os')"));
}

TEST_F(ResampleRefusal, archives_made_to_mislead) {
  const string array = npy("<f8", "(1,)", raw<double>({0}));
  refuse_file(ErrorCode::bad_member_name, file("a.npz", zip({ZipPart::make("../t.npy", array)})), {"../t.npy"});
  refuse_file(ErrorCode::bad_member_name, file("b.npz", zip({ZipPart::make("/t.npy", array)})));
  refuse_file(ErrorCode::bad_member_name,
              file("c.npz", zip({ZipPart::make("t.npy", array), ZipPart::make("t.npy", array)})));
  ZipPart part = ZipPart::make("t.npy", array);
  part.crc ^= 1;
  refuse_file(ErrorCode::bad_archive, file("d.npz", zip({part})), {"checksum"});
  part = ZipPart::make("t.npy", array + string(1 << 20, '\0'), true);
  part.size = 1ULL << 40;
  refuse_file(ErrorCode::zip_bomb, file("e.npz", zip({part})));
  refuse_file(ErrorCode::array_missing, file("f.npz", zip({ZipPart::make("x.npy", array)})), {"--times-array"});
}

// --- files written
// ----------------------------------------------------------------------------------------------------

TEST_F(ResampleRefusal, outputs_that_would_lose_something) {
  const string in = file("in.csv", "t,x\n0,0.0\n1,1.0\n");
  file("there.csv", "precious");
  std::filesystem::create_directory(folder / "directory.csv");
  std::filesystem::create_symlink("there.csv", folder / "link.csv");
  const auto refuse = [&](ErrorCode code, const string& output, std::initializer_list<string> pieces,
                          bool force = true) {
    std::vector<string> arguments{in, "-o", output, "--hz", "2"};
    if (force) arguments.push_back("--force");
    expect_refused(code, arguments, pieces);
  };
  refuse(ErrorCode::output_exists, path("there.csv"), {"--force"}, false);
  refuse(ErrorCode::output_is_input, in, {"in.csv"});
  refuse(ErrorCode::output_is_input, path("./in.csv"), {});
  refuse(ErrorCode::cannot_write, path("directory.csv"), {"directory"});
  refuse(ErrorCode::cannot_write, path("link.csv"), {"symbolic link", "there.csv"});
  refuse(ErrorCode::cannot_write, path("no/such/folder.csv"), {"No such file or directory"});
  ASSERT_EQ(chmod(path("there.csv").c_str(), 0444), 0);
  refuse(ErrorCode::cannot_write, path("there.csv"), {"read-only"});
  const string times = file("times.txt", "0.5\n");
  expect_refused(ErrorCode::output_is_input, {in, "-o", times, "--times", times, "--to", "csv", "--force"});
  std::filesystem::remove(folder / "there.csv");
  expect_done({in, "-o", path("there.csv"), "--hz", "2"}, path("there.csv"));
}

TEST_F(ResampleRefusal, a_folder_that_may_not_be_written) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "LeakSanitizer fails in a process that has changed its user";
#endif
  const string in = file("in.csv", "t,x\n0,0.0\n1,1.0\n");
  std::filesystem::create_directory(folder / "closed");
  ASSERT_EQ(chmod(path("closed").c_str(), 0555), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  EXPECT_EQ(in_child([&] {
              obey_permissions();
              const ToolResult result = resample({in, "-o", path("closed/o.csv"), "--hz", "2"});
              return result.exit_code == 2 && result.err.find("E052") != string::npos ? 0 : 1;
            }),
            0);
  EXPECT_TRUE(std::filesystem::is_empty(folder / "closed"));
}

TEST_F(ResampleRefusal, names_of_odd_bytes_and_lengths) {
  const string in = file("caf\xe9.csv", "t,x\n0,0.0\n1,1.0\n");
  expect_done({in, "-o", path("\xff\n.csv"), "--hz", "2"}, path("\xff\n.csv"));
  const ToolResult json = resample({in, "-o", path("j.csv"), "--hz", "2", "--json"});
  EXPECT_NE(json.out.find("caf\\\\xe9.csv"), string::npos) << json.out;
  expect_refused(ErrorCode::output_exists, {in, "-o", path("\xff\n.csv"), "--hz", "2"}, {"\\xff\\x0a.csv"});
  const string deep = path(string(4'096, 'd') + ".csv");
  expect_refused(ErrorCode::cannot_write, {in, "-o", deep, "--hz", "2"}, {"too long"});
  expect_refused(ErrorCode::cannot_read, {deep, "-o", path("k.csv"), "--hz", "2"}, {"too long"});
}

// --- command line and environment
// -------------------------------------------------------------------------------------

TEST_F(ResampleRefusal, options_that_make_no_sense) {
  const string in = file("in.csv", "t,x\n0,0.0\n1,1.0\n");
  const auto refuse = [&](ErrorCode code, std::vector<string> more, std::initializer_list<string> pieces = {}) {
    more.insert(more.begin(), {in, "-o", path("o.csv")});
    expect_refused(code, more, pieces);
  };
  refuse(ErrorCode::usage, {});
  refuse(ErrorCode::usage, {"--hz", "2", "--like", in});
  refuse(ErrorCode::usage, {"--hz", "fast"});
  refuse(ErrorCode::usage, {"--hz", "2", "--outside", "guess"});
  refuse(ErrorCode::usage, {"--hz", "2", "--mode", "y=linear"}, {"no columns 'y'", "one of: x"});
  refuse(ErrorCode::usage, {"--hz", "2", "--mode", "x=spline"}, {"'spline'"});
  refuse(ErrorCode::usage, {"--hz", "2", "--mode", "t=linear"});
  refuse(ErrorCode::usage, {"--hz", "2", "--mode", "1=linear"}, {"time column"});
  refuse(ErrorCode::usage, {"--hz", "2", "--to", "hdf5"});
  for (const char* hz : {"0", "-1", "nan", "inf", "1e10"}) refuse(ErrorCode::bad_parameter, {"--hz", hz}, {"--hz"});
  for (const char* gap : {"0", "-1", "nan", "1e11"})
    refuse(ErrorCode::bad_parameter, {"--hz", "2", "--max-gap", gap}, {"--max-gap"});
  refuse(ErrorCode::bad_parameter, {"--times", file("none.txt", "# no stamps\n0.5\n"), "--max-gap", "0.1"},
         {"--max-gap"});
  expect_refused(ErrorCode::usage, {file("in.rec", "x"), "-o", path("o.csv"), "--hz", "2"}, {"--from"});
  expect_refused(ErrorCode::usage, {file("in.bag", "x"), "-o", path("o.csv"), "--hz", "2"},
                 {"tmaops dataset resample"});
  expect_refused(ErrorCode::usage, {in, "-o", path("o.bag"), "--hz", "2"}, {"--to"});
  expect_refused(ErrorCode::bad_parameter, {in, "-o", path("o.txt"), "--hz", "2"}, {"'tx'", "TUM"});
}

TEST_F(ResampleRefusal, thread_counts_that_are_none) {
  const string in = file("in.csv", "t,x\n0,0.0\n1,1.0\n");
  for (const char* count : {"0", "-3", "many", "1e9"})
    expect_refused(ErrorCode::bad_environment, {in, "-o", path("o.csv"), "--hz", "2"}, {"TMAOPS_NUM_THREADS"},
                   {{"TMAOPS_NUM_THREADS", count}});
}

}  // namespace
}  // namespace tmaops::test
