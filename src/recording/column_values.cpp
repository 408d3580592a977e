// Norms of quaternions, ranges of angles, and masks, from the values of columns.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "core/spelling.hpp"
#include "recording/column_rules.hpp"
#include "recording/decimal.hpp"

namespace tmaops::recording {
namespace {

constexpr double kNormTolerance = 1e-3;
constexpr double kCoarseNormTolerance = 1e-2;  // of 16-bit numbers
constexpr double kOtherRows = 0.01;            // share of the rows that may have another norm
constexpr double kRangeTolerance = 1e-3;       // of a turn, by which a rounded angle may pass its range

double norm_of(const ColumnView& view, std::span<const ChannelReference> channels, std::int64_t row) {
  double sum = 0;
  for (const ChannelReference& channel : channels) {
    const double value = view.value(channel, row);
    sum += value * value;
  }
  return std::sqrt(sum);
}

/// Whether the channels can be a rotation: rows of 0 and 1 alone are a one-hot code, and constant rows do not turn.
bool turns(const ColumnView& view, std::span<const ChannelReference> channels) {
  bool fraction = false, change = false;
  for (std::int64_t row = 0; row < view.rows() && !(fraction && change); ++row)
    for (const ChannelReference& channel : channels) {
      const double value = view.value(channel, row);
      fraction = fraction || (std::abs(value) > kNormTolerance && std::abs(std::abs(value) - 1) > kNormTolerance);
      change = change || std::abs(value - view.value(channel, 0)) > kNormTolerance;
    }
  return fraction && change;
}

/// The least and the greatest value of a channel; a NaN or an infinity is neither.
std::pair<double, double> range_of(const Column& column, std::int64_t channel) {
  constexpr std::size_t kLanes = 8, kPart = 256;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::array<double, kPart> values;
  std::array<double, kLanes> least, greatest;  // of every eighth value, as vectors have them
  least.fill(kInfinity);
  greatest.fill(-kInfinity);
  const std::int64_t width = column.width(), rows = column.data.shape[0];
  for (std::int64_t row = 0; row < rows; row += static_cast<std::int64_t>(kPart)) {
    const auto count = static_cast<std::size_t>(std::min(static_cast<std::int64_t>(kPart), rows - row));
    load_f64(column.data, row * width + channel, width, static_cast<std::int64_t>(count), values.data(), 1);
    for (std::size_t i = count; i % kLanes != 0; ++i) values[i] = kInfinity;
    for (std::size_t i = 0; i < count; i += kLanes)
      for (std::size_t k = 0; k < kLanes; ++k) {
        least[k] = values[i + k] < least[k] && values[i + k] > -kInfinity ? values[i + k] : least[k];
        greatest[k] = values[i + k] > greatest[k] && values[i + k] < kInfinity ? values[i + k] : greatest[k];
      }
  }
  return {*std::ranges::min_element(least), *std::ranges::max_element(greatest)};
}

/// Whether a range lies in that of angles from `low` on.
bool within(const std::pair<double, double>& range, double low, double turn) {
  return range.first >= low - kRangeTolerance * turn && range.second <= low + (1 + kRangeTolerance) * turn;
}

std::string short_number(double value) {
  const double rounded = std::round(value * 1e3) / 1e3;
  return real_text(rounded == 0 ? 0 : rounded);
}

/// Runs of `count` neighbouring channels that `accepts` takes, none of them in `taken` or in two runs. A run lies in
/// one array, or in neighbouring columns of one number each.
std::vector<std::vector<ChannelReference>> find_runs(
    const ColumnView& view, const std::vector<ChannelReference>& taken, std::size_t count,
    const std::function<bool(std::span<const ChannelReference>)>& accepts) {
  std::vector<std::vector<ChannelReference>> found;
  std::vector<ChannelReference> window;
  for (std::size_t c = 0; c < view.columns.size(); ++c) {
    const std::int64_t width = view.numeric(c) ? view.columns[c].width() : 0;
    if (width != 1) window.clear();
    for (std::int64_t k = 0; k < width; ++k) {
      const ChannelReference channel{c, k};
      if (std::ranges::find(taken, channel) != taken.end()) {
        window.clear();
        continue;
      }
      window.push_back(channel);
      if (window.size() > count) window.erase(window.begin());
      if (window.size() == count && accepts(window)) {
        found.push_back(window);
        window.clear();
      }
    }
    if (width != 1) window.clear();
  }
  return found;
}

}  // namespace

bool ColumnView::numeric(std::size_t column) const {
  const ElementKind kind = columns[column].data.type.kind;
  return (kind == ElementKind::real && columns[column].width() <= kMostChannels) ||
         (columns[column].from_text && kind == ElementKind::integer);
}

double ColumnView::value(const ChannelReference& channel, std::int64_t row) const {
  const Column& column = columns[channel.column];
  return element_f64(column.data, row * column.width() + channel.channel);
}

std::string ColumnView::text(std::span<const ChannelReference> channels, std::string_view between) const {
  std::vector<ChannelReference> sorted(channels.begin(), channels.end());
  std::ranges::sort(sorted, {}, [](const ChannelReference& each) { return std::pair(each.column, each.channel); });
  const auto name = [&](const ChannelReference& each) {
    const Column& column = columns[each.column];
    return column.width() == 1 ? column.name : column.name + "[" + std::to_string(each.channel) + "]";
  };
  const auto count = static_cast<std::int64_t>(sorted.size());
  const ChannelReference first = sorted.front(), last = sorted.back();
  if (first.column != last.column || last.channel - first.channel != count - 1 || count == 1)
    return joined(sorted, between, name);
  const Column& column = columns[first.column];
  return column.width() == count
             ? column.name
             : column.name + "[" + std::to_string(first.channel) + ":" + std::to_string(last.channel + 1) + "]";
}

std::string_view NamedVector::order() const {
  if (by_px4) return "w x y z, as PX4 writes q[0] to q[3]";
  return !order_named ? "x y z w assumed" : w_first ? "w x y z" : "x y z w";
}

std::int64_t ColumnView::rows() const { return columns.empty() ? 0 : columns[0].data.shape[0]; }

bool has_unit_norm(const ColumnView& view, std::span<const ChannelReference> channels) {
  bool coarse = false;
  for (const ChannelReference& channel : channels) {
    const ElementType& type = view.columns[channel.column].data.type;
    coarse = coarse || (type.kind == ElementKind::real && type.bytes == 2);
  }
  const double tolerance = coarse ? kCoarseNormTolerance : kNormTolerance;
  const std::int64_t rows = view.rows(), most = static_cast<std::int64_t>(kOtherRows * static_cast<double>(rows));
  std::int64_t others = 0, counted = 0;
  for (std::int64_t row = 0; row < rows && others <= most; ++row) {
    const double norm = norm_of(view, channels, row);
    if (std::isnan(norm)) continue;  // a value is missing
    ++counted;
    others += !(std::abs(norm - 1) <= tolerance);
  }
  return counted > 0 && others <= most;
}

std::pair<double, double> norm_range(const ColumnView& view, std::span<const ChannelReference> channels) {
  std::pair<double, double> range{std::numeric_limits<double>::infinity(), 0};
  for (std::int64_t row = 0; row < view.rows(); ++row) {
    const double norm = norm_of(view, channels, row);
    if (std::isnan(norm)) continue;
    range = {std::min(range.first, norm), std::max(range.second, norm)};
  }
  return range;
}

std::vector<std::vector<ChannelReference>> find_unit_quaternions(const ColumnView& view,
                                                                 const std::vector<ChannelReference>& taken) {
  return find_runs(view, taken, 4, [&](std::span<const ChannelReference> window) {
    const bool real = std::ranges::any_of(window, [&](const ChannelReference& each) {
      return view.columns[each.column].data.type.kind == ElementKind::real;
    });
    return real && has_unit_norm(view, window) && turns(view, window);
  });
}

std::optional<AngleRule> find_angle_rule(const ColumnView& view, const ChannelReference& channel,
                                         const std::vector<std::int64_t>& offsets, double turn) {
  constexpr double kRadians = 2 * std::numbers::pi, kDegrees = 360;
  AngleRule rule;
  const std::pair range = range_of(view.columns[channel.column], channel.channel);
  rule.least = range.first, rule.greatest = range.second;
  if (rule.least > rule.greatest) rule.least = rule.greatest = 0;
  const auto fits = [&](double length) { return within(range, -length / 2, length) || within(range, 0, length); };
  const std::string name = lower_case(view.columns[channel.column].name);
  rule.turn = turn;
  if (turn == 0) {
    for (const auto& [unit, length] : {std::pair{"deg", kDegrees}, std::pair{"rad", kRadians}})
      for (const std::string open : {"_", "[", "(", " "})
        for (const std::string close : {"", "]", ")", "ians", "ians]", "rees", "rees]"})
          if (name.ends_with(open + unit + close)) rule.turn = length;
    if (name.ends_with("[\xc2\xb0]") || name.ends_with("(\xc2\xb0)")) rule.turn = kDegrees;
    rule.unit_named = rule.turn != 0;
  }
  if (rule.turn == 0) rule.turn = fits(kRadians) ? kRadians : fits(kDegrees) ? kDegrees : 0;
  if (rule.turn == 0) return {};
  if (fits(rule.turn)) rule.low = within(range, -rule.turn / 2, rule.turn) && rule.least < 0 ? -rule.turn / 2 : 0;
  for (std::size_t e = 0; e + 1 < offsets.size(); ++e)
    for (std::int64_t row = offsets[e] + 1; row < offsets[e + 1]; ++row)
      rule.jumps = rule.jumps || std::abs(view.value(channel, row) - view.value(channel, row - 1)) > rule.turn / 2;
  return rule;
}

double turn_by_value(const ColumnView& view, const ChannelReference& channel,
                     const std::vector<std::int64_t>& offsets) {
  constexpr double kJump = 0.75, kStep = 0.25;  // of a turn: at least, and at most
  const Column& column = view.columns[channel.column];
  const std::int64_t width = column.width(), rows = view.rows();
  const auto [least, greatest] = range_of(column, channel.channel);
  std::vector<double> values;
  for (const double turn : {2 * std::numbers::pi, 360.0}) {
    const std::pair range{least, greatest};
    if (greatest - least < kJump * turn || !(within(range, -turn / 2, turn) || within(range, 0, turn))) continue;
    if (values.empty()) {
      values.resize(static_cast<std::size_t>(rows));
      load_f64(column.data, channel.channel, width, rows, values.data(), 1);
    }
    bool jumps = false, between = false;
    double small = 0, rest = 0;  // the widest step, and the widest one across a jump
    for (std::size_t e = 0; e + 1 < offsets.size(); ++e)
      for (std::int64_t row = offsets[e] + 1; row < offsets[e + 1] && !between; ++row) {
        const auto at = static_cast<std::size_t>(row);
        const double step = std::abs(values[at] - values[at - 1]);
        between = step > kStep * turn && step < kJump * turn;
        jumps = jumps || step >= kJump * turn;
        if (step <= kStep * turn) small = std::max(small, step);
        if (step >= kJump * turn) rest = std::max(rest, std::abs(turn - step));
      }
    // What switches between two values steps further across a jump than it does otherwise.
    if (jumps && !between && rest <= 2 * small + kRangeTolerance * turn) return turn;
  }
  return 0;
}

std::vector<std::vector<ChannelReference>> find_pose_matrices(const ColumnView& view,
                                                              const std::vector<ChannelReference>& taken) {
  constexpr std::size_t kNumbers = 12;
  constexpr double kTolerance = 1e-2;  // of the products of rows
  const auto is_pose = [&](std::span<const ChannelReference> channels) {
    const std::int64_t rows = view.rows(), most = static_cast<std::int64_t>(kOtherRows * static_cast<double>(rows));
    std::int64_t others = 0;
    bool turned = false;
    for (std::int64_t row = 0; row < rows && others <= most; ++row) {
      bool good = true;
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
          double product = 0;
          for (std::size_t k = 0; k < 3; ++k)
            product += view.value(channels[4 * i + k], row) * view.value(channels[4 * j + k], row);
          good = good && std::abs(product - (i == j ? 1 : 0)) <= kTolerance;
          const ChannelReference& own = channels[4 * i + j];
          turned = turned || std::abs(view.value(own, row) - view.value(own, 0)) > kNormTolerance;
        }
      others += !good;
    }
    return rows > 1 && turned && others <= most;
  };
  return find_runs(view, taken, kNumbers, is_pose);
}

std::vector<std::vector<ChannelReference>> find_rotation_vectors(const ColumnView& view,
                                                                 const std::vector<ChannelReference>& taken) {
  constexpr double kHalfTurn = std::numbers::pi * (1 + kRangeTolerance);
  constexpr double kNear = 1.75 * std::numbers::pi;  // what two vectors near half a turn have together, at least
  const auto turns_over = [&](std::span<const ChannelReference> channels) {
    std::array<double, 3> before{}, now{};
    double norm_before = 0;
    bool found = false;
    for (std::int64_t row = 0; row < view.rows(); ++row) {
      double squares = 0, product = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        now[i] = view.value(channels[i], row);
        squares += now[i] * now[i];
        product += now[i] * before[i];
      }
      const double norm = std::sqrt(squares);
      if (norm > kHalfTurn) return false;
      found = found || (norm + norm_before > kNear && product < -0.9 * norm * norm_before);
      before = now;
      norm_before = norm;
    }
    return found;
  };
  return find_runs(view, taken, 3, turns_over);
}

std::string AngleRule::text() const {
  return std::string(turn == 360 ? "deg" : "rad") + (unit_named ? " by its name" : " by its range") + ", " +
         short_number(least) + " to " + short_number(greatest);
}

bool mask_value(const Array& mask, std::int64_t row) {
  if (mask.type.kind == ElementKind::text)
    return element_text(mask, row)[0] == 't' || element_text(mask, row)[0] == 'T';
  return element_f64(mask, row) != 0;
}

std::optional<std::size_t> find_valid_mask(const ColumnView& view) {
  for (std::size_t c = 0; c < view.columns.size(); ++c) {
    const Column& column = view.columns[c];
    if (column.name != "valid" || column.data.shape.size() != 1) continue;
    bool mask = column.data.type.kind == ElementKind::text || (is_flag(column.data) && column.missing == 0);
    for (std::int64_t row = 0; mask && column.data.type.kind == ElementKind::text && row < view.rows(); ++row) {
      const std::string text = element_text(column.data, row);
      mask = text == "true" || text == "false" || text == "True" || text == "False";
    }
    if (!mask) return {};
    return c;
  }
  return {};
}

}  // namespace tmaops::recording
