#include <algorithm>
#include <array>
#include <numeric>

#include "cli/resample_steps.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "io/output_file.hpp"

namespace tmaops::cli {
namespace {

constexpr std::array kPoseNames{"tx", "ty", "tz", "qx", "qy", "qz", "qw"};

/// One channel of a real array as an array of its own.
io::Array channel_of(const io::Recording& recording, const ChannelReference& channel) {
  const io::ColumnView view{recording.columns};
  std::vector<double> values;
  for (std::int64_t row = 0; row < view.rows(); ++row) values.push_back(view.value(channel, row));
  return io::make_array(values, {view.rows()});
}

}  // namespace

Selection select_rows(const io::Recording& recording, const ResampleTargets& targets, const ResampledTable& table,
                      const Policies& policies) {
  Selection selection;
  for (std::size_t e = 0; e + 1 < targets.offsets.size(); ++e) {
    const auto first = recording.times.begin() + recording.offsets[e];
    const auto end = recording.times.begin() + recording.offsets[e + 1];
    for (std::int64_t t = targets.offsets[e]; t < targets.offsets[e + 1]; ++t) {
      const std::int64_t time = targets.sample_times[static_cast<std::size_t>(t)];
      const bool outside = first == end || time < *first || time > *(end - 1);
      const bool in_gap = !outside && table.valid[static_cast<std::size_t>(t)] == 0;
      selection.outside += outside;
      selection.in_gaps += in_gap;
      if (!(outside && policies.drops_outside()) && !(in_gap && policies.drop_gaps)) selection.kept.push_back(t);
    }
    selection.offsets.push_back(static_cast<std::int64_t>(selection.kept.size()));
  }
  return selection;
}

void check_something_left(const ResampleCommand& command, const io::Recording& recording,
                          const ResampleTargets& targets, const ResampledTable& table, const Selection& selection,
                          const Policies& policies) {
  if (policies.fills_outside()) return;
  const auto count = static_cast<std::int64_t>(targets.times.size());
  const auto [first, last] = std::minmax_element(recording.times.begin(), recording.times.end());
  const auto [from, to] = std::minmax_element(targets.times.begin(), targets.times.end());
  if (selection.outside == count && count != 0)
    fail(ErrorCode::target_outside, recording.where,
         "all " + std::to_string(count) + " targets, from " + seconds_text(*from) + " to " + seconds_text(*to),
         "targets within the recording, from " + seconds_text(*first) + " to " + seconds_text(*last),
         "Check that both files count time from the same start. --time-unit names the unit of IN, " +
             std::string(command.times ? "--times-unit" : "--like-unit") + " that of FILE.");
  if (selection.outside + selection.in_gaps == count && count != 0) {
    if (table.masked == selection.in_gaps)
      fail(ErrorCode::bad_parameter, recording.where,
           "no target between samples that have data: the column 'valid' is 0 between all of them",
           "at least one target with data on both sides");
    fail(ErrorCode::bad_parameter, "--max-gap", "no target with samples near enough on both sides",
         "a limit above the usual step of the recording");
  }
}

io::Recording make_output(io::Recording&& recording, const ResampleTargets& targets, const ModePlan& plan,
                          const ResampledTable& table, const Selection& selection, bool with_valid) {
  std::vector<io::Array> columns;
  for (std::size_t c = 0; c < recording.columns.size(); ++c)
    columns.push_back(output_column(recording, c, plan, table, selection.kept));
  io::Recording output = std::move(recording);
  for (std::size_t c = 0; c < columns.size(); ++c) output.columns[c].data = std::move(columns[c]);
  output.times.clear();
  output.lines.clear();
  for (const std::int64_t t : selection.kept) {
    output.times.push_back(targets.times[static_cast<std::size_t>(t)]);
    if (with_valid) output.valid.push_back(table.valid[static_cast<std::size_t>(t)]);
  }
  output.offsets = selection.offsets;
  return output;
}

void write_plot_data(const std::filesystem::path& folder, const io::Recording& recording,
                     const ResampleTargets& targets, const ModePlan& plan, const ResampledTable& table) {
  Selection every{.kept = std::vector<std::int64_t>(targets.times.size()), .offsets = targets.offsets};
  std::iota(every.kept.begin(), every.kept.end(), 0);
  io::Recording before = recording;
  before.time.form = io::TimeForm::number;
  before.time.integer = true;
  before.offsets_name = "offsets";
  before.others.clear();
  const auto write = [&folder](const char* name, const io::Recording& written) {
    io::OutputFile file(folder / name);
    io::write_recording(file, written, io::FileFormat::npz,
                        {.to_unit = io::TimeUnit::nanoseconds, .trust_sizes = true});
    file.commit();
  };
  write("before.npz", before);
  write("after.npz", make_output(std::move(before), targets, plan, table, every, true));
}

std::string name_pose(io::Recording& recording, const ColumnRoles& roles) {
  const bool named = std::ranges::all_of(kPoseNames, [&](const char* name) {
    return std::ranges::find(recording.columns, name, &io::Column::name) != recording.columns.end();
  });
  if (named || roles.quaternions.empty() || roles.positions.empty()) return "";
  // A position and a quaternion belong together when their names begin alike: left_tx and left_qx.
  std::vector<std::pair<const io::NamedVector*, const io::NamedVector*>> poses;
  for (const io::NamedVector& quaternion : roles.quaternions)
    for (const io::NamedVector& position : roles.positions)
      if (position.components.size() == 3 && position.prefix == quaternion.prefix)
        poses.emplace_back(&position, &quaternion);
  if (poses.empty() && roles.quaternions.size() == 1 && roles.positions.size() == 1 &&
      roles.positions[0].components.size() == 3)
    poses.emplace_back(&roles.positions[0], &roles.quaternions[0]);
  const auto text = [](const auto& pose) { return display_text(pose.first->text + ", " + pose.second->text); };
  if (poses.size() > 1)
    fail(ErrorCode::bad_parameter, recording.where, "more than one pose: " + joined(poses, "; ", text),
         "one for a trajectory", "Name its columns with --columns tx=...,ty=...,...,qw=...");
  if (poses.empty()) return "";
  const auto& [position, quaternion] = poses[0];
  std::vector<io::Column> pose;
  for (std::size_t i = 0; i < kPoseNames.size(); ++i) {
    io::Column column;
    column.name = kPoseNames[i];
    column.data = channel_of(recording, i < 3 ? position->components[i] : quaternion->components[i - 3]);
    pose.push_back(std::move(column));
  }
  std::vector<bool> used(recording.columns.size());
  for (const auto* vector : {position, quaternion})
    for (const ChannelReference& channel : vector->components) used[channel.column] = true;
  for (std::size_t c = 0; c < used.size(); ++c)
    if (!used[c]) pose.push_back(std::move(recording.columns[c]));
  const std::string order = !quaternion->order_named ? " (x y z w assumed)" : quaternion->w_first ? " (w first)" : "";
  std::string taken = "pose: " + display_text(position->text) + " and " + display_text(quaternion->text) + order;
  recording.columns = std::move(pose);
  return taken;
}

}  // namespace tmaops::cli
