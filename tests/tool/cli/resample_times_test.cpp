// How `tmaops resample` takes times, says so, and where its targets lie.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/resample_fixture.hpp"
#include "tmaops/dtype.hpp"

namespace tmaops::test {
namespace {

using Times = std::vector<std::int64_t>;
using Values = std::vector<double>;

constexpr std::int64_t kSecond = 1'000'000'000;

class ResampleTimes : public ResampleCommandTest {
 protected:
  io::Recording run(const std::string& in, std::vector<std::string> more, const char* out = "out.npz") {
    more.insert(more.begin(), {in, "-o", path(out), "--force"});
    return expect_done(more, path(out));
  }
  /// 1,000 samples whose integer stamps count milliseconds.
  std::string milliseconds(const char* name) const {
    std::vector<std::int64_t> times;
    std::string csv = "timestamp,x\n";
    for (int i = 0; i < 1'000; ++i) {
      times.push_back(10 * i);
      csv += std::to_string(10 * i) + "," + std::to_string(i) + ".5\n";
    }
    if (std::string(name).ends_with(".csv")) return file(name, csv);
    return archive(
        name, {{"timestamp", npy("<i8", "(1000,)", raw(times))}, {"x", npy("<f8", "(1000,)", raw(Values(1'000)))}});
  }
};

TEST_F(ResampleTimes, the_column_its_unit_and_its_range_are_always_said) {
  std::string csv = "seq,ts,x\n";
  for (int i = 0; i <= 200; ++i) csv += std::to_string(i) + ",0." + std::to_string(1000 + i) + ",1.5\n";
  run(file("seq.csv", csv), {"--hz", "1", "--times-array", "seq"});
  expect_text(last.err, "time: column 'seq' in s, 0 to 200 s, 1 Hz median (named by --times-array; unit assumed)");
  run(file("ns.csv", "time [ns],x\n0,1.5\n100000000,2.5\n"), {"--hz", "10", "--json"});
  expect_text(last.err, "time: column 'time [ns]' in ns, 0.0 to 0.1 s, 10 Hz median (unit by the name)");
  const auto time = nlohmann::json::parse(last.out)["time"];
  EXPECT_EQ(time["name"], "time [ns]");
  EXPECT_EQ(time["unit"], "ns");
  EXPECT_EQ(time["unit_by"], "name");
  EXPECT_EQ(time["last_ns"], 100'000'000);
  EXPECT_EQ(time["median_step_ns"], 100'000'000);
}

TEST_F(ResampleTimes, whole_numbers_have_the_unit_of_a_recorder_in_text_and_arrays) {
  for (const char* name : {"ms.npz", "ms.csv"}) {
    EXPECT_EQ(run(milliseconds(name), {"--hz", "30", "--strict"}).rows(), 300);
    expect_text(last.err, "'timestamp' in ms, 0.00 to 9.99 s", "unit by the size of the steps");
  }
}

TEST_F(ResampleTimes, a_wrong_unit_is_a_warning) {
  run(milliseconds("ms.npz"), {"--hz", "30", "--time-unit", "ns"});
  expect_text(last.err, "warning: 0.001 targets per sample", "--time-unit", "array 'timestamp' in ns, 0");
  run(milliseconds("ms.csv"), {"--hz", "30", "--time-unit", "s"});
  expect_text(last.err, "targets per sample", "The samples span 9990 s");
  run(milliseconds("ms.csv"), {"--hz", "30", "--time-unit", "ms"});
  EXPECT_EQ(last.err.find("warning"), std::string::npos) << last.err;
  expect_refused(ErrorCode::warnings_refused,
                 {milliseconds("ms.npz"), "-o", path("new.npz"), "--hz", "30", "--time-unit", "ns", "--strict"},
                 {"targets per sample", "--strict"});
}

TEST_F(ResampleTimes, a_step_of_two_units_is_a_warning_that_names_the_option) {
  const std::string frames = file("frames.csv", "t,x\n0,0.0\n5,1.0\n10,2.0\n");
  run(frames, {"--hz", "1"});
  expect_text(last.err, "warning:", "the time 't' steps by 5, which was read as s and may as well be ms (--time-unit");
  run(frames, {"--hz", "1", "--time-unit", "s", "--strict"});
  run(file("audio.csv", "t,x\n0,0.0\n22676,1.0\n45351,2.0\n"), {"--hz", "100"});
  expect_text(last.err, "steps by 22676, which was read as us and may as well be ns");
}

TEST_F(ResampleTimes, an_inferred_unit_stands_in_the_name_where_the_result_would_be_read_otherwise) {
  const auto times = [&](std::int64_t step) {
    return archive("t.npz", {{"t", npy("<i8", "(3,)", raw(Times{0, step, 2 * step}))},
                             {"x", npy("<f8", "(3,)", raw(Values{0, 1, 2}))}});
  };
  EXPECT_EQ(run(times(20), {"--hz", "200"}).time.name, "t_ms") << "5 ms would be read as 5 s";
  EXPECT_EQ(run(times(20), {"--hz", "50"}).time.name, "t");
  EXPECT_EQ(run(times(1'000'000), {"--hz", "5000"}).time.name, "t_ns");
}

TEST_F(ResampleTimes, a_usual_rate_is_no_warning) {
  for (const char* hz : {"3", "30", "100", "5000"}) {
    run(milliseconds("ms.csv"), {"--hz", hz, "--time-unit", "ms", "--strict"});
    EXPECT_EQ(last.err.find("warning"), std::string::npos) << last.err;
  }
}

TEST_F(ResampleTimes, targets_in_bfloat16_are_read_as_such) {
  const std::string in = file("in.csv", "t,x\n0,0.0\n1,1.0\n2,2.0\n");
  const std::string targets = npy("<u2", "(2,)", raw<std::uint16_t>({bfloat16(0.5F).bits, bfloat16(1.5F).bits}));
  EXPECT_EQ(values(run(in, {"--times", file("targets.bf16.npy", targets)}, "out.csv"), "x"), (Values{0.5, 1.5}));
}

TEST_F(ResampleTimes, a_target_within_snap_of_a_sample_hits_it) {
  // 1,001 samples at exactly 30 Hz in f64 seconds since 1970: each is up to 119 ns off the grid.
  std::vector<double> times, actions;
  for (int i = 0; i <= 1'000; ++i) {
    times.push_back(1'700'000'000.0 + i / 30.0);
    actions.push_back(i);
  }
  const std::string in =
      archive("in.npz", {{"t", npy("<f8", "(1001,)", raw(times))}, {"action", npy("<f8", "(1001,)", raw(actions))}});
  const auto wrong = [&](const io::Recording& recording) {
    std::int64_t late = 0;
    const Values got = values(recording, "action");
    for (std::size_t i = 0; i < got.size(); ++i) late += got[i] != static_cast<double>(i);
    return late;
  };
  const auto plain = run(in, {"--hz", "30", "--mode", "action=previous"});
  EXPECT_EQ(plain.rows(), 1'000);
  EXPECT_EQ(wrong(plain), 333);
  const auto snapped = run(in, {"--hz", "30", "--mode", "action=previous", "--snap", "1e-6"});
  EXPECT_EQ(snapped.rows(), 1'001);
  EXPECT_EQ(wrong(snapped), 0);
  expect_text(last.err, "targets hit a sample within --snap");
  const auto line = run(in, {"--hz", "30", "--snap", "1e-6"});
  EXPECT_EQ(wrong(line), 0) << "in every mode";
}

TEST_F(ResampleTimes, snap_takes_the_nearer_sample_and_keeps_the_times_of_the_grid) {
  const std::string in = file("in.csv", "t,x\n0,0.0\n1.04,1.0\n2,2.0\n2.96,3.0\n");
  const auto done = run(in, {"--hz", "1", "--snap", "0.05"}, "out.csv");
  EXPECT_EQ(done.times, (Times{0, kSecond, 2 * kSecond, 3 * kSecond}));
  EXPECT_EQ(values(done, "x"), (Values{0, 1, 2, 3}));
  run(in, {"--hz", "1", "--snap", "0.6"});
  expect_text(last.err, "warning: --snap 0.6 s is more than half of the median step");
  for (const char* snap : {"-1", "nan", "1e11"})
    expect_refused(ErrorCode::bad_parameter, {in, "-o", path("o.csv"), "--hz", "1", "--snap", snap}, {"--snap"});
}

TEST_F(ResampleTimes, the_grid_begins_where_it_is_told) {
  const std::string in = file("in.csv", "t,x\n0.25,0.25\n5,5.0\n");
  const auto grid = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--hz", "2"});
    Times tenths = run(in, more, "out.csv").times;
    for (std::int64_t& time : tenths) time /= kSecond / 100;
    return tenths;
  };
  EXPECT_EQ(grid({"--end", "1.5"}), (Times{25, 75, 125}));
  EXPECT_EQ(grid({"--start", "4"}), (Times{400, 450, 500}));
  EXPECT_EQ(grid({"--start", "4.1", "--end", "4.7"}), (Times{410, 460}));
  EXPECT_EQ(grid({"--start", "-0.5", "--end", "1"}), (Times{50, 100})) << "points before the first sample are left out";
  EXPECT_EQ(grid({"--align", "--end", "2"}), (Times{50, 100, 150, 200}));
  EXPECT_EQ(grid({"--align", "--start", "4.1"}), (Times{450, 500}));
  expect_refused(ErrorCode::bad_parameter, {in, "-o", path("o.csv"), "--hz", "2", "--start", "9"},
                 {"no target", "--start"});
  expect_refused(ErrorCode::bad_parameter, {in, "-o", path("o.csv"), "--hz", "2", "--start", "2", "--end", "1"},
                 {"--start"});
  expect_refused(ErrorCode::bad_parameter, {in, "-o", path("o.csv"), "--hz", "2", "--start", "noon"}, {"ISO 8601"});
  expect_refused(ErrorCode::usage, {in, "-o", path("o.csv"), "--like", in, "--align"}, {"--align", "--hz"});
}

TEST_F(ResampleTimes, an_aligned_grid_is_exact_at_unix_time) {
  const std::string in = file("in.csv", "t,x\n1700000000.123456789,0.0\n1700000001.987654321,1.0\n");
  const auto done = run(in, {"--hz", "30", "--align"}, "out.csv");
  ASSERT_EQ(done.rows(), 56);
  EXPECT_EQ(done.times[0], 1'700'000'000'133'333'333);
  EXPECT_EQ(done.times[1], 1'700'000'000'166'666'667);
  EXPECT_EQ(done.times.back(), 1'700'000'001'966'666'667);
}

TEST_F(ResampleTimes, targets_of_a_file_are_cut_to_start_and_end) {
  const std::string in = file("in.csv", "t,x\n0,0.0\n5,5.0\n"), times = file("t.txt", "4\n1\n2\n3\n");
  EXPECT_EQ(values(run(in, {"--times", times, "--start", "2", "--end", "3.5"}, "out.csv"), "x"), (Values{2, 3}));
  expect_refused(ErrorCode::bad_parameter, {in, "-o", path("o.csv"), "--times", times, "--start", "8"},
                 {"t.txt", "--start"});
}

TEST_F(ResampleTimes, start_and_end_may_be_iso_times) {
  const std::string in = file("in.csv", "t,x\n1714564800,0.0\n1714564810,10.0\n");
  const auto done =
      run(in, {"--hz", "1", "--start", "2024-05-01T12:00:05Z", "--end", "2024-05-01T14:00:07.5+02:00"}, "out.csv");
  EXPECT_EQ(values(done, "x"), (Values{5, 6, 7}));
}

TEST_F(ResampleTimes, rows_are_sorted_on_demand) {
  const std::string in = file("in.csv", "t,x,task\n2,2.0,c\n0,0.0,a\n1,1.0,b\n");
  expect_refused(ErrorCode::times_not_sorted, {in, "-o", path("o.csv"), "--hz", "1"}, {"in.csv:3"});
  const auto done = run(in, {"--hz", "1", "--sort"}, "out.csv");
  EXPECT_EQ(values(done, "x"), (Values{0, 1, 2}));
  EXPECT_EQ(read_all(path("out.csv")), "t,x,task\n0,0.0,a\n1,1.0,b\n2,2.0,c\n");
  expect_text(last.err, "--sort moved 3 rows");
  // Equal stamps keep their order, and episodes stay apart.
  const std::string npz = archive("in.npz", {{"t", npy("<f8", "(5,)", raw<double>({1, 0, 0, 2, 1}))},
                                             {"x", npy("<f8", "(5,)", raw<double>({10, 11, 12, 20, 21}))},
                                             {"offsets", npy("<i8", "(3,)", raw<std::int64_t>({0, 3, 5}))}});
  const auto sorted = run(npz, {"--hz", "1", "--sort", "--duplicates", "last"});
  EXPECT_EQ(values(sorted, "x"), (Values{12, 10, 21, 20}));
}

TEST_F(ResampleTimes, each_file_has_a_unit_of_its_own) {
  // The pair that evo ships: EuRoC's ground truth in nanoseconds and an estimate as a TUM trajectory.
  const std::string euroc =
      file("groundtruth.csv", "#timestamp,p_RS_R_x [m]\n1403715523912140000,1.0\n1403715524912140000,2.0\n");
  const std::string tum = file("estimate.txt", "1403715524.412140 0 0 0 0 0 0 1\n");
  EXPECT_EQ(values(run(euroc, {"--like", tum}, "out.csv"), "p_RS_R_x [m]"), Values{1.5});
  EXPECT_EQ(values(run(euroc, {"--like", tum, "--time-unit", "ns"}, "out.csv"), "p_RS_R_x [m]"), Values{1.5});
  const std::string trajectory =
      file("trajectory.txt", "1403715523.912140 1 0 0 0 0 0 1\n1403715525.912140 3 0 0 0 0 0 1\n");
  EXPECT_EQ(values(run(trajectory, {"--like", euroc}, "out.txt"), "tx"), (Values{1, 2}));
  EXPECT_EQ(values(run(trajectory, {"--like", euroc, "--like-unit", "ns"}, "out.txt"), "tx"), (Values{1, 2}));
  const std::string in = file("in.csv", "t,x\n0,0.0\n4,4.0\n"), times = file("t.txt", "1000\n2000\n");
  EXPECT_EQ(values(run(in, {"--times", times, "--times-unit", "ms"}, "out.csv"), "x"), (Values{1, 2}));
  expect_refused(ErrorCode::target_outside, {in, "-o", path("o.csv"), "--times", file("r.txt", "1000.0\n2000.0\n")},
                 {"--time-unit", "--times-unit"});
  expect_refused(ErrorCode::target_outside, {in, "-o", path("o.csv"), "--like", file("l.csv", "t,x\n1000.0,1\n")},
                 {"--time-unit", "--like-unit"});
  run(in, {"--times", times}, "out.csv");
  expect_text(last.err, "warning: --times is in us by the size of its steps, and the recording in s (--times-unit");
  expect_refused(ErrorCode::usage, {in, "-o", path("o.csv"), "--hz", "1", "--like-unit", "ms"}, {"--like-unit"});
}

TEST_F(ResampleTimes, targets_that_all_lie_outside_are_a_warning_even_when_they_are_held) {
  const std::string in = file("in.csv", "t,x\n0,0.0\n4,4.0\n"), times = file("t.txt", "1000.0\n2000.0\n");
  run(in, {"--times", times, "--outside", "hold"});
  expect_text(last.err, "warning: no target lies within the recording", "1000 s to 2000 s");
}

TEST_F(ResampleTimes, the_output_has_the_unit_it_is_told) {
  const std::string in = file("in.csv", "t,x\n1700000000.123456789,0.0\n1700000000.123456803,1.0\n");
  const auto done = run(in, {"--like", in, "--to-unit", "ns"});
  EXPECT_EQ(done.times, (Times{1'700'000'000'123'456'789, 1'700'000'000'123'456'803}));
  run(in, {"--like", in, "--to-unit", "ms"}, "out.csv");
  expect_text(read_all(path("out.csv")), "t_ms,x\n1700000000123.456789,0.0\n");
  expect_refused(ErrorCode::usage,
                 {file("a.tum", "0 0 0 0 0 0 0 1\n"), "-o", path("o.tum"), "--hz", "1", "--to-unit", "ms"},
                 {"--to-unit"});
}

TEST_F(ResampleTimes, f32_seconds_that_resolve_too_little_are_a_warning) {
  const auto stamps = [&](float start) {
    std::vector<float> times;
    for (int i = 0; i < 100; ++i) times.push_back(start + 0.03F * static_cast<float>(i));
    return archive("in.npz", {{"t", npy("<f4", "(100,)", raw(times))}, {"x", npy("<f8", "(100,)", raw(Values(100)))}});
  };
  run(stamps(3600), {"--hz", "30"});
  expect_text(last.err, "warning: the times are of a type of 32 bits or less, which resolves 0.00024414");
  run(stamps(0), {"--hz", "30", "--strict"});
}

TEST_F(ResampleTimes, columns_that_look_wrong_are_warnings) {
  run(file("text.csv", "t,x,y\n0,1.0,on\n1,2.0,off\n2,0x10,on\n"), {"--hz", "1"});
  expect_text(last.err, "warning: column 'x' is text, though 2 of 3 fields are numbers", "0x10");
  EXPECT_EQ(last.err.find("column 'y'"), std::string::npos) << last.err;
  run(file("gone.csv", "t,x,y\n0,,1.0\n1,2.0,\n2,,3.0\n"), {"--hz", "1"});
  expect_text(last.err, "warning: column 'x' is mostly missing: 2 of 3 values");
  EXPECT_EQ(last.err.find("column 'y'"), std::string::npos) << last.err;
  run(file("two.csv", "timestamp,time,x\n0,7,1.0\n1,8,2.0\n"), {"--hz", "1"});
  expect_text(last.err, "warning: 'time' is named like a time too; the times are 'timestamp'");
}

}  // namespace
}  // namespace tmaops::test
