#include "cli/resample_modes.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "io/file_error.hpp"
#include "ops/resample/options.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

using io::display_text;

constexpr std::array kModes{Interpolation::linear,  Interpolation::previous, Interpolation::next,
                            Interpolation::nearest, Interpolation::cubic,    Interpolation::slerp};
using Names = std::vector<std::string>;

// What position and quaternion stand for when no column has that very name.
const std::vector<std::pair<std::string, std::vector<Names>>> kAliases{
    {"position", {{"tx", "ty", "tz"}, {"px", "py", "pz"}, {"x", "y", "z"}}},
    {"quaternion", {{"qx", "qy", "qz", "qw"}, {"qw", "qx", "qy", "qz"}}}};

bool picks_one_sample(Interpolation mode) {
  return mode == Interpolation::previous || mode == Interpolation::next || mode == Interpolation::nearest;
}

class Planner {
 public:
  explicit Planner(const io::Recording& recording) : recording_(recording) {
    for (const io::Column& column : recording.columns)
      assigned_.emplace_back(static_cast<std::size_t>(column.width()), Assignment{});
    for (std::size_t i = 0; i < assigned_.size(); ++i)
      if (!is_real(i)) assign_whole(i, Interpolation::previous);
    assign_default_quaternions();
  }

  void apply(const std::string& text) {
    text_ = text;
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) return assign_all_real(parse_mode(text));
    const Interpolation mode = parse_mode(text.substr(equals + 1));
    const std::string selectors = text.substr(0, equals);
    std::vector<ChannelReference> real;
    for (std::size_t start = 0; start <= selectors.size();) {
      const std::size_t end = std::min(selectors.find(',', start), selectors.size());
      const std::string selector = selectors.substr(start, end - start);
      if (selector == "*") {
        assign_all_real(mode);
        if (picks_one_sample(mode))
          for (std::size_t i = 0; i < assigned_.size(); ++i)
            if (!is_real(i)) assign_whole(i, mode);
      } else {
        for (const ChannelReference& channel : select(selector)) {
          if (is_real(channel.column)) {
            real.push_back(channel);
          } else if (picks_one_sample(mode)) {
            assign_whole(channel.column, mode);
          } else {
            refuse_whole(channel.column, mode);
          }
        }
      }
      start = end + 1;
    }
    assign(real, mode);
  }

  ModePlan plan() const {
    ModePlan plan;
    plan.whole_columns.assign(assigned_.size(), Interpolation::linear);
    std::map<int, ModeGroup> quaternions;
    for (const Interpolation mode : kModes) {
      ModeGroup group{mode, {}};
      for (std::size_t c = 0; c < assigned_.size(); ++c)
        for (std::size_t k = 0; is_real(c) && k < assigned_[c].size(); ++k) {
          if (assigned_[c][k].mode != mode) continue;
          const ChannelReference channel{c, static_cast<std::int64_t>(k)};
          if (mode == Interpolation::slerp) {
            quaternions[assigned_[c][k].quaternion].channels.push_back(channel);
          } else {
            group.channels.push_back(channel);
          }
        }
      if (!group.channels.empty()) plan.groups.push_back(std::move(group));
    }
    for (auto& [id, group] : quaternions) {
      group.interpolation = Interpolation::slerp;
      if (group.channels.size() != 4)
        throw Error(ErrorCode::bad_quaternion,
                    {.where = "--mode",
                     .got = "a quaternion of which only " + std::to_string(group.channels.size()) +
                            " components have mode slerp, '" +
                            display_text(recording_.columns[group.channels[0].column].name) + "' among them",
                     .needed = "all four"});
      plan.groups.push_back(std::move(group));
    }
    for (std::size_t c = 0; c < assigned_.size(); ++c) {
      if (!is_real(c)) plan.whole_columns[c] = assigned_[c].empty() ? Interpolation::previous : assigned_[c][0].mode;
      summarise(c, plan);
    }
    return plan;
  }

 private:
  struct Assignment {
    Interpolation mode = Interpolation::linear;
    int quaternion = 0;  // of slerp: which one
  };

  bool is_real(std::size_t column) const { return recording_.columns[column].data.type.kind == io::ElementKind::real; }
  void assign_whole(std::size_t column, Interpolation mode) {
    for (Assignment& assignment : assigned_[column]) assignment = {mode, 0};
  }
  void assign_all_real(Interpolation mode) {
    if (mode == Interpolation::slerp) usage("slerp for all columns", "the four columns of a quaternion, qx..qw=slerp");
    for (std::size_t i = 0; i < assigned_.size(); ++i)
      if (is_real(i)) assign_whole(i, mode);
  }
  void assign(const std::vector<ChannelReference>& channels, Interpolation mode) {
    if (mode == Interpolation::slerp && channels.size() % 4 != 0)
      throw Error(ErrorCode::bad_quaternion, {.where = "--mode " + display_text(text_),
                                              .got = std::to_string(channels.size()) + " channels",
                                              .needed = "four for each quaternion, x y z w or w x y z"});
    for (std::size_t i = 0; i < channels.size(); ++i) {
      if (i % 4 == 0) ++quaternions_;
      assigned_[channels[i].column][static_cast<std::size_t>(channels[i].channel)] = {mode, quaternions_};
    }
  }
  void assign_default_quaternions() {
    for (const Names& names : kAliases[1].second)
      if (const auto found = find_all(names); !found.empty()) {
        assign(found, Interpolation::slerp);
        break;
      }
    for (std::size_t i = 0; i < assigned_.size(); ++i) {
      const io::Column& column = recording_.columns[i];
      if ((column.name == "quaternion" || column.name == "quaternions") && is_real(i) && column.data.shape.size() > 1 &&
          column.data.shape.back() == 4)
        assign(all_channels(i), Interpolation::slerp);
    }
  }

  std::vector<ChannelReference> all_channels(std::size_t column) const {
    std::vector<ChannelReference> all;
    for (std::int64_t k = 0; k < recording_.columns[column].width(); ++k) all.push_back({column, k});
    return all;
  }
  std::optional<std::size_t> find(const std::string& name) const {
    for (std::size_t i = 0; i < recording_.columns.size(); ++i)
      if (recording_.columns[i].name == name) return i;
    return {};
  }
  /// Columns of one number per row with exactly these names, all real; empty unless all are there.
  std::vector<ChannelReference> find_all(const Names& names) const {
    std::vector<ChannelReference> all;
    for (const std::string& name : names) {
      const auto column = find(name);
      if (!column || recording_.columns[*column].width() != 1 || !is_real(*column)) return {};
      all.push_back({*column, 0});
    }
    return all;
  }

  std::vector<ChannelReference> select(const std::string& selector) const {
    if (const auto column = find(selector)) return all_channels(*column);
    for (const auto& [alias, choices] : kAliases)
      if (selector == alias)
        for (const Names& names : choices)
          if (const auto found = find_all(names); !found.empty()) return found;
    if (const std::size_t dots = selector.find(".."); dots != std::string::npos) {
      const auto first = find_or_number(selector.substr(0, dots));
      const auto last = find_or_number(selector.substr(dots + 2));
      if (first && last && *first <= *last) {
        std::vector<ChannelReference> all;
        for (std::size_t i = *first; i <= *last; ++i)
          for (const ChannelReference& channel : all_channels(i)) all.push_back(channel);
        return all;
      }
    }
    if (selector.ends_with(']'))
      if (const std::size_t bracket = selector.rfind('['); bracket != std::string::npos)
        if (const auto column = find(selector.substr(0, bracket)))
          return slice(*column, selector.substr(bracket + 1, selector.size() - bracket - 2));
    if (const auto column = find_or_number(selector)) return all_channels(*column);
    std::string names;
    for (const io::Column& column : recording_.columns)
      names += (names.empty() ? "" : ", ") + display_text(column.name);
    usage("no columns '" + display_text(selector) + "'", "one of: " + names);
  }
  std::optional<std::size_t> find_or_number(const std::string& text) const {
    if (const auto column = find(text)) return column;
    std::int64_t number = 0;
    if (recording_.lines.empty() || io::parse_integer(text, number) != io::ParseResult::good || number < 1) return {};
    // Numbers count the columns of the file; its time column is not among the recording's.
    auto index = static_cast<std::size_t>(number - 1);
    if (index == recording_.time.position) usage("the time column", "columns of values");
    if (index > recording_.time.position) --index;
    if (index >= recording_.columns.size()) return {};
    return index;
  }
  std::vector<ChannelReference> slice(std::size_t column, const std::string& text) const {
    const std::int64_t width = recording_.columns[column].width();
    const std::size_t colon = text.find(':');
    std::int64_t first = 0, last = width;
    const auto number = [&](const std::string& part, std::int64_t& value) {
      return part.empty() || io::parse_integer(part, value) == io::ParseResult::good;
    };
    bool good = number(text.substr(0, colon), first);
    if (colon == std::string::npos) {
      good = good && !text.empty();
      last = first + 1;
    } else {
      good = good && number(text.substr(colon + 1), last);
    }
    if (!good || first < 0 || last > width || first >= last)
      usage("channels [" + display_text(text) + "] of '" + display_text(recording_.columns[column].name) + "'",
            "[a:b] within 0:" + std::to_string(width));
    if (!is_real(column)) usage("a part of a column that is not of real numbers", "the whole column");
    std::vector<ChannelReference> all;
    for (std::int64_t k = first; k < last; ++k) all.push_back({column, k});
    return all;
  }
  Interpolation parse_mode(const std::string& text) const {
    for (const Interpolation mode : kModes)
      if (ops::resample::name_of(mode) == text) return mode;
    usage("'" + display_text(text) + "'", "linear, previous, next, nearest, cubic or slerp");
  }
  void summarise(std::size_t column, ModePlan& plan) const {
    const auto& assigned = assigned_[column];
    const std::string& name = recording_.columns[column].name;
    for (std::size_t first = 0; first < assigned.size();) {
      std::size_t last = first + 1;
      while (last < assigned.size() && assigned[last].mode == assigned[first].mode) ++last;
      const bool whole = first == 0 && last == assigned.size();
      plan.summary.emplace_back(whole ? name : name + "[" + std::to_string(first) + ":" + std::to_string(last) + "]",
                                std::string(ops::resample::name_of(assigned[first].mode)));
      first = last;
    }
  }

  [[noreturn]] void usage(std::string got, std::string needed) const {
    throw Error(ErrorCode::usage,
                {.where = "--mode " + display_text(text_), .got = std::move(got), .needed = std::move(needed)});
  }
  [[noreturn]] void refuse_whole(std::size_t column, Interpolation mode) const {
    const io::Array& data = recording_.columns[column].data;
    const char* kind = data.type.kind == io::ElementKind::integer   ? "integers"
                       : data.type.kind == io::ElementKind::boolean ? "booleans"
                                                                    : "text";
    throw Error(ErrorCode::bad_column_mode,
                {.where = recording_.where + ": column '" + display_text(recording_.columns[column].name) + "'",
                 .got = std::string(kind) + " with mode " + std::string(ops::resample::name_of(mode)),
                 .needed = "previous, next or nearest"});
  }

  const io::Recording& recording_;
  std::vector<std::vector<Assignment>> assigned_;  // per column, per channel
  std::string text_;
  int quaternions_ = 0;
};

}  // namespace

ModePlan plan_modes(const io::Recording& recording, const std::vector<std::string>& modes) {
  Planner planner(recording);
  for (const std::string& mode : modes) planner.apply(mode);
  return planner.plan();
}

}  // namespace tmaops::cli
