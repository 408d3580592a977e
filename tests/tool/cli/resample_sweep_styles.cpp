#include "cli/resample_sweep_styles.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numbers>

#include "cli/resample_sweep_random.hpp"

namespace tmaops::test {
namespace {

using std::string;

/// The quantities as csv text; each number becomes what its text says. `time` prints the stamp of a row.
struct CsvWriter {
  string delimiter = ",";
  const char* format = "%.9g";
  bool quote_all = false;
  bool header = true;

  string field(const string& text, bool is_text) const {
    return quote_all || (is_text && text.find(delimiter) != string::npos) ? "\"" + text + "\"" : text;
  }
  string write(const string& time_names, Drive& drive, const std::function<string(std::size_t)>& time) const {
    string csv = time_names;
    for (const Quantity& quantity : drive.quantities)
      for (const string& name : quantity.names) csv += delimiter + field(name, true);
    csv = header ? csv + "\n" : "";
    for (std::size_t row = 0; row < drive.times.size(); ++row) {
      csv += time(row);
      for (Quantity& quantity : drive.quantities) {
        if (quantity.rule == Rule::text) csv += delimiter + field(quantity.texts[row], true);
        for (auto& column : quantity.columns) {
          string text = printed(column[row], quantity.rule == Rule::held ? "%.0f" : format);
          column[row] = std::strtod(text.c_str(), nullptr);
          // A column of whole numbers alone would be one of integers.
          if (quantity.rule == Rule::linear && text.find_first_of(".e") == string::npos) text += ".0";
          csv += delimiter + field(text, false);
        }
      }
      csv += '\n';
    }
    return csv;
  }
};

string seconds(std::int64_t nanoseconds, int digits) {
  string text = std::to_string(nanoseconds);
  text.insert(0, text.size() < 10 ? 10 - text.size() : 0, '0');
  text.insert(text.size() - 9, ".");
  return text.substr(0, text.size() - static_cast<std::size_t>(9 - digits));
}

Recorded csv_file(const Scratch& folder, const string& name, Drive drive, const string& content) {
  one_episode(drive);
  Recorded recorded;
  recorded.path = folder.file(name, content);
  recorded.drive = std::move(drive);
  return recorded;
}

Recorded euroc(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, kUnix, 1'000, 5'000'000);
  add_walks(random, drive, with("p_RS_R_", "xyz", " [m]"));
  drive.quantities.push_back(rotation(random, with("q_RS_", "wxyz", " []"), drive.times.size()));
  add_walks(random, drive, with("v_RS_R_", "xyz", " [m s^-1]"));
  const string csv =
      CsvWriter{}.write("#timestamp [ns]", drive, [&](std::size_t row) { return std::to_string(drive.times[row]); });
  return csv_file(folder, stem + ".csv", drive, csv);
}

Recorded ros(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, kUnix, 1, 20'000'000);
  drive.quantities.push_back(counter(random, "field.header.seq", drive.times.size()));
  drive.quantities.push_back(words(random, "field.header.frame_id", drive.times.size()));
  add_walks(random, drive, with("field.pose.pose.position.", "xyz"));
  drive.quantities.push_back(rotation(random, with("field.pose.pose.orientation.", "xyzw"), drive.times.size()));
  const string csv = CsvWriter{.format = "%.17g"}.write(
      "%time", drive, [&](std::size_t row) { return std::to_string(drive.times[row]); });
  return csv_file(folder, stem + ".csv", drive, csv);
}

Recorded tum(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, kUnix, 100'000, 10'000'000);
  add_walks(random, drive, {"tx", "ty", "tz"});
  drive.quantities.push_back(rotation(random, {"qx", "qy", "qz", "qw"}, drive.times.size()));
  const string text = CsvWriter{.delimiter = " ", .format = "%.4f", .header = false}.write(
      "", drive, [&](std::size_t row) { return seconds(drive.times[row], 4); });
  return csv_file(folder, stem + ".txt", drive, "# ground truth trajectory\n" + text);
}

/// A planar drive, with the zeros and whole numbers that %g, iostream and JavaScript write.
Recorded planar(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, whole(random, 0, 1'000'000'000'000), 1'000'000, 100'000'000);
  const std::size_t rows = drive.times.size();
  for (const char* name : {"tx", "ty", "tz"}) {
    drive.quantities.push_back(walk(random, name, rows));
    for (double& value : drive.quantities.back().columns[0])
      value = name == string("tz") ? 0 : name == string("ty") ? std::round(value) : value;
  }
  drive.quantities.push_back(rotation(random, {"qx", "qy", "qz", "qw"}, rows, true));
  string csv = "timestamp,tx,ty,tz,qx,qy,qz,qw\n";
  for (std::size_t row = 0; row < rows; ++row) {
    csv += seconds(drive.times[row], 3);
    for (Quantity& quantity : drive.quantities)
      for (auto& column : quantity.columns) {
        const string text = printed(column[row] + 0.0, "%g");
        column[row] = std::strtod(text.c_str(), nullptr);
        csv += "," + text;
      }
    csv += '\n';
  }
  return csv_file(folder, stem + ".csv", drive, csv);
}

/// A vehicle whose heading wraps around, in radians or degrees.
Recorded heading(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, 0, 1'000'000, 50'000'000);
  add_walks(random, drive, {"x", "y"});
  const bool degrees = chance(random, 0.5);
  Quantity yaw{
      Rule::angle, {degrees ? "heading [deg]" : "vehicle_yaw"}, {{}}, {}, degrees ? 360 : 2 * std::numbers::pi};
  double value = uniform(random, -3, 3);
  for (std::size_t row = 0; row < drive.times.size(); ++row) {
    value += uniform(random, -1, 1);
    const double wrapped = std::remainder(value, 2 * std::numbers::pi);
    yaw.columns[0].push_back(
        degrees ? (wrapped < 0 ? wrapped * 180 / std::numbers::pi + 360 : wrapped * 180 / std::numbers::pi) : wrapped);
  }
  drive.quantities.push_back(yaw);
  const string csv =
      CsvWriter{.format = "%.12f"}.write("t", drive, [&](std::size_t row) { return seconds(drive.times[row], 3); });
  Recorded recorded = csv_file(folder, stem + ".csv", drive, csv);
  recorded.command.modes = {(degrees ? "heading" : "vehicle_yaw") + string("=angle")};
  recorded.tolerance = 1e-11;  // of up to 360
  return recorded;
}

Recorded pandas(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, kUnix, 1'000, 33'000'000);
  add_walks(random, drive, {"left_tx", "left_ty", "left_tz"});
  drive.quantities.push_back(rotation(random, with("left_q", "xyzw"), drive.times.size()));
  drive.quantities.push_back(words(random, "task", drive.times.size()));
  drive.quantities.push_back(counter(random, "step", drive.times.size()));
  const string csv = CsvWriter{.format = "%.17g", .quote_all = true}.write(
      "\"timestamp\"", drive, [&](std::size_t row) { return "\"" + seconds(drive.times[row], 6) + "\""; });
  return csv_file(folder, stem + ".csv", drive, csv);
}

Recorded iso_times(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, kUnix, 1'000, 100'000'000);
  add_walks(random, drive, {"latitude", "longitude"});
  drive.quantities.push_back(rotation(random, with("orientation_", "xyzw"), drive.times.size()));
  const string csv = CsvWriter{}.write("time", drive, [&](std::size_t row) {
    const std::time_t whole_seconds = drive.times[row] / 1'000'000'000;
    std::tm parts{};
    gmtime_r(&whole_seconds, &parts);
    char text[64];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.", &parts);
    return text + seconds(drive.times[row] % 1'000'000'000, 6).substr(2) + "Z";
  });
  return csv_file(folder, stem + ".csv", drive, csv);
}

Recorded seconds_and_nanoseconds(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, kUnix, 1, 20'000'000);
  add_walks(random, drive, with("pose.position.", "xyz"));
  drive.quantities.push_back(rotation(random, with("pose.orientation.", "xyzw"), drive.times.size()));
  const string csv = CsvWriter{}.write("secs,nsecs", drive, [&](std::size_t row) {
    return std::to_string(drive.times[row] / 1'000'000'000) + "," + std::to_string(drive.times[row] % 1'000'000'000);
  });
  return csv_file(folder, stem + ".csv", drive, csv);
}

Recorded kitti(Random& random, const Scratch& folder, const string& stem) {
  Drive drive;
  drive.times = stamps(random, 0, 1'000, 100'000'000);
  add_walks(random, drive, {"tx", "ty", "tz"});
  drive.quantities.push_back(rotation(random, {"qx", "qy", "qz", "qw"}, drive.times.size()));
  string poses, times;
  for (std::size_t row = 0; row < drive.times.size(); ++row) {
    std::array<double, 4> q{};
    for (std::size_t k = 0; k < 4; ++k) q[k] = drive.quantities[3].columns[k][row];
    const auto [x, y, z, w] = q;
    const double matrix[] = {
        1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),     drive.quantities[0].columns[0][row],
        2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),     drive.quantities[1].columns[0][row],
        2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y), drive.quantities[2].columns[0][row]};
    for (int k = 0; k < 12; ++k) poses += printed(matrix[k], "%.17g") + (k == 11 ? "\n" : " ");
    times += printed(static_cast<double>(drive.times[row]) / 1e9, "%.9e") + "\n";
  }
  Recorded recorded = csv_file(folder, stem + ".txt", drive, poses);
  recorded.command.kitti_times = folder.file(stem + "_times.txt", times);
  recorded.tolerance = 1e-7;  // a quaternion from a rounded matrix
  return recorded;
}

}  // namespace

const std::vector<Style>& styles() {
  static const std::vector<Style> all = [] {
    std::vector<Style> styles{{"EuRoC", euroc},
                              {"ROS", ros},
                              {"TUM", tum},
                              {"planar", planar},
                              {"heading", heading},
                              {"pandas", pandas},
                              {"ISO times", iso_times},
                              {"secs and nsecs", seconds_and_nanoseconds},
                              {"KITTI", kitti}};
    for (const Style& style : archive_styles()) styles.push_back(style);
    return styles;
  }();
  return all;
}

}  // namespace tmaops::test
