// Trajectories of a motion capture, compared with an independent computation in long double: a synthetic one, and the
// one of the TUM RGB-D benchmark (freiburg2_desk) where it is found. TMAOPS_TEST_DATA names its folder; the default is
// ../shared/data beside the source tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <sstream>

#include "cli/resample_fixture.hpp"

namespace tmaops::test {
namespace {

using Quaternion = std::array<long double, 4>;  // x y z w

struct Pose {
  std::int64_t time = 0;  // nanoseconds
  std::array<long double, 3> position{};
  Quaternion rotation{};
};

// A reader of its own: nothing of tool/io.
std::vector<Pose> read_poses(const std::string& path) {
  std::vector<Pose> poses;
  std::istringstream lines(read_all(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    std::string stamp;
    Pose pose;
    fields >> stamp;
    const std::size_t point = stamp.find('.');
    std::string fraction = point == std::string::npos ? "" : stamp.substr(point + 1);
    fraction.resize(9, '0');
    pose.time = std::stoll(stamp.substr(0, point)) * 1'000'000'000 + std::stoll(fraction);
    for (long double& x : pose.position) fields >> x;
    for (long double& x : pose.rotation) fields >> x;
    if (!fields) throw std::runtime_error("cannot read '" + line + "'");
    poses.push_back(pose);
  }
  return poses;
}

Quaternion product(const Quaternion& a, const Quaternion& b) {
  return {a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1], a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
          a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3], a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]};
}
Quaternion inverse(const Quaternion& q) { return {-q[0], -q[1], -q[2], q[3]}; }
Quaternion unit(Quaternion q) {
  const long double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  for (long double& x : q) x /= norm;
  return q;
}
/// Angle of a rotation, in [0, pi].
long double angle_of(const Quaternion& q) {
  return 2 * std::atan2(std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]), std::abs(q[3]));
}
/// The rotation about the same axis by a fraction of the (shorter) angle.
Quaternion power(Quaternion q, long double fraction) {
  if (q[3] < 0)
    for (long double& x : q) x = -x;
  const long double sine = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
  if (sine == 0) return {0, 0, 0, 1};
  const long double half = angle_of(q) / 2 * fraction;
  return {q[0] / sine * std::sin(half), q[1] / sine * std::sin(half), q[2] / sine * std::sin(half), std::cos(half)};
}

/// Compares every resampled pose with the interpolation of its neighbours, and the stamps with the grid.
void check(const std::vector<Pose>& source, const std::vector<Pose>& resampled, double hz, std::int64_t max_gap) {
  long double position_error = 0, rotation_error = 0;
  std::size_t row = 0;
  for (std::int64_t i = 0;; ++i) {
    const std::int64_t time = source[0].time + std::llround(static_cast<long double>(i) * 1e9L / hz);
    if (time > source.back().time) break;
    auto after = std::upper_bound(source.begin(), source.end(), time,
                                  [](std::int64_t t, const Pose& pose) { return t < pose.time; });
    const Pose& from = *(after - 1);
    const Pose& to = after == source.end() ? from : *after;
    if (max_gap != 0 && time > from.time && to.time - from.time > max_gap) continue;  // must not be there
    ASSERT_LT(row, resampled.size());
    const Pose& got = resampled[row++];
    ASSERT_EQ(got.time, time) << "row " << row - 1;
    const long double w = to.time == from.time ? 0
                                               : static_cast<long double>(time - from.time) /
                                                     static_cast<long double>(to.time - from.time);
    for (std::size_t k = 0; k < 3; ++k)
      position_error = std::max(position_error,
                                std::abs(from.position[k] + w * (to.position[k] - from.position[k]) - got.position[k]));
    const Quaternion start = unit(from.rotation);
    const Quaternion want = product(start, power(product(inverse(start), unit(to.rotation)), w));
    rotation_error = std::max(rotation_error, angle_of(product(inverse(want), unit(got.rotation))));
  }
  EXPECT_EQ(row, resampled.size()) << "rows at times that are no targets";
  EXPECT_LT(position_error, 1e-6L) << "metres";
  EXPECT_LT(rotation_error, 1e-6L) << "radians";
  EXPECT_LT(position_error, 1e-14L) << "f64 is worth more than the tolerance";
  EXPECT_LT(rotation_error, 1e-14L);
}

class ResampleTrajectory : public ResampleCommandTest {
 protected:
  void compare(const std::string& in) {
    const std::vector<Pose> source = read_poses(in);
    for (const double hz : {30.0, 997.3}) {
      std::vector<std::string> arguments{in, "-o", path("out.txt"), "--hz", std::to_string(hz), "--force"};
      ASSERT_EQ(resample(arguments).exit_code, 0);
      check(source, read_poses(path("out.txt")), hz, 0);
      arguments.push_back("--max-gap=1");
      ASSERT_EQ(resample(arguments).exit_code, 0);
      check(source, read_poses(path("out.txt")), hz, 1'000'000'000);
    }
  }
  /// The real file, or nothing.
  static std::string real_data() {
    const std::string name = "/tum_fr2_desk_groundtruth.txt";
    if (const char* folder = std::getenv("TMAOPS_TEST_DATA"); folder != nullptr) return existing(folder + name);
    const std::string beside = existing(TMAOPS_SOURCE_DIR "/../shared/data" + name);
    return beside.empty() ? existing(TMAOPS_SOURCE_DIR "/../../shared/data" + name) : beside;
  }
  static std::string existing(const std::string& path) {
    return access(path.c_str(), R_OK) == 0 ? path : std::string();
  }
  /// Irregular stamps at UNIX seconds, a gap of 12 s, quaternions whose sign flips, a tumbling body.
  std::string synthetic() const {
    std::mt19937_64 random(20261121);
    std::uniform_int_distribution<std::int64_t> step(1, 200);  // 0.1 ms
    std::string text = "# timestamp tx ty tz qx qy qz qw\n";
    std::int64_t tick = 13118681638697;
    char line[256];
    for (int i = 0; i < 5'000; ++i) {
      tick += i == 2'500 ? 120'000 : step(random);
      const double t = static_cast<double>(tick - 13118681638697) * 1e-4, a = 0.7 * t, b = 0.3 * t + 1;
      const double sign = random() % 50 == 0 ? -1 : 1;
      std::snprintf(line, sizeof line, "%lld.%04lld %.6f %.6f %.6f %.7f %.7f %.7f %.7f\n",
                    static_cast<long long>(tick / 10'000), static_cast<long long>(tick % 10'000), std::sin(t),
                    std::cos(1.7 * t), 0.1 * t, sign * std::sin(a) * std::cos(b), sign * std::sin(a) * std::sin(b),
                    sign * std::cos(a) * std::sin(b), sign * std::cos(a) * std::cos(b));
      text += line;
    }
    return file("synthetic.txt", text);
  }
};

TEST_F(ResampleTrajectory, a_synthetic_motion_capture_agrees_with_an_independent_computation) { compare(synthetic()); }

TEST_F(ResampleTrajectory, the_real_motion_capture_agrees_with_an_independent_computation) {
  const std::string in = real_data();
  if (in.empty()) GTEST_SKIP() << "no tum_fr2_desk_groundtruth.txt: set TMAOPS_TEST_DATA to the folder that has it";
  EXPECT_EQ(read_poses(in).size(), 20'957U);
  compare(in);
}

TEST_F(ResampleTrajectory, equal_stamps_are_counted_and_can_be_refused) {
  const std::string in = file("a.txt", "1 0 0 0 0 0 0 1\n2 1 0 0 0 0 0 1\n2 5 0 0 0 0 0 1\n3 6 0 0 0 0 0 1\n");
  const ToolResult done = resample({in, "-o", path("out.txt"), "--hz", "2"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("1 pair of samples with equal timestamps"), std::string::npos) << done.err;
  const std::vector<Pose> poses = read_poses(path("out.txt"));
  ASSERT_EQ(poses.size(), 5U);
  EXPECT_EQ(poses[1].position[0], 0.5L);
  EXPECT_EQ(poses[2].position[0], 5.0L);
  const ToolResult refused = resample({in, "-o", path("no.txt"), "--hz", "2", "--duplicates", "error"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("E032"), std::string::npos) << refused.err;
}

TEST_F(ResampleTrajectory, the_script_for_users_finds_the_same) {
  const char* chosen = std::getenv("TMAOPS_PYTHON");
  const std::string python = chosen != nullptr ? chosen : TMAOPS_PYTHON;
  if (python.empty() || Tool({"-c", "import numpy"}, {}, python).wait().exit_code != 0)
    GTEST_SKIP() << "no Python with numpy: set TMAOPS_PYTHON to one";
  const std::string in = real_data().empty() ? synthetic() : real_data();
  ASSERT_EQ(resample({in, "-o", path("out.txt"), "--hz", "30", "--max-gap", "1"}).exit_code, 0);
  const std::vector<std::string> arguments{TMAOPS_SOURCE_DIR "/scripts/check_trajectory.py", in, path("out.txt"),
                                           "--hz", "30"};
  auto with_gap = arguments;
  with_gap.push_back("--max-gap=1");
  const ToolResult good = Tool(with_gap, {}, python).wait();
  EXPECT_EQ(good.exit_code, 0) << good.out << good.err;
  const ToolResult bad = Tool(arguments, {}, python).wait();
  EXPECT_EQ(bad.exit_code, 1) << "it must notice that the targets in the gap are missing: " << bad.out;
}

}  // namespace
}  // namespace tmaops::test
