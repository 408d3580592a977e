#include "cli/resample_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "io/file_error.hpp"
#include "io/input_file.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

std::vector<Interpolation> needed_row_modes(const io::Recording& recording, const ModePlan& plan) {
  std::vector<Interpolation> modes;
  for (std::size_t c = 0; c < recording.columns.size(); ++c)
    if (recording.columns[c].data.type.kind != io::ElementKind::real &&
        std::find(modes.begin(), modes.end(), plan.whole_columns[c]) == modes.end())
      modes.push_back(plan.whole_columns[c]);
  // Without any column the valid mask is still wanted, and the operator must have a channel to say which is valid.
  if (modes.empty() && plan.groups.empty()) modes.push_back(Interpolation::previous);
  return modes;
}

std::vector<double> matrix(std::int64_t rows, std::int64_t columns) {
  try {
    return std::vector<double>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::out_of_memory,
                {.where = "resample",
                 .got = std::to_string(rows) + " rows of " + std::to_string(columns) + " f64 asked for",
                 .needed = "memory"});
  }
}

/// The operator names a row of its matrix; a user needs the line of the file and the names of the columns.
[[noreturn]] void fail_quaternion(const io::Recording& recording, const ModePlan& plan, const Error& error) {
  for (std::int64_t row = 0; row < recording.rows(); ++row)
    for (const ModeGroup& group : plan.groups) {
      if (group.interpolation != Interpolation::slerp) continue;
      bool zero = true, finite = true;
      std::string names, values;
      for (const ChannelReference& channel : group.channels) {
        const io::Column& column = recording.columns[channel.column];
        const double value = io::element_f64(column.data, row * column.width() + channel.channel);
        zero = zero && value == 0;
        finite = finite && std::isfinite(value);
        if (names.empty() || recording.columns[group.channels[0].column].name != column.name)
          names += (names.empty() ? "" : " ") + io::display_text(column.name);
        values += (values.empty() ? "" : " ") + io::real_text(value);
      }
      if (zero || !finite)
        throw Error(ErrorCode::bad_quaternion,
                    {.where = recording.place(row) + ": " + names,
                     .got = values,
                     .needed = "a quaternion whose norm is finite and not zero",
                     .mend = "Drop the rows without an orientation, or choose another --mode for these columns."});
    }
  throw error;
}

}  // namespace

ResampledTable resample_table(const io::Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                              const ResamplePolicies& policies) {
  ResampledTable table;
  table.row_modes = needed_row_modes(recording, plan);
  std::vector<ChannelGroup> groups;
  std::vector<ChannelReference> channels;
  for (const ModeGroup& group : plan.groups) {
    groups.push_back({static_cast<std::int64_t>(channels.size()), static_cast<std::int64_t>(group.channels.size()),
                      group.interpolation});
    channels.insert(channels.end(), group.channels.begin(), group.channels.end());
  }
  table.value_columns = static_cast<std::int64_t>(channels.size());
  std::int64_t width = table.value_columns;
  for (const Interpolation mode : table.row_modes) groups.push_back({width++, 1, mode});

  const std::int64_t rows = recording.rows();
  std::vector<double> source = matrix(rows, width);
  for (std::size_t k = 0; k < channels.size(); ++k) {
    const io::Column& column = recording.columns[channels[k].column];
    for (std::int64_t row = 0; row < rows; ++row)
      source[static_cast<std::size_t>(row * width) + k] =
          io::element_f64(column.data, row * column.width() + channels[k].channel);
  }
  for (std::int64_t row = 0; row < rows; ++row)
    std::fill_n(source.begin() + row * width + table.value_columns, width - table.value_columns,
                static_cast<double>(row));

  const auto count = static_cast<std::int64_t>(targets.times.size());
  table.values = matrix(count, width);
  table.valid.assign(targets.times.size(), 0);
  ResampleOptions options;
  options.channel_groups = groups;
  options.outside = policies.outside;
  options.duplicates = policies.duplicates;
  options.max_gap = policies.max_gap;
  options.source_offsets = recording.offsets;
  options.target_offsets = targets.offsets;
  options.valid = view(table.valid.data(), {count});
  const ResamplePlan call(view(static_cast<const double*>(source.data()), {rows, width}),
                          view(recording.times.data(), {rows}), view(targets.times.data(), {count}),
                          view(table.values.data(), {count, width}), options);
  try {
    call.run();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_quaternion) fail_quaternion(recording, plan, error);
    throw;
  }
  table.variant = call.variant();
  return table;
}

io::Array output_column(const io::Recording& recording, std::size_t column, const ModePlan& plan,
                        const ResampledTable& table, const std::vector<std::int64_t>& kept) {
  const io::Column& from = recording.columns[column];
  io::Array to{from.data.type, from.data.shape, {}};
  to.shape[0] = static_cast<std::int64_t>(kept.size());
  auto data = io::allocate(to.bytes(), "column '" + from.name + "'");
  const std::size_t item = to.type.bytes;
  const auto width = static_cast<std::size_t>(from.width());
  const std::size_t row_bytes = width * item;
  const auto stride = static_cast<std::int64_t>(table.row_modes.size()) + table.value_columns;

  if (to.type.kind == io::ElementKind::real) {
    std::vector<std::int64_t> matrix_column(width, 0);
    std::int64_t next = 0;
    for (const ModeGroup& group : plan.groups)
      for (const ChannelReference& channel : group.channels) {
        if (channel.column == column) matrix_column[static_cast<std::size_t>(channel.channel)] = next;
        ++next;
      }
    for (std::size_t i = 0; i < kept.size(); ++i)
      for (std::size_t k = 0; k < width; ++k)
        io::store_real(to.type, table.values[static_cast<std::size_t>(kept[i] * stride + matrix_column[k])],
                       data.get() + i * row_bytes + k * item);
  } else {
    const auto mode = std::find(table.row_modes.begin(), table.row_modes.end(), plan.whole_columns[column]);
    const std::int64_t at = table.value_columns + (mode - table.row_modes.begin());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      std::byte* row = data.get() + i * row_bytes;
      if (table.valid[static_cast<std::size_t>(kept[i])] == 0) {
        std::memset(row, 0, row_bytes);
      } else {
        const double source_row = table.values[static_cast<std::size_t>(kept[i] * stride + at)];
        std::memcpy(row, from.data.data.get() + static_cast<std::size_t>(source_row) * row_bytes, row_bytes);
      }
    }
  }
  to.data = std::move(data);
  return to;
}

}  // namespace tmaops::cli
