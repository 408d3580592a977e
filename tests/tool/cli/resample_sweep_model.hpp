// What a resampling must give, computed apart from tmaops: linear, angle, slerp and previous in long double, from exact
// integer nanoseconds.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tmaops::test {

enum class Rule { linear, angle, quaternion, held, text };

/// Something that was recorded, and the columns of a flat table that it is found in. A quaternion has four, all else
/// one each.
struct Quantity {
  Rule rule = Rule::linear;
  std::vector<std::string> names{};
  std::vector<std::vector<double>> columns{};  // per name, per row; none for text
  std::vector<std::string> texts{};            // per row
  double turn = 0;                             // of an angle
};

struct Drive {
  std::vector<std::int64_t> times{};    // nanoseconds
  std::vector<std::int64_t> offsets{};  // of the episodes
  std::vector<Quantity> quantities{};
};

/// Where a target lies in its episode.
struct Bracket {
  std::size_t before = 0, after = 0;  // rows
  long double weight = 0;             // of `after`
  bool outside = false;
  bool in_gap = false;
};

inline Bracket find_bracket(const Drive& drive, std::size_t episode, std::int64_t target, std::int64_t max_gap) {
  const auto first = static_cast<std::size_t>(drive.offsets[episode]);
  const auto last = static_cast<std::size_t>(drive.offsets[episode + 1]) - 1;
  Bracket bracket{first, first, 0, target < drive.times[first] || target > drive.times[last], false};
  if (target >= drive.times[last]) bracket.before = bracket.after = last;
  for (std::size_t row = first; row < last; ++row)
    if (drive.times[row] <= target && target < drive.times[row + 1]) {
      const std::int64_t step = drive.times[row + 1] - drive.times[row];
      bracket.before = row;
      bracket.after = target == drive.times[row] ? row : row + 1;
      bracket.weight = static_cast<long double>(target - drive.times[row]) / static_cast<long double>(step);
      bracket.in_gap = max_gap != 0 && step > max_gap && bracket.after != row;
    }
  return bracket;
}

/// The grid of --hz over one episode.
inline std::vector<std::int64_t> grid_of(const Drive& drive, std::size_t episode, double hz) {
  const std::int64_t first = drive.times[static_cast<std::size_t>(drive.offsets[episode])];
  const std::int64_t last = drive.times[static_cast<std::size_t>(drive.offsets[episode + 1]) - 1];
  std::vector<std::int64_t> grid;
  for (int i = 0;; ++i) {
    const auto point = first + static_cast<std::int64_t>(
                                   std::llround(static_cast<long double>(i) * 1e9L / static_cast<long double>(hz)));
    if (point > last) return grid;
    grid.push_back(point);
  }
}

/// The way along the great circle from one unit quaternion to the nearer of the other and its negative.
inline std::array<long double, 4> slerp(std::array<long double, 4> from, std::array<long double, 4> to,
                                        long double weight) {
  const auto normalise = [](std::array<long double, 4>& q) {
    long double norm = 0;
    for (const long double x : q) norm += x * x;
    norm = std::sqrt(norm);
    for (long double& x : q) x /= norm;
    return norm;
  };
  normalise(from);
  normalise(to);
  long double dot = 0;
  for (std::size_t k = 0; k < 4; ++k) dot += from[k] * to[k];
  std::array<long double, 4> across{};
  for (std::size_t k = 0; k < 4; ++k) across[k] = (dot < 0 ? -to[k] : to[k]) - std::abs(dot) * from[k];
  long double length = 0;
  for (const long double x : across) length += x * x;
  length = std::sqrt(length);
  const long double angle = weight * std::atan2(length, std::abs(dot));
  for (std::size_t k = 0; k < 4; ++k)
    from[k] = from[k] * std::cos(angle) + (length > 0 ? across[k] / length : 0) * std::sin(angle);
  return from;
}

/// One component of a quantity at a target that has data. An angle is right up to whole turns.
inline long double expected(const Quantity& quantity, std::size_t component, const Bracket& at) {
  const auto value = [&](std::size_t k, std::size_t row) { return static_cast<long double>(quantity.columns[k][row]); };
  const long double from = value(component, at.before), to = value(component, at.after);
  switch (quantity.rule) {
    case Rule::held:
    case Rule::text:
      return from;
    case Rule::linear:
      return at.before == at.after ? from : from + at.weight * (to - from);
    case Rule::angle: {
      const auto turn = static_cast<long double>(quantity.turn);
      return from + at.weight * std::remainder(to - from, turn);
    }
    case Rule::quaternion: {
      std::array<long double, 4> a{}, b{};
      for (std::size_t k = 0; k < 4; ++k) a[k] = value(k, at.before), b[k] = value(k, at.after);
      return slerp(a, b, at.before == at.after ? 0 : at.weight)[component];
    }
  }
  return std::numeric_limits<long double>::quiet_NaN();
}

}  // namespace tmaops::test
