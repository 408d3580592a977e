// Random quantities that the styles of the sweep share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cli/resample_sweep_model.hpp"

namespace tmaops::test {

using Random = std::mt19937_64;
using std::string;

inline double uniform(Random& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
inline std::int64_t whole(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}
inline bool chance(Random& random, double p) { return uniform(random, 0, 1) < p; }

inline string printed(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Stamps at multiples of `unit` nanoseconds.
inline std::vector<std::int64_t> stamps(Random& random, std::int64_t start, std::int64_t unit, std::int64_t step) {
  std::vector<std::int64_t> times{start / unit * unit};
  for (auto rows = whole(random, 2, 40); rows > 1; --rows)
    times.push_back(times.back() + unit * std::max<std::int64_t>(1, whole(random, step / 4, 2 * step) / unit));
  return times;
}

inline Quantity walk(Random& random, string name, std::size_t rows) {
  Quantity quantity{Rule::linear, {std::move(name)}, {{}}, {}, 0};
  double value = uniform(random, -50, 50);
  for (std::size_t row = 0; row < rows; ++row) quantity.columns[0].push_back(value += uniform(random, -1, 1));
  return quantity;
}

inline Quantity counter(Random& random, string name, std::size_t rows) {
  Quantity quantity{Rule::held, {std::move(name)}, {{}}, {}, 0};
  for (std::size_t row = 0; row < rows; ++row)
    quantity.columns[0].push_back(static_cast<double>(whole(random, -9, 99)));
  return quantity;
}

inline Quantity words(Random& random, string name, std::size_t rows) {
  Quantity quantity{Rule::text, {std::move(name)}, {}, {}, 0};
  static const char* kWords[] = {"map", "odom", "pick up",
                                 "pl\xc3\xa4"
                                 "ce"};
  for (std::size_t row = 0; row < rows; ++row) quantity.texts.emplace_back(kWords[whole(random, 0, 3)]);
  return quantity;
}

/// A tumbling body whose quaternion changes its sign now and then; `names` in the order of the file, w where it stands.
inline Quantity rotation(Random& random, std::vector<string> names, std::size_t rows, bool planar = false) {
  Quantity quantity{Rule::quaternion, std::move(names), std::vector<std::vector<double>>(4), {}, 0};
  double a = uniform(random, -3, 3), b = planar ? 0 : uniform(random, -3, 3);
  for (std::size_t row = 0; row < rows; ++row) {
    a += uniform(random, -0.6, 0.6);
    if (!planar) b += uniform(random, -0.6, 0.6);
    const double sign = chance(random, 0.1) ? -1 : 1;
    const double x = planar ? 0 : sign * std::sin(a) * std::cos(b), y = planar ? 0 : sign * std::cos(a) * std::sin(b);
    const double z = sign * std::sin(a) * (planar ? 1 : std::sin(b)),
                 w = sign * std::cos(a) * (planar ? 1 : std::cos(b));
    const bool w_first = quantity.names[0].find('w') != string::npos;
    const double parts[] = {w_first ? w : x, w_first ? x : y, w_first ? y : z, w_first ? z : w};
    for (std::size_t k = 0; k < 4; ++k) quantity.columns[k].push_back(parts[k]);
  }
  return quantity;
}

inline std::vector<string> numbered(const string& name, int count) {
  std::vector<string> names;
  for (int k = 0; k < count; ++k) names.push_back(name + "_" + std::to_string(k));
  return names;
}
inline std::vector<string> with(const string& before, const char* letters, const string& after = "") {
  std::vector<string> names;
  for (const char* c = letters; *c != 0; ++c) names.push_back(before + *c + after);
  return names;
}

inline void add_walks(Random& random, Drive& drive, const std::vector<string>& names) {
  for (const string& name : names) drive.quantities.push_back(walk(random, name, drive.times.size()));
}

inline void one_episode(Drive& drive) { drive.offsets = {0, static_cast<std::int64_t>(drive.times.size())}; }

constexpr std::int64_t kUnix = 1'403'715'523'912'140'000;

}  // namespace tmaops::test
