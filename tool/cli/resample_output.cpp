#include <algorithm>
#include <array>
#include <numeric>

#include "cli/resample_files.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "offers/output_file.hpp"

namespace tmaops::cli {
namespace {

constexpr std::array kPoseNames{"tx", "ty", "tz", "qx", "qy", "qz", "qw"};

/// One channel of a real array as an array of its own.
io::Array channel_of(const io::Recording& recording, const ChannelReference& channel) {
  const recording::ColumnView view{recording.columns};
  std::vector<double> values;
  for (std::int64_t row = 0; row < view.rows(); ++row) values.push_back(view.value(channel, row));
  return io::make_array(values, {view.rows()});
}

}  // namespace

void write_plot_data(const std::filesystem::path& folder, const io::Recording& recording, const Run& run) {
  recording::Selection every{.kept = std::vector<std::int64_t>(run.targets.times.size()),
                             .offsets = run.targets.offsets};
  std::iota(every.kept.begin(), every.kept.end(), 0);
  io::Recording drawn = recording;
  drawn.time.form = io::TimeForm::number;
  drawn.time.integer = true;
  drawn.offsets_name = "offsets";
  drawn.others.clear();
  const auto write = [&](const char* name) {
    io::OutputFile file(folder / name);
    io::write_recording(file, drawn, io::FileFormat::npz, {.to_unit = io::TimeUnit::nanoseconds, .trust_sizes = true});
    file.commit();
  };
  write("before.npz");
  replace_rows(drawn, run.targets, run.rules.plan, run.table, every, true);
  write("after.npz");
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
  const std::string order = !quaternion->order_named ? " (" + std::string(quaternion->order()) + ")"
                            : quaternion->w_first    ? " (w first)"
                                                     : "";
  std::string taken = "pose: " + display_text(position->text) + " and " + display_text(quaternion->text) + order;
  recording.columns = std::move(pose);
  return taken;
}

}  // namespace tmaops::cli
