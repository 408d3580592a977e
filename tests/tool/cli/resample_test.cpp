// `tmaops resample` on good input: formats, targets, modes, policies.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/resample_fixture.hpp"
#include "io/npz.hpp"

namespace tmaops::test {
namespace {

using Times = std::vector<std::int64_t>;
using Values = std::vector<double>;

class ResampleCommand : public ResampleCommandTest {};

const char* kTum =
    "# timestamp tx ty tz qx qy qz qw\n"
    "1311868163.0 0 0 0 0 0 0 1\n"
    "1311868164.0 1 2 3 0 0 0.7071067811865476 0.7071067811865476\n"
    "1311868165.0 2 4 6 0 0 -1 0\n";  // the sign flipped: 180 degrees about z

TEST_F(ResampleCommand, a_tum_trajectory_gets_lerp_and_shortest_arc_slerp) {
  const auto recording = expect_done({file("in.txt", kTum), "-o", path("out.txt"), "--hz", "2"}, path("out.txt"));
  EXPECT_EQ(recording.times.size(), 5U);
  EXPECT_EQ(recording.times[1], 1311868163500000000);
  EXPECT_EQ(values(recording, "tx"), (Values{0, 0.5, 1, 1.5, 2}));
  const double eighth = std::acos(-1.0) / 8;
  EXPECT_NEAR(values(recording, "qz")[1], std::sin(eighth), 1e-15);
  EXPECT_NEAR(std::abs(values(recording, "qz")[3]), std::sin(3 * eighth), 1e-15);
  EXPECT_NE(last.err.find("5 rows from 3 samples"), std::string::npos) << last.err;
  EXPECT_EQ(last.out, "");
}

TEST_F(ResampleCommand, a_grid_does_not_drift) {
  const auto recording =
      expect_done({file("in.csv", "t_s,x\n0,0.0\n3600,1.0\n"), "-o", path("out.npz"), "--hz", "30"}, path("out.npz"));
  ASSERT_EQ(recording.times.size(), 108'001U);
  EXPECT_EQ(recording.times[1], 33'333'333);
  EXPECT_EQ(recording.times[108'000], 3'600'000'000'000);
}

TEST_F(ResampleCommand, a_rate_below_one_sample_of_the_recording_gives_its_first_stamp) {
  const std::string in = file("in.csv", "t,x\n0,1.0\n1,2.0\n");
  for (const char* hz : {"0.9", "1e-9", "1e-10", "1e-300"}) {  // the last two: steps beyond 64 bits of nanoseconds
    const auto recording =
        expect_done({in, "-o", path("out.npz"), "--hz", hz, "--outside", "hold", "--force"}, path("out.npz"));
    EXPECT_EQ(recording.times, (std::vector<std::int64_t>{0})) << hz;
  }
}

TEST_F(ResampleCommand, targets_come_from_files_of_any_kind) {
  const std::string in = file("in.csv", "t,x\n0,0.0\n4,4.0\n");
  const auto named = expect_done(
      {in, "-o", path("n.csv"), "--times", file("two.csv", "a,b\n1,2\n"), "--targets-array", "b"}, path("n.csv"));
  EXPECT_EQ(values(named, "x"), Values{2});
  const std::vector<std::pair<const char*, std::string>> targets{
      {"--times", file("t.txt", "3\n1\n")},
      {"--times", file("t.npy", npy("<f8", "(2,)", raw<double>({3, 1})))},
      {"--times", archive("s.npz", {{"anything", npy("<f8", "(2,)", raw<double>({3, 1}))}})},
      {"--times", archive("t.npz", {{"times", npy("<f8", "(2,)", raw<double>({3, 1}))}})},
      {"--like", file("like.csv", "y,time\nfoo,3\nbar,1\n")},
      {"--like", file("like.txt", "3 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 1\n")}};
  for (const auto& [option, target] : targets) {
    const auto recording = expect_done({in, "-o", path("out.csv"), option, target, "--force"}, path("out.csv"));
    EXPECT_EQ(values(recording, "x"), (Values{3, 1})) << target;  // in the order asked for
  }
}

TEST_F(ResampleCommand, modes_are_chosen_by_name_range_number_and_group) {
  const std::string in =
      file("in.csv", "t,px,py,pz,gripper,count,task\n0,0.0,0.0,0.0,0.0,1,pick\n1,1.0,1.0,1.0,1.0,2,place\n");
  const auto at = [&](std::vector<std::string> modes, const std::string& column) {
    std::vector<std::string> arguments{in, "-o", path("out.csv"), "--times", file("t.txt", "0.75\n"), "--force"};
    for (const std::string& mode : modes) arguments.insert(arguments.end(), {"--mode", mode});
    return values(expect_done(arguments, path("out.csv")), column).at(0);
  };
  EXPECT_EQ(at({}, "gripper"), 0.75);
  EXPECT_EQ(at({}, "count"), 1);
  EXPECT_EQ(at({"gripper=previous"}, "gripper"), 0);
  EXPECT_EQ(at({"5=previous"}, "gripper"), 0);
  EXPECT_EQ(at({"py..gripper=next"}, "py"), 1);
  EXPECT_EQ(at({"py..gripper=next"}, "px"), 0.75);
  EXPECT_EQ(at({"2..4=previous"}, "pz"), 0);
  EXPECT_EQ(at({"px,pz=next", "pz=previous"}, "pz"), 0);
  EXPECT_EQ(at({"position=nearest"}, "px"), 1);
  EXPECT_EQ(at({"previous"}, "px"), 0);
  EXPECT_EQ(at({"*=nearest"}, "count"), 2);
  EXPECT_EQ(at({"count,task=next", "position=cubic"}, "count"), 2);
  const std::string written = read_all(path("out.csv"));
  EXPECT_NE(written.find("place"), std::string::npos) << written;
}

TEST_F(ResampleCommand, an_archive_keeps_types_names_episodes_and_other_arrays) {
  const std::string in = archive(
      "in.npz",
      {{"timestamps", npy("<i8", "(5,)", raw<std::int64_t>({0, 1'000'000'000, 5, 1'000'000'005, 2'000'000'005}))},
       {"offsets", npy("<i8", "(3,)", raw<std::int64_t>({0, 2, 5}))},
       {"state", npy("<f4", "(5, 2)", raw<float>({0, 0, 1, 10, 2, 20, 3, 30, 4, 40}))},
       {"large", npy("<i8", "(5,)", raw<std::int64_t>({9'007'199'254'740'993, 2, 3, 4, 5}))},
       {"done", npy("|b1", "(5,)", std::string("\0\1\0\0\1", 5))},
       {"task", npy("|S2", "(5,)", "aabbccddee")},
       {"half", npy("<f2", "(5,)", raw<std::uint16_t>({0x3c00, 0x4000, 0x3c00, 0x4000, 0x4200}))},
       {"brain.bf16", npy("<u2", "(5,)", raw<std::uint16_t>({0x3f80, 0x4000, 0x3f80, 0x4000, 0x4040}))},
       {"camera", npy("<f8", "(3,)", raw<double>({7, 8, 9}))}});
  const auto recording = expect_done({in, "-o", path("out.npz"), "--hz", "2"}, path("out.npz"));
  EXPECT_EQ(recording.offsets, (Times{0, 3, 8}));
  EXPECT_EQ(recording.times,
            (Times{0, 500'000'000, 1'000'000'000, 5, 500'000'005, 1'000'000'005, 1'500'000'005, 2'000'000'005}));
  const io::NpzReader npz(path("out.npz"));
  EXPECT_EQ(npz.read("state").text(), "(8, 2) <f4");
  EXPECT_EQ(npz.read("timestamps").type.descr, "<i8");
  EXPECT_EQ(values(recording, "state"), (Values{0, 0, 0.5, 5, 1, 10, 2, 20, 2.5, 25, 3, 30, 3.5, 35, 4, 40}));
  EXPECT_EQ(io::element_i64(npz.read("large"), 1), 9'007'199'254'740'993) << "integers are copied, not converted";
  EXPECT_EQ(npz.read("done").type.kind, io::ElementKind::boolean);
  EXPECT_EQ(io::element_text(npz.read("task"), 7), "ee");
  EXPECT_EQ(values(recording, "half")[1], 1.5);
  EXPECT_EQ(values(recording, "brain.bf16")[1], 1.5);
  EXPECT_EQ(npz.read("camera").shape[0], 3);
}

TEST_F(ResampleCommand, each_outside_policy_does_what_it_says) {
  const std::string in = file("in.csv", "t,x,n\n1,1.0,1\n2,2.0,2\n"), times = file("t.txt", "0.5\n1.5\n2.5\n");
  const auto x = [&](std::vector<std::string> more, const char* out) {
    more.insert(more.begin(), {in, "-o", path(out), "--times", times, "--force"});
    return values(expect_done(more, path(out)), "x");
  };
  EXPECT_EQ(x({}, "out.csv"), Values{1.5});
  EXPECT_NE(last.err.find("2 of 3 targets lie outside the recording: drop"), std::string::npos) << last.err;
  EXPECT_EQ(x({"--outside", "hold"}, "out.csv"), (Values{1, 1.5, 2}));
  EXPECT_EQ(x({"--outside", "extrapolate"}, "out.csv"), (Values{0.5, 1.5, 2.5}));
  EXPECT_TRUE(std::isnan(x({"--outside", "nan"}, "out.csv").at(0)));
  EXPECT_NE(read_all(path("out.csv")).find("0.5,nan,\n"), std::string::npos) << "an integer without data is empty";
  EXPECT_TRUE(std::isnan(x({}, "out.npz").at(2)));
  EXPECT_EQ(values(io::read_recording(path("out.npz")), "valid"), (Values{0, 1, 0}));
  EXPECT_EQ(x({"--outside", "drop"}, "out.npz"), Values{1.5});
  expect_refused(ErrorCode::target_outside, {in, "-o", path("new.csv"), "--times", times, "--outside", "error"});
  expect_refused(ErrorCode::target_outside, {in, "-o", path("new.csv"), "--times", file("far.txt", "100\n101\n")},
                 {"all 2 targets", "--time-unit"});
}

TEST_F(ResampleCommand, nothing_is_interpolated_across_a_gap) {
  const std::string in = file("in.csv", "t,x\n0,0.0\n1,1.0\n11,11.0\n12,12.0\n");
  const auto dropped = expect_done({in, "-o", path("out.csv"), "--hz", "1", "--max-gap", "2"}, path("out.csv"));
  EXPECT_EQ(values(dropped, "x"), (Values{0, 1, 11, 12}));
  EXPECT_NE(last.err.find("9 of 13 targets lie in 1 gap wider than 2 s: dropped"), std::string::npos) << last.err;
  const auto masked = expect_done({in, "-o", path("out.npz"), "--hz", "1", "--max-gap", "2"}, path("out.npz"));
  EXPECT_EQ(values(masked, "valid"), (Values{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}));
  EXPECT_TRUE(std::isnan(values(masked, "x")[5]));
  const auto exact = expect_done({in, "-o", path("b.csv"), "--hz", "1", "--max-gap", "10"}, path("b.csv"));
  EXPECT_EQ(exact.rows(), 13) << "a step of exactly the limit is no gap";
  const std::string pause = file("pause.csv", "t,x\n0,0.0\n1,1.0\n2,2.0\n100,2.0\n");
  expect_done({pause, "-o", path("c.csv"), "--hz", "1"}, path("c.csv"));
  EXPECT_NE(last.err.find("longest step is 98 s"), std::string::npos) << last.err;
}

TEST_F(ResampleCommand, what_a_plot_shows_has_every_target_and_the_samples) {
  const std::string in = file("in.csv", "t,x,offsets\n0,0.0,7\n1,1.0,8\n9,9.0,9\n");
  std::filesystem::create_directory(folder / "plot");
  const auto recording = expect_done(
      {in, "-o", path("out.csv"), "--hz", "0.5", "--max-gap", "2", "--plot-data", path("plot")}, path("out.csv"));
  EXPECT_EQ(values(recording, "x"), Values{0});
  const auto arrays = [this](const char* name) {
    const io::NpzReader archive(folder / name);
    std::map<std::string, Values> all;
    for (const std::string& each : archive.names()) {
      const io::Array array = archive.read(each);
      for (std::int64_t i = 0; i < array.size(); ++i) all[each].push_back(io::element_f64(array, i));
    }
    return all;
  };
  const auto before = arrays("plot/before.npz");
  EXPECT_EQ(before.at("x"), (Values{0, 1, 9}));
  EXPECT_EQ(before.at("t_ns"), (Values{0, 1e9, 9e9}));
  const auto after = arrays("plot/after.npz");
  EXPECT_EQ(after.at("t_ns"), (Values{0, 2e9, 4e9, 6e9, 8e9}));
  EXPECT_EQ(after.at("valid"), (Values{1, 0, 0, 0, 0}));
  EXPECT_EQ(after.at("offsets"), (Values{7, 0, 0, 0, 0}));  // the column
  EXPECT_EQ(after.at("offsets_2"), (Values{0, 5}));         // of the episodes
  EXPECT_EQ(nlohmann::json::parse(read_all(folder / "plot/summary.json"))["gaps"]["max_gap_ns"], 2'000'000'000);
}

TEST_F(ResampleCommand, formats_convert_into_each_other) {
  const std::string in = file("in.txt", kTum);
  expect_done({in, "-o", path("a.npz"), "--hz", "2", "--compress"}, path("a.npz"));
  expect_done({path("a.npz"), "-o", path("b.csv"), "--hz", "2"}, path("b.csv"));
  expect_done({path("b.csv"), "-o", path("c.txt"), "--hz", "2"}, path("c.txt"));
  expect_done({in, "-o", path("d.txt"), "--hz", "2"}, path("d.txt"));
  const auto c = io::read_recording(path("c.txt")), d = io::read_recording(path("d.txt"));
  ASSERT_EQ(c.rows(), d.rows());
  for (std::size_t i = 0; i < d.times.size(); ++i) {
    EXPECT_LE(std::abs(c.times[i] - d.times[i]), 120) << "npz keeps times of text as f64 seconds: 2^-23 s at UNIX time";
    for (const char* name : {"tx", "qz", "qw"}) EXPECT_NEAR(values(c, name)[i], values(d, name)[i], 3e-7) << name;
  }
  expect_done({file("noext", kTum), "--from", "tum", "-o", path("noext2"), "--to", "tum", "--hz", "2"}, path("d.txt"));
  EXPECT_EQ(read_all(path("noext2")), read_all(path("d.txt")));
}

TEST_F(ResampleCommand, what_a_text_file_has_no_place_for_is_named) {
  const std::string in = archive("in.npz", {{"t", npy("<f8", "(1,)", raw<double>({0}))},
                                            {"position", npy("<f8", "(1, 3)", raw<double>({1, 2, 3}))},
                                            {"quaternion", npy("<f8", "(1, 4)", raw<double>({0, 0, 0, 1}))},
                                            {"gripper", npy("<f8", "(1,)", raw<double>({1}))},
                                            {"camera", npy("<f8", "(2,)", raw<double>({7, 8}))}});
  const auto said = [&](const char* out) {
    expect_done({in, "-o", path(out), "--hz", "1"}, path(out));
    const std::size_t at = last.err.find("left out");
    return at == std::string::npos ? "" : last.err.substr(at, last.err.find('\n', at) - at);
  };
  EXPECT_EQ(said("out.npz"), "");
  EXPECT_EQ(said("out.csv"), "left out, since csv has no place for them: camera");
  EXPECT_EQ(said("out.tum"), "left out, since tum has no place for them: gripper, camera");
}

TEST_F(ResampleCommand, times_keep_their_unit_in_another_format) {
  using io::TimeUnit;
  const std::vector<std::pair<std::string, const char*>> inputs{
      {archive("a.npz", {{"timestamp", npy("<i8", "(2,)", raw<std::int64_t>({0, 1'000'000'000}))}}), "ns"},
      {archive("b.npz", {{"t", npy("<f8", "(2,)", raw<double>({0, 1'000}))}}), "ms"},
      {file("c.csv", "t,x\n0,1.0\n1,2.0\n"), "s"},
      {file("d.csv", "time_us,x\n0,1.0\n1000000,2.0\n"), "us"}};
  for (const auto& [in, unit] : inputs)
    for (const char* out : {"out.csv", "out.npz"}) {
      // Targets on whole units and between them.
      for (const char* hz : {"1", "3"}) {
        const bool same = std::filesystem::path(in).extension() == std::filesystem::path(out).extension();
        last = resample({in, "-o", path(out), "--hz", hz, "--time-unit", unit, "--force"});
        ASSERT_EQ(last.exit_code, 0) << last.err;
        const auto back =
            io::read_recording(path(out), {.unit = same ? io::parse_time_unit(unit) : std::optional<TimeUnit>()});
        EXPECT_EQ(back.times.back(), 1'000'000'000) << in << " " << out << " " << hz;
      }
    }
}

TEST_F(ResampleCommand, json_is_on_stdout_and_says_what_happened) {
  const std::string in = file("in.csv", "t_s,x,n\n0,0.0,1\n1,1.0,2\n");
  const auto result = resample({in, "-o", path("out.csv"), "--times", file("t.txt", "0.5\n7\n"), "--json"});
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["rows"], 1);
  EXPECT_EQ(json["targets"], 2);
  EXPECT_EQ(json["outside"]["targets"], 1);
  EXPECT_EQ(json["columns"][1]["mode"], "previous");
  const auto quiet = resample({in, "-o", path("out.csv"), "--hz", "1", "--quiet", "-f"});
  EXPECT_EQ(quiet.err + quiet.out, "");
}

TEST_F(ResampleCommand, one_sample_and_empty_episodes_are_fine) {
  const auto one = expect_done({file("one.csv", "t,x\n5,1.5\n"), "-o", path("a.csv"), "--hz", "10"}, path("a.csv"));
  EXPECT_EQ(values(one, "x"), Values{1.5});
  const std::string in = archive("in.npz", {{"t", npy("<f8", "(2,)", raw<double>({0, 1}))},
                                            {"offsets", npy("<i4", "(4,)", raw<std::int32_t>({0, 0, 2, 2}))},
                                            {"x", npy("<f8", "(2,)", raw<double>({0, 1}))}});
  EXPECT_EQ(expect_done({in, "-o", path("b.npz"), "--hz", "2"}, path("b.npz")).offsets, (Times{0, 0, 3, 3}));
  const auto masked = expect_done({in, "-o", path("c.npz"), "--times", file("t.txt", "0.5\n")}, path("c.npz"));
  EXPECT_EQ(values(masked, "valid"), (Values{0, 1, 0}));
}

TEST_F(ResampleCommand, thread_counts_and_locales_do_not_change_a_byte) {
  std::string csv = "t,x,y\n";
  for (int i = 0; i < 5'000; ++i)
    csv += std::to_string(i) + "." + std::to_string(i % 7) + "," + std::to_string(i * 37 % 101) + ".25," +
           std::to_string(i) + ".5\n";
  const std::string in = file("in.csv", csv);
  std::string first;
  for (const Tool::Environment& environment :
       {Tool::Environment{{"TMAOPS_NUM_THREADS", "1"}}, Tool::Environment{{"TMAOPS_NUM_THREADS", "7"}},
        Tool::Environment{{"OMP_NUM_THREADS", "0"}},
        Tool::Environment{{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}},
        Tool::Environment{{"LC_ALL", "nonsense"}}}) {
    expect_done({in, "-o", path("out.csv"), "--hz", "3.7", "--mode", "y=cubic", "--force"}, path("out.csv"),
                environment);
    if (first.empty()) first = read_all(path("out.csv"));
    EXPECT_EQ(read_all(path("out.csv")), first);
  }
  EXPECT_GT(first.size(), 100'000U);
}

}  // namespace
}  // namespace tmaops::test
