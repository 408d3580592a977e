// Going down in rate: modes over the interval of a target, the columns that get one by their names, and the warning of
// what the targets cannot hold.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "cli/resample_fixture.hpp"

namespace tmaops::test {
namespace {

class ResampleIntervalsCommand : public ResampleCommandTest {
 protected:
  io::Recording at_rate(const std::string& content, const std::string& hz, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{file("in.csv", content), "-o", path("out.csv"), "--force", "--hz", hz};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return expect_done(arguments, path("out.csv"));
  }
  static double total(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }
  void expect_said(const std::string& piece) const {
    EXPECT_NE(last.err.find(piece), std::string::npos) << "no '" << piece << "' in:\n" << last.err;
  }
  void expect_unsaid(const std::string& piece) const {
    EXPECT_EQ(last.err.find(piece), std::string::npos) << "'" << piece << "' in:\n" << last.err;
  }

  /// A column at 1 kHz for 4 s, its steps varied by up to `jitter` of a step.
  template <class Value>
  static std::string recorded(const Value& value, double jitter = 0) {
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> uniform(-jitter, jitter);
    std::string content = "t,x\n";
    for (int i = 0; i < 4000; ++i) {
      const double t = (i + (i == 0 ? 0 : uniform(random))) * 1e-3;
      content += std::to_string(t) + "," + std::to_string(value(t)) + "\n";
    }
    return content;
  }
};

constexpr double kTurn = 2 * std::numbers::pi;

TEST_F(ResampleIntervalsCommand, rewards_add_up_and_flags_reach_one_target_each) {
  std::string content = "t,next.reward,reward,done,terminated,x\n";
  for (int i = 0; i < 31; ++i)
    content += std::to_string(i / 30.0) + "," + std::to_string(0.25 * (i % 3)) + "," + std::to_string(i % 2) + "," +
               std::to_string(static_cast<int>(i == 29 || i == 3)) + "," + std::to_string(static_cast<int>(i == 30)) +
               "," + std::to_string(i) + ".0\n";
  for (const char* hz : {"7", "10", "15", "20", "50"}) {
    const io::Recording out = at_rate(content, hz);
    EXPECT_NEAR(total(values(out, "next.reward")), 7.5, 1e-9) << hz;
    EXPECT_EQ(total(values(out, "reward")), 15) << hz;
    if (std::string(hz) != "50") {
      EXPECT_EQ(total(values(out, "done")), 2) << hz;
    }
    EXPECT_EQ(values(out, "terminated").back(), 1) << hz;
    EXPECT_EQ(total(values(out, "terminated")), 1) << hz;
    for (const double value : values(out, "reward")) EXPECT_EQ(value, std::round(value));
    expect_said("next.reward sum");
    expect_said("done any");
    expect_said("x linear");
  }
  // Whoever wants it otherwise says so.
  EXPECT_LT(total(values(at_rate(content, "10", {"--mode", "done=previous"}), "done")), 2);
}

TEST_F(ResampleIntervalsCommand, a_flag_of_other_numbers_keeps_its_mode) {
  at_rate("t,success,is_last\n0,0.5,0\n0.1,0.25,0\n0.2,1,1\n", "5");
  expect_said("success linear");
  expect_said("is_last any");
}

TEST_F(ResampleIntervalsCommand, differences_of_actions_are_added_up_when_asked_and_it_is_said_that_they_are_not) {
  std::string content = "t,action,x\n";
  for (int i = 0; i < 91; ++i) content += std::to_string(i / 30.0) + ",0.0333,0.5\n";
  at_rate(content, "15");
  expect_said("action is taken as absolute");
  expect_said("--mode 'action=sum'");
  for (const char* hz : {"15", "20", "50"}) {
    const io::Recording out = at_rate(content, hz, {"--mode", "action=sum"});
    EXPECT_NEAR(total(values(out, "action")), 91 * 0.0333, 1e-6) << hz;
    expect_unsaid("taken as absolute");
  }
}

TEST_F(ResampleIntervalsCommand, whole_numbers_stay_whole_and_sums_carry_parts_on) {
  std::string content = "t,a,b,c,d,e\n";
  for (int i = 0; i < 20; ++i)
    content += std::to_string(i) + "," + std::to_string(i % 4) + "," + std::to_string(i % 5 - 2) + "," +
               std::to_string(100 - i) + "," + std::to_string(static_cast<int>(i % 8 == 7)) + "," + std::to_string(i) +
               "\n";
  const std::vector<std::string> modes{"--mode", "a=sum",  "--mode", "b=min",  "--mode",
                                       "c=max",  "--mode", "d=any",  "--mode", "e=count"};
  const io::Recording down = at_rate(content, "0.3", modes);
  EXPECT_EQ(total(values(down, "a")), 30);
  EXPECT_EQ(values(down, "b"), (std::vector<double>{-2, -1, -2, -2, -1, -2}));
  EXPECT_EQ(values(down, "c"), (std::vector<double>{100, 99, 96, 93, 89, 86}));
  EXPECT_EQ(values(down, "d"), (std::vector<double>{0, 0, 0, 1, 0, 1}));
  EXPECT_EQ(total(values(down, "e")), 20);
  const io::Recording up = at_rate(content, "3", modes);
  EXPECT_EQ(total(values(up, "a")), 30);
  EXPECT_EQ(total(values(up, "d")), 6);  // as long as before
}

TEST_F(ResampleIntervalsCommand, types_of_an_archive_stay_and_results_that_do_not_fit_are_refused) {
  const std::string in = archive("in.npz", {{"timestamps", npy("<f8", "(4,)", raw<double>({0, 1, 2, 3}))},
                                            {"n", npy("|u1", "(4,)", raw<std::uint8_t>({200, 100, 50, 7}))}});
  const io::Recording out = expect_done({in, "-o", path("out.npz"), "--hz", "0.5", "--mode", "n=max"}, path("out.npz"));
  EXPECT_EQ(values(out, "n"), (std::vector<double>{200, 100}));
  EXPECT_EQ(out.columns[0].data.type.descr, "|u1");
  expect_refused(ErrorCode::bad_column_mode, {in, "-o", path("o.npz"), "--hz", "0.1", "--mode", "n=sum"},
                 {"'n'", "357", "|u1"});
  expect_refused(ErrorCode::bad_column_mode, {in, "-o", path("o.npz"), "--hz", "0.5", "--mode", "n=mean"},
                 {"integers with mode mean", "sum, min, max, any or count"});
}

TEST_F(ResampleIntervalsCommand, what_targets_in_gaps_had_goes_to_the_ones_that_are_kept) {
  // A text file has no place for targets without data: those in the gap from 1 to 3 are left out.
  const std::string content = "t,reward,x\n0,1,0.5\n0.5,2,0.5\n1,4,0.5\n3,8,0.5\n3.5,16,0.5\n4,32,0.5\n";
  const io::Recording out = at_rate(content, "1.25", {"--max-gap", "1"});
  EXPECT_EQ(values(out, "reward").size(), 4U);
  EXPECT_EQ(total(values(out, "reward")), 63);
}

TEST_F(ResampleIntervalsCommand, a_vibration_above_half_the_new_rate_is_a_warning_and_lowpass_removes_it) {
  const auto vibration = [](double t) { return std::sin(kTurn * 40 * t + 0.3); };
  for (const double jitter : {0.0, 0.4}) {
    io::Recording out = at_rate(recorded(vibration, jitter), "30");
    expect_said("of the energy of x is above half the new rate");
    expect_said("--mode 'x=lowpass'");
    EXPECT_NE(resample({path("in.csv"), "-o", path("no.csv"), "--hz", "30", "--strict"}).exit_code, 0);
    out = at_rate(recorded(vibration, jitter), "30", {"--mode", "x=lowpass"});
    expect_unsaid("of the energy");
    double most = 0;
    const std::vector<double> x = values(out, "x");
    for (std::size_t i = 5; i + 5 < x.size(); ++i) most = std::max(most, std::abs(x[i]));
    EXPECT_LT(most, jitter > 0 ? 0.05 : 0.01);
    out = at_rate(recorded(vibration, jitter), "30", {"--mode", "x=mean"});
    expect_unsaid("of the energy");
  }
}

TEST_F(ResampleIntervalsCommand, what_the_new_rate_holds_gives_no_warning) {
  for (const double jitter : {0.0, 0.4}) {
    at_rate(recorded([](double t) { return 3 * std::sin(kTurn * 2 * t) + 0.2 * std::sin(kTurn * 40 * t); }, jitter),
            "30");
    expect_unsaid("of the energy");  // 0.4 % of it
    at_rate(recorded([](double t) { return 5 + 1e-3 * std::sin(kTurn * 40 * t); }, jitter), "30");
    expect_unsaid("of the energy");  // the last digits of a column at rest
    at_rate(recorded([](double t) { return std::sin(kTurn * 40 * t); }, jitter), "200");
    expect_unsaid("of the energy");
    at_rate(recorded([](double t) { return t; }, jitter), "2000");
    expect_unsaid("of the energy");
    at_rate(recorded([](double t) { return t < 2 ? 0.0 : 1.0; }, jitter), "30");
    expect_unsaid("of the energy");
  }
  // At the threshold: a tenth of the energy.
  at_rate(recorded([](double t) { return std::sin(kTurn * t) + 0.25 * std::sin(kTurn * 40 * t); }), "30");
  expect_unsaid("of the energy");  // 6 %
  at_rate(recorded([](double t) { return std::sin(kTurn * t) + 0.45 * std::sin(kTurn * 40 * t); }), "30");
  expect_said("% of the energy of x");  // 17 %
}

}  // namespace
}  // namespace tmaops::test
