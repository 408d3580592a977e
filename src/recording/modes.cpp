#include <algorithm>
#include <array>
#include <map>
#include <numbers>

#include "core/display.hpp"
#include "core/enum_name.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "ops/resample/options.hpp"
#include "recording/decimal.hpp"
#include "recording/steps.hpp"

namespace tmaops::recording {
namespace {

#define TMAOPS_MODE(kind, word) Interpolation::word,
constexpr std::array kModes{TMAOPS_WORDS_interpolation(TMAOPS_MODE)};
#define TMAOPS_LISTED(kind, word) #word ", "
constexpr const char* kModeNames = TMAOPS_WORDS_interpolation(TMAOPS_LISTED) "angle, angle:rad or angle:deg";
constexpr double kLeastNorm = 0.9, kGreatestNorm = 1.1;  // of a quaternion; others warn, since slerp takes directions

/// A mode that the user can name: one of the operator, or angles.
struct Mode {
  Interpolation interpolation = Interpolation::linear;
  bool angle = false;
  double turn = 0;  // of angles; 0: by the column's name or range
};

bool picks_one_sample(const Mode& mode) {
  using enum Interpolation;
  return mode.interpolation == previous || mode.interpolation == next || mode.interpolation == nearest;
}

/// Modes of whole numbers whose results are whole: sums carry the part of a number to the next target.
bool stays_whole(const Mode& mode, ElementKind kind) {
  switch (mode.interpolation) {
    case Interpolation::sum:
    case Interpolation::count:
      return kind == ElementKind::integer;
    case Interpolation::min:
    case Interpolation::max:
    case Interpolation::any:
      return kind == ElementKind::integer || kind == ElementKind::boolean;
    case Interpolation::linear:
    case Interpolation::previous:
    case Interpolation::next:
    case Interpolation::nearest:
    case Interpolation::cubic:
    case Interpolation::slerp:
    case Interpolation::mean:
    case Interpolation::lowpass:
      return false;
  }
  return false;
}

class ModePlanner {
 public:
  ModePlanner(Recording& recording, const ColumnRoles& roles, bool numbers)
      : recording_(recording), roles_(roles), numbers_(numbers) {
    for (const auto* vectors : {&roles.quaternions, &roles.positions})
      for (const NamedVector& vector : *vectors)
        for (const ChannelReference& channel : vector.components) make_real(channel.column);
    for (const Column& column : recording.columns)
      assigned_.emplace_back(static_cast<std::size_t>(column.width()), Assignment{});
    for (std::size_t i = 0; i < assigned_.size(); ++i)
      if (!is_real(i) || is_wide(i))
        assign_whole(i, Interpolation::previous, is_real(i) ? "an image or a scan" : kind_text(i));
    for (const NamedVector& vector : roles.quaternions)
      assign(vector.components, {Interpolation::slerp}, "a quaternion");
    assign_default_angles();
    assign_default_events();
  }

  void apply(const std::string& text) {
    text_ = "--mode " + text;
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) return assign_all_real(parse_mode(text));
    const Mode mode = parse_mode(text.substr(equals + 1));
    const Selector selector(recording_, roles_, text_, numbers_);
    std::vector<ChannelReference> real;
    for (const std::string& part : split_list(text.substr(0, equals))) {
      if (part == "*") {
        assign_all_real(mode);
        for (std::size_t i = 0; i < assigned_.size(); ++i)
          if (!is_real(i) && takes(i, mode)) assign_whole(i, mode.interpolation, kNamed);
        continue;
      }
      for (const ChannelReference& channel : selector.select(part)) {
        if (!takes(channel.column, mode)) make_real(channel.column);
        if (is_real(channel.column)) {
          real.push_back(channel);
        } else if (takes(channel.column, mode) && selector.is_slice(part)) {
          usage("a part of a column that is not of real numbers", "the whole column");
        } else if (takes(channel.column, mode)) {
          assign_whole(channel.column, mode.interpolation, kNamed);
        } else {
          refuse_whole(channel.column, mode);
        }
      }
    }
    assign(real, mode, kNamed);
    named_.insert(named_.end(), real.begin(), real.end());
  }

  ModePlan plan() {
    ModePlan plan;
    plan.whole_columns.assign(assigned_.size(), Interpolation::linear);
    std::map<int, std::map<int, ChannelReference>> quaternions;  // by component, so that bits hold in any order
    for (const Interpolation mode : kModes) {
      ModeGroup group{mode, {}, {}};
      for (std::size_t c = 0; c < assigned_.size(); ++c)
        for (std::size_t k = 0; (!is_copied(c) || ops::resample::over_interval(mode)) && k < assigned_[c].size(); ++k) {
          const Assignment& assigned = assigned_[c][k];
          if (assigned.mode.interpolation != mode || assigned.mode.angle) continue;
          const ChannelReference channel{c, static_cast<std::int64_t>(k)};
          if (mode == Interpolation::linear && assigned.reason != kNamed) plan.linear_by_default.push_back(channel);
          if (mode == Interpolation::slerp)
            quaternions[assigned.quaternion / 4][assigned.quaternion % 4] = channel;
          else
            group.channels.push_back(channel);
        }
      if (!group.channels.empty()) plan.groups.push_back(std::move(group));
    }
    for (const auto& [id, components] : quaternions) {
      ModeGroup group{Interpolation::slerp, {}, {}};
      for (const auto& [component, channel] : components) group.channels.push_back(channel);
      if (group.channels.size() != 4)
        fail(ErrorCode::bad_quaternion, "--mode",
             "a quaternion of which only " + std::to_string(group.channels.size()) + " components have mode slerp, '" +
                 display_text(recording_.columns[group.channels[0].column].name) + "' among them",
             "all four");
      plan.slerp.push_back(group.channels);
      for (ChannelReference& channel : plan.slerp.back()) channel.column = recording_.columns[channel.column].source;
      plan.groups.push_back(std::move(group));
    }
    for (std::size_t c = 0; c < assigned_.size(); ++c) {
      if (is_copied(c))
        plan.whole_columns[c] = assigned_[c].empty() ? Interpolation::previous : assigned_[c][0].mode.interpolation;
      add_angles(c, plan);
      summarise(c, plan);
    }
    judge_quaternions(plan);
    note_roles(plan);
    const auto name_of_column = [&](std::size_t column) { return display_text(recording_.columns[column].name); };
    if (!promoted_.empty())
      plan.notes.push_back(
          {"whole_as_real", "whole numbers read as real ones: " + joined(promoted_, ", ", name_of_column)});
    return plan;
  }

 private:
  struct Assignment {
    Mode mode{};
    int quaternion = 0;  // of slerp: four times which one, and the component
    std::string_view reason = "real numbers";
  };
  static constexpr std::string_view kNamed = "--mode", kJumps = "its values jump by a turn";

  std::string_view kind_text(std::size_t column) const {
    static constexpr std::string_view kTexts[] = {"real numbers", "integers", "booleans",
                                                  "text",         "times",    "elements of another type"};
    return enum_name(kTexts, recording_.columns[column].data.type.kind);
  }
  bool is_real(std::size_t column) const { return recording_.columns[column].data.type.kind == ElementKind::real; }
  bool is_wide(std::size_t column) const { return std::ssize(assigned_[column]) > kMostChannels; }
  /// Whether rows are taken as they are: those of what is not real, and of images and scans.
  bool is_copied(std::size_t column) const {
    return !is_real(column) ||
           (is_wide(column) && std::ranges::all_of(assigned_[column], [&](const Assignment& each) {
              return picks_one_sample(each.mode) && each.mode.interpolation == assigned_[column][0].mode.interpolation;
            }));
  }
  const Assignment& assigned(const ChannelReference& channel) const {
    return assigned_[channel.column][static_cast<std::size_t>(channel.channel)];
  }
  /// Whether a column that is not of real numbers can have the mode as it is.
  bool takes(std::size_t column, const Mode& mode) const {
    return !is_real(column) && (picks_one_sample(mode) || stays_whole(mode, recording_.columns[column].data.type.kind));
  }
  /// Makes a column of whole numbers of a text file real. An archive states its types, so those stay.
  void make_real(std::size_t column) {
    Array& data = recording_.columns[column].data;
    if (!recording_.columns[column].from_text || data.type.kind != ElementKind::integer) return;
    data = real_array(data);
    promoted_.push_back(column);
  }
  void assign_whole(std::size_t column, Interpolation mode, std::string_view reason) {
    for (Assignment& assignment : assigned_[column]) assignment = {{mode}, 0, reason};
  }
  void assign_all_real(const Mode& mode) {
    if (mode.interpolation == Interpolation::slerp || mode.angle)
      usage(mode.angle ? "angle for all columns" : "slerp for all columns",
            mode.angle ? "the columns of angles, yaw=angle" : "the four columns of a quaternion, qx..qw=slerp");
    for (std::size_t i = 0; i < assigned_.size(); ++i)
      if (is_real(i) && !is_wide(i)) assign_whole(i, mode.interpolation, kNamed);
  }
  void assign(const std::vector<ChannelReference>& channels, const Mode& mode, std::string_view reason) {
    if (mode.interpolation == Interpolation::slerp && channels.size() % 4 != 0)
      fail(ErrorCode::bad_quaternion, display_text(text_), std::to_string(channels.size()) + " channels",
           "four for each quaternion, x y z w or w x y z");
    for (std::size_t i = 0; i < channels.size(); ++i) {
      if (i % 4 == 0) ++quaternions_;
      Assignment& to = assigned_[channels[i].column][static_cast<std::size_t>(channels[i].channel)];
      to = {mode, 4 * quaternions_ + static_cast<int>(i % 4), reason};
      if (mode.angle && !rule_of(channels[i], mode.turn))
        usage("'" + display_text(recording_.columns[channels[i].column].name) + "', whose values span more than a turn",
              "angle:rad or angle:deg");
    }
  }
  std::optional<AngleRule> rule_of(const ChannelReference& channel, double turn) const {
    return find_angle_rule({recording_.columns}, channel, recording_.offsets, turn);
  }
  void assign_default_angles() {
    const ColumnView view{recording_.columns};
    for (std::size_t c = 0; c < assigned_.size(); ++c)
      for (std::size_t k = 0; is_real(c) && k < assigned_[c].size(); ++k) {
        Assignment& to = assigned_[c][k];
        if (to.mode.interpolation != Interpolation::linear) continue;
        const ChannelReference channel{c, static_cast<std::int64_t>(k)};
        const Column& column = recording_.columns[c];
        const bool named = !column.channel_names.empty() ? named_angle(column.channel_names[k])
                                                         : assigned_[c].size() == 1 && named_angle(column.name);
        if (named) {
          const auto rule = rule_of(channel, 0);
          if (rule && rule->jumps) to = {{Interpolation::linear, true, 0}, 0, "an angle that wraps"};
        } else if (const double turn = turn_by_value(view, channel, recording_.offsets); turn != 0) {
          to = {{Interpolation::linear, true, turn}, 0, kJumps};
        }
      }
  }
  /// A lower rate loses no reward and no flag of what happened. A higher rate does not repeat the flag of a first step.
  void assign_default_events() {
    for (std::size_t c = 0; c < assigned_.size(); ++c) {
      const Column& column = recording_.columns[c];
      if (named_reward(column.name) && (is_real(c) || takes(c, {Interpolation::sum})))
        assign_whole(c, Interpolation::sum, "a reward, which adds up");
      else if (named_flag(column.name) && is_flag(column.data))
        assign_whole(c, Interpolation::any, "a flag of what happened");
      else if (named_first(column.name) && is_flag(column.data))
        assign_whole(c, Interpolation::next, "the flag of a first step");
    }
  }
  /// What is read into a column of actions: a difference would have to be added up. Flags and rewards that nulls keep
  /// from `any` and `sum`.
  void note_roles(ModePlan& plan) const {
    for (std::size_t c = 0; c < assigned_.size(); ++c) {
      const Column& column = recording_.columns[c];
      const std::string name = display_text(column.name);
      const bool reward = named_reward(column.name);
      if ((reward || named_flag(column.name)) && column.missing > 0 && !is_real(c) &&
          std::ranges::count(assigned_[c], kNamed, &Assignment::reason) == 0)
        plan.warnings.push_back({reward ? "reward_with_nulls" : "flag_with_nulls",
                                 name + (reward ? " has nulls and is not summed up: write 0 there, or real numbers"
                                                : " has nulls and can miss what it flags: write false there")});
      const auto sums = [](const Assignment& each) { return each.mode.interpolation == Interpolation::sum; };
      if (named_action(column.name) && is_real(c) && std::ranges::none_of(assigned_[c], sums))
        plan.notes.push_back(
            {"action_absolute",
             name + " is taken as absolute positions or velocities (differences from step to step add up: --mode '" +
                 name + "=sum')"});
    }
  }
  void add_angles(std::size_t column, ModePlan& plan) const {
    for (std::size_t k = 0; k < assigned_[column].size(); ++k) {
      const Mode& mode = assigned_[column][k].mode;
      if (!mode.angle) continue;
      const ChannelReference channel{column, static_cast<std::int64_t>(k)};
      plan.groups.push_back({Interpolation::linear, {channel}, rule_of(channel, mode.turn)});
      const std::string name = display_text(ColumnView{recording_.columns}.text(std::span(&channel, 1)));
      const std::string rule = plan.groups.back().angle->text();
      const std::string way = "the shorter way round (--mode '" + name + "=linear' does not wrap)";
      if (assigned_[column][k].reason == kJumps)
        plan.warnings.push_back(
            {"angle_by_value", "'" + name + "' jumps by a turn and was taken for an angle in " + rule + ": " + way});
      else
        plan.notes.push_back({"angle", "angle: " + name + " in " + rule + ", " + way});
    }
  }

  /// Lists the quaternions, and warns of those that are not interpolated as such.
  void judge_quaternions(ModePlan& plan) const {
    const ColumnView view{recording_.columns};
    std::vector<ChannelReference> taken = named_;
    for (const NamedVector& vector : roles_.quaternions) {
      taken.insert(taken.end(), vector.components.begin(), vector.components.end());
      const Mode& mode = assigned(vector.components[0]).mode;
      const std::string text = display_text(vector.text);
      plan.quaternions.emplace_back(vector.text, vector.order());
      if (mode.interpolation == Interpolation::linear || mode.interpolation == Interpolation::cubic) {
        plan.warnings.push_back(
            {"quaternion_not_slerp", "the quaternion " + text + " is interpolated " +
                                         std::string(ops::resample::name_of(mode.interpolation)) +
                                         ", which does not keep its norm: --mode quaternion=slerp does"});
      } else if (const auto [least, greatest] = norm_range(view, vector.components);
                 least < kLeastNorm || greatest > kGreatestNorm) {
        plan.warnings.push_back({"quaternion_norm", "the norm of the quaternion " + text + " goes from " +
                                                        real_text(least) + " to " + real_text(greatest) +
                                                        ": is it one?"});
      }
    }
    for (std::size_t c = 0; c < assigned_.size(); ++c)
      for (std::size_t k = 0; k < assigned_[c].size(); ++k) {
        const Mode& mode = assigned_[c][k].mode;
        if (mode.interpolation == Interpolation::slerp || mode.angle || (!is_copied(c) && picks_one_sample(mode)))
          taken.push_back({c, static_cast<std::int64_t>(k)});
      }
    for (const auto& channels : find_pose_matrices(view, taken)) {
      taken.insert(taken.end(), channels.begin(), channels.end());
      plan.warnings.push_back(
          {"pose_matrix_linear",
           "the numbers of " + display_text(view.text(channels)) +
               " are the rows of a pose matrix and are interpolated one by one, which does not keep "
               "a rotation: store the rotation as a quaternion (--from kitti reads such matrices)"});
    }
    for (const auto& channels : find_rotation_vectors(view, taken))
      plan.warnings.push_back(
          {"rotation_vector_linear",
           "the numbers of " + display_text(view.text(channels)) +
               " are rotation vectors that turn over, and linear leads through other rotations: use quaternions"});
    for (const auto& channels : find_unit_quaternions(view, taken)) {
      const std::string names = view.text(channels, ",");
      plan.warnings.push_back(
          {"unit_norm", "the norm of " + display_text(names) +
                            " is 1 in nearly every row: is it a quaternion? It is not interpolated as one; --mode '" +
                            display_text(names) + "=slerp' does so"});
    }
  }
  Mode parse_mode(const std::string& text) const {
    if (text == "angle") return {Interpolation::linear, true, 0};
    if (text == "angle:rad") return {Interpolation::linear, true, 2 * std::numbers::pi};
    if (text == "angle:deg") return {Interpolation::linear, true, 360};
    if (const auto mode = ops::resample::parse_interpolation(text)) return {*mode};
    usage("'" + display_text(text) + "'", kModeNames);
  }
  void summarise(std::size_t column, ModePlan& plan) const {
    const auto& assigned = assigned_[column];
    const std::string& name = recording_.columns[column].name;
    const auto same = [&](std::size_t a, std::size_t b) {
      return assigned[a].mode.interpolation == assigned[b].mode.interpolation &&
             assigned[a].mode.angle == assigned[b].mode.angle && assigned[a].reason == assigned[b].reason;
    };
    for (std::size_t first = 0; first < assigned.size();) {
      std::size_t last = first + 1;
      while (last < assigned.size() && same(first, last)) ++last;
      const bool whole = first == 0 && last == assigned.size();
      const Mode& mode = assigned[first].mode;
      plan.parts.push_back({whole ? name : name + "[" + std::to_string(first) + ":" + std::to_string(last) + "]",
                            mode.angle ? "angle" : ops::resample::name_of(mode.interpolation), assigned[first].reason,
                            recording_.columns[column].source, static_cast<std::int64_t>(first),
                            static_cast<std::int64_t>(last - first)});
      first = last;
    }
  }

  [[noreturn]] void usage(std::string got, std::string needed) const {
    fail(ErrorCode::usage, display_text(text_), got, needed);
  }
  [[noreturn]] void refuse_whole(std::size_t column, const Mode& mode) const {
    const ElementKind kind = recording_.columns[column].data.type.kind;
    const std::string name = mode.angle ? "angle" : std::string(ops::resample::name_of(mode.interpolation));
    fail(ErrorCode::bad_column_mode,
         recording_.where + ": column '" + display_text(recording_.columns[column].name) + "'",
         std::string(kind_text(column)) + " with mode " + name,
         kind == ElementKind::integer   ? "previous, next, nearest, sum, min, max, any or count"
         : kind == ElementKind::boolean ? "previous, next, nearest, any, min or max"
                                        : "previous, next or nearest");
  }

  Recording& recording_;
  const ColumnRoles& roles_;
  bool numbers_;
  std::vector<std::vector<Assignment>> assigned_;  // per column, per channel
  std::vector<ChannelReference> named_;            // channels that the user named
  std::vector<std::size_t> promoted_;              // columns of whole numbers that became real
  std::string text_;
  int quaternions_ = 0;
};

}  // namespace

ModePlan plan_modes(Recording& recording, const ColumnRoles& roles, const Options& options) {
  // The numbers of chosen columns are no longer those of the file.
  ModePlanner planner(recording, roles, options.columns.empty());
  for (const std::string& mode : options.modes) planner.apply(mode);
  return planner.plan();
}

}  // namespace tmaops::recording
