// npz archives as LeRobot, robomimic and RLDS exports have them.
#include <cmath>

#include "cli/resample_sweep_random.hpp"
#include "cli/resample_sweep_styles.hpp"
#include "support/npy_bytes.hpp"

namespace tmaops::test {
namespace {

using std::string;

template <class T>
string numbers(const string& descr, const std::vector<std::vector<double>*>& columns, std::size_t rows) {
  std::vector<T> values;
  for (std::size_t row = 0; row < rows; ++row)
    for (auto* column : columns) {
      values.push_back(static_cast<T>((*column)[row]));
      (*column)[row] = static_cast<double>(values.back());
    }
  const string shape = columns.size() == 1 ? "," : ", " + std::to_string(columns.size());
  return npy(descr, "(" + std::to_string(rows) + shape + ")", raw(values));
}

/// The quantities `first` to `last` as one array.
template <class T>
ZipPart array(Drive& drive, const string& name, const string& descr, std::size_t first, std::size_t last) {
  std::vector<std::vector<double>*> columns;
  for (std::size_t i = first; i < last; ++i)
    for (auto& column : drive.quantities[i].columns) columns.push_back(&column);
  return ZipPart::make(name + ".npy", numbers<T>(descr, columns, drive.times.size()));
}

Recorded npz_file(const Scratch& folder, const string& stem, Drive drive, const std::vector<ZipPart>& parts) {
  Recorded recorded;
  recorded.path = folder.file(stem + ".npz", zip(parts));
  recorded.drive = std::move(drive);
  recorded.archive = true;
  return recorded;
}

/// Times as the nearest f64 seconds: those of whole microseconds are read back exactly.
ZipPart f64_times(const Drive& drive, const string& name) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::vector<double> values;
  for (const std::int64_t time : drive.times)
    values.push_back(static_cast<double>(time / kSecond) + static_cast<double>(time % kSecond) / 1e9);
  return ZipPart::make(name + ".npy", npy("<f8", "(" + std::to_string(values.size()) + ",)", raw(values)));
}

ZipPart i64_array(const string& name, const std::vector<std::int64_t>& values) {
  return ZipPart::make(name + ".npy", npy("<i8", "(" + std::to_string(values.size()) + ",)", raw(values)));
}

void add_episodes(Random& random, Drive& drive, std::int64_t start, std::int64_t unit, std::int64_t step) {
  drive.offsets = {0};
  for (auto episodes = whole(random, 1, 3); episodes > 0; --episodes) {
    const auto times = stamps(random, start, unit, step);
    drive.times.insert(drive.times.end(), times.begin(), times.end());
    drive.offsets.push_back(static_cast<std::int64_t>(drive.times.size()));
  }
}

Recorded lerobot(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  add_episodes(random, drive, 0, 1'000'000, 33'000'000);
  const std::size_t rows = drive.times.size();
  drive.quantities.push_back(rotation(random, numbered("observation.orientation", 4), rows));
  add_walks(random, drive, numbered("observation.state", 3));
  add_walks(random, drive, numbered("action", 2));
  drive.quantities.push_back(counter(random, "frame_index", rows));
  std::vector<ZipPart> parts{f64_times(drive, "timestamp"),
                             array<float>(drive, "observation.orientation", "<f4", 0, 1),
                             array<float>(drive, "observation.state", "<f4", 1, 4),
                             array<float>(drive, "action", "<f4", 4, 6),
                             array<std::int64_t>(drive, "frame_index", "<i8", 6, 7),
                             i64_array("episode_offsets", drive.offsets)};
  Recorded recorded = npz_file(folder, stem, drive, parts);
  recorded.tolerance = 3e-7;
  recorded.time_tolerance = 1;
  return recorded;
}

Recorded robomimic(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, kUnix, 1'000, 50'000'000);
  one_episode(drive);
  const std::size_t rows = drive.times.size();
  add_walks(random, drive, numbered("robot0_eef_pos", 3));
  drive.quantities.push_back(rotation(random, numbered("robot0_eef_quat", 4), rows));
  add_walks(random, drive, numbered("robot0_gripper_qpos", 2));
  drive.quantities.push_back(counter(random, "dones", rows));
  std::vector<ZipPart> parts{f64_times(drive, "t"), array<double>(drive, "robot0_eef_pos", "<f8", 0, 3),
                             array<double>(drive, "robot0_eef_quat", "<f8", 3, 4),
                             array<double>(drive, "robot0_gripper_qpos", "<f8", 4, 6),
                             array<std::int64_t>(drive, "dones", "<i8", 6, 7)};
  Recorded recorded = npz_file(folder, stem, drive, parts);
  recorded.time_tolerance = 240;
  return recorded;
}

Recorded rlds(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  add_episodes(random, drive, kUnix, 1, 100'000'000);
  const std::size_t rows = drive.times.size();
  drive.quantities.push_back(rotation(random, numbered("observation/quat", 4), rows));
  add_walks(random, drive, numbered("action", 3));
  Quantity contact{Rule::held, {"observation/contact"}, {{}}, {}, 0};
  string flags;
  for (std::size_t row = 0; row < rows; ++row) {
    contact.columns[0].push_back(chance(random, 0.2) ? 1 : 0);
    flags += static_cast<char>(contact.columns[0].back());
  }
  drive.quantities.push_back(contact);
  const string shape = "(" + std::to_string(rows) + ",)";
  std::vector<ZipPart> parts{i64_array("timestamp", drive.times), array<double>(drive, "observation/quat", "<f8", 0, 1),
                             array<double>(drive, "action", "<f8", 1, 4),
                             ZipPart::make("observation/contact.npy", npy("|b1", shape, flags)),
                             i64_array("offsets", drive.offsets)};
  return npz_file(folder, stem, drive, parts);
}

}  // namespace

std::vector<Style> archive_styles() { return {{"LeRobot", lerobot}, {"robomimic", robomimic}, {"RLDS", rlds}}; }

}  // namespace tmaops::test
