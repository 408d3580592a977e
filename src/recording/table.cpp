#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "ops/resample/options.hpp"
#include "recording/steps.hpp"
#include "tmaops/error.hpp"

namespace tmaops::recording {
namespace {

constexpr std::int64_t kPiece = 256;  // rows
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// Modes whose samples belong to one target each, or in parts to several.
bool takes_events(Interpolation mode) {
  return ops::resample::over_interval(mode) && mode != Interpolation::mean && mode != Interpolation::lowpass;
}

/// Whether rows of a column with this mode in ModePlan::whole_columns are copied.
bool is_copied(Interpolation mode) { return mode != Interpolation::linear && !ops::resample::over_interval(mode); }

std::vector<Interpolation> needed_row_modes(const Recording& recording, const ModePlan& plan,
                                            const MissingRows& missing) {
  std::vector<Interpolation> modes;
  if (!missing.before.empty()) modes = {Interpolation::previous, Interpolation::next};
  for (const ModeGroup& group : plan.groups)
    if (group.angle && modes.empty()) modes.push_back(Interpolation::previous);
  for (std::size_t c = 0; c < recording.columns.size(); ++c)
    if (is_copied(plan.whole_columns[c]) && std::find(modes.begin(), modes.end(), plan.whole_columns[c]) == modes.end())
      modes.push_back(plan.whole_columns[c]);
  // Without any column the valid mask is still wanted, and the operator must have a channel to say which is valid.
  if (modes.empty() && plan.groups.empty()) modes.push_back(Interpolation::previous);
  return modes;
}

/// Uninitialised.
std::unique_ptr<double[]> matrix(std::int64_t rows, std::int64_t columns) {
  try {
    return std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "resample",
         std::to_string(rows) + " rows of " + std::to_string(columns) + " f64 asked for", "memory");
  }
}

/// Throws the operator's error with the line of the file and the names of the columns.
[[noreturn]] void fail_quaternion(const Recording& recording, const ModePlan& plan, const Error& error) {
  for (std::int64_t row = 0; row < recording.rows(); ++row)
    for (const ModeGroup& group : plan.groups) {
      if (group.interpolation != Interpolation::slerp) continue;
      const ColumnView view{recording.columns};
      const auto value = [&](const ChannelReference& channel) { return view.value(channel, row); };
      const bool zero = std::ranges::all_of(group.channels, [](double each) { return each == 0; }, value);
      const bool finite = std::ranges::all_of(group.channels, [](double each) { return std::isfinite(each); }, value);
      const std::string values = joined(group.channels, " ", [&](const auto& each) { return real_text(value(each)); });
      if (zero || !finite)
        fail(ErrorCode::bad_quaternion, recording.place(row) + ": " + display_text(view.text(group.channels)), values,
             "a quaternion whose norm is finite and not zero",
             "Drop the rows without an orientation, or choose another --mode for these columns.");
    }
  throw error;
}

/// The number of whole turns to add to an angle in each row, so that it turns the shorter way from row to row. It is 0
/// in the first row of an episode.
std::vector<double> turns_of(const Recording& recording, const ModeGroup& group) {
  const auto value = [&](std::int64_t row) { return ColumnView{recording.columns}.value(group.channels[0], row); };
  std::vector<double> turns(static_cast<std::size_t>(recording.rows()), 0);
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
    for (std::int64_t row = recording.offsets[e] + 1; row < recording.offsets[e + 1]; ++row) {
      const double step = std::round((value(row) - value(row - 1)) / group.angle->turn);
      turns[static_cast<std::size_t>(row)] =
          turns[static_cast<std::size_t>(row - 1)] - (std::isfinite(step) ? step : 0);
    }
  return turns;
}

/// The angle between two samples: the value on the straight line between them plus `turns`, brought into the rule's
/// range.
double wrapped(double line, double turns, const AngleRule& rule) {
  const double angle = line + turns * rule.turn;
  if (!rule.low || (angle >= rule.least && angle <= rule.greatest) || !std::isfinite(angle)) return angle;
  const double above = angle - *rule.low;
  return above >= 0 && above < rule.turn ? angle : angle - std::floor(above / rule.turn) * rule.turn;
}

std::int64_t row_mode(const ResampledTable& table, Interpolation mode) {
  return table.value_columns + (std::ranges::find(table.row_modes, mode) - table.row_modes.begin());
}

/// The rows that columns of other types copy, for these targets; -1 where there is none.
std::vector<std::int64_t> source_rows(const ResampledTable& table, std::int64_t at,
                                      const std::vector<std::int64_t>& kept) {
  std::vector<std::int64_t> rows;
  rows.reserve(kept.size());
  for (const std::int64_t target : kept)
    rows.push_back(table.valid[static_cast<std::size_t>(target)] == 0
                       ? -1
                       : static_cast<std::int64_t>(table.values[static_cast<std::size_t>(target * table.stride + at)]));
  return rows;
}

/// Replaces the straight lines of angles by the shorter way round. The turns of each angle follow the row numbers.
void wrap_angles(const Recording& recording, const ModePlan& plan, ResampledTable& table) {
  const std::int64_t previous = row_mode(table, Interpolation::previous);
  std::int64_t channel = 0, turn_column = table.value_columns + static_cast<std::int64_t>(table.row_modes.size());
  for (const ModeGroup& group : plan.groups) {
    if (group.angle) {
      const std::vector<double> turns = turns_of(recording, group);
      for (std::size_t t = 0; t < table.valid.size(); ++t) {
        double* row = table.values.get() + static_cast<std::int64_t>(t) * table.stride;
        if (table.valid[t] == 0) continue;
        const auto before = static_cast<std::size_t>(row[previous]);
        row[channel] = wrapped(row[channel], row[turn_column] - turns[before], *group.angle);
      }
      ++turn_column;
    }
    channel += static_cast<std::int64_t>(group.channels.size());
  }
}

/// Channels [first, first + count) of the matrix whose mode takes events, and all others.
struct ChannelRuns {
  using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;
  Runs events{};
  Runs others{};
};
ChannelRuns channel_runs(const ModePlan& plan) {
  ChannelRuns runs;
  std::int64_t at = 0;
  for (const ModeGroup& group : plan.groups) {
    const auto count = static_cast<std::int64_t>(group.channels.size());
    (takes_events(group.interpolation) ? runs.events : runs.others).emplace_back(at, count);
    at += count;
  }
  return runs;
}

/// Targets strictly between two samples with missing rows between them have no data but for the events before.
void mask_missing(const MissingRows& missing, const ChannelRuns::Runs& masked, ResampledTable& table) {
  const std::int64_t previous = row_mode(table, Interpolation::previous), next = row_mode(table, Interpolation::next);
  for (std::size_t t = 0; t < table.valid.size(); ++t) {
    double* row = table.values.get() + static_cast<std::int64_t>(t) * table.stride;
    if (table.valid[t] == 0 ||
        missing.before[static_cast<std::size_t>(row[previous])] == missing.before[static_cast<std::size_t>(row[next])])
      continue;
    for (const auto& [first, count] : masked) std::fill_n(row + first, count, kNoValue);
    table.valid[t] = 0;
    ++table.masked;
  }
}

}  // namespace

ResampledTable resample_table(const Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                              const Policies& policies, const MissingRows& missing) {
  ResampledTable table;
  table.row_modes = needed_row_modes(recording, plan, missing);
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
  const std::int64_t first_turns = width;
  for (const ModeGroup& group : plan.groups)
    if (group.angle) groups.push_back({width++, 1, Interpolation::linear});

  const std::int64_t rows = recording.rows();
  const std::unique_ptr<double[]> source = matrix(rows, width);
  // Rows in pieces that stay in the cache while every column is written to them.
  for (std::int64_t row = 0; row < rows; row += kPiece)
    for (std::size_t k = 0; k < channels.size(); ++k) {
      const Column& column = recording.columns[channels[k].column];
      const std::int64_t column_width = column.width();
      load_f64(column.data, row * column_width + channels[k].channel, column_width, std::min(kPiece, rows - row),
               source.get() + row * width + static_cast<std::int64_t>(k), width);
    }
  for (std::int64_t row = 0; row < rows; ++row)
    std::fill_n(source.get() + row * width + table.value_columns, table.row_modes.size(), static_cast<double>(row));
  std::int64_t turn_column = first_turns;
  for (const ModeGroup& group : plan.groups) {
    if (!group.angle) continue;
    const std::vector<double> turns = turns_of(recording, group);
    for (std::int64_t row = 0; row < rows; ++row)
      source[static_cast<std::size_t>(row * width + turn_column)] = turns[static_cast<std::size_t>(row)];
    ++turn_column;
  }

  const auto count = static_cast<std::int64_t>(targets.times.size());
  table.values = matrix(count, width);
  table.valid.assign(targets.times.size(), 0);
  ResampleOptions options;
  options.channel_groups = groups;
  options.outside = policies.outside_mode;
  options.duplicates = policies.duplicates;
  options.max_gap = policies.max_gap;
  options.source_offsets = recording.offsets;
  options.target_offsets = targets.offsets;
  options.valid = view(table.valid.data(), {count});
  const Plan call =
      plan_resample(view(static_cast<const double*>(source.get()), {rows, width}), view(recording.times.data(), {rows}),
                    view(targets.sample_times.data(), {count}), view(table.values.get(), {count, width}), options);
  try {
    call.run();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_quaternion) fail_quaternion(recording, plan, error);
    throw;
  }
  table.variant = call.variant();
  table.stride = width;
  wrap_angles(recording, plan, table);
  if (!missing.before.empty()) mask_missing(missing, channel_runs(plan).others, table);
  return table;
}

void move_events(const Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                 const Policies& policies, const Selection& selection, ResampledTable& table) {
  const ChannelRuns::Runs events = channel_runs(plan).events;
  if (events.empty() || selection.kept.size() == targets.times.size()) return;
  ResampleTargets kept;
  kept.offsets = selection.offsets;
  for (const std::int64_t target : selection.kept) {
    kept.times.push_back(targets.times[static_cast<std::size_t>(target)]);
    kept.sample_times.push_back(targets.sample_times[static_cast<std::size_t>(target)]);
  }
  const ResampledTable moved = resample_table(recording, kept, plan, policies);
  for (std::size_t k = 0; k < selection.kept.size(); ++k)
    for (const auto& [first, count] : events)
      std::copy_n(moved.values.get() + static_cast<std::int64_t>(k) * moved.stride + first, count,
                  table.values.get() + selection.kept[k] * table.stride + first);
}

namespace {

/// Writes the result of a mode over intervals in the type of a column of whole numbers.
void store_whole(const Column& column, Interpolation mode, double value, std::byte* to) {
  constexpr double kExact = 0x1p53;  // up to which f64 has every whole number
  const ElementType& type = column.data.type;
  const auto bits = static_cast<int>(8 * type.bytes);
  const bool is_signed = type.descr[1] == 'i';
  const double most = type.kind == ElementKind::boolean ? 1 : std::ldexp(1, is_signed ? bits - 1 : bits) - 1;
  const double least = is_signed ? -std::ldexp(1, bits - 1) : 0;
  if (!(value >= least && value <= most) || std::abs(value) > kExact)
    fail(ErrorCode::bad_column_mode, "column '" + display_text(column.name) + "'",
         std::string(ops::resample::name_of(mode)) + " that is " + real_text(value) + ", in the type " + type.descr,
         "results that the type holds, below 2^53");
  const auto whole = static_cast<std::int64_t>(value);
  std::memcpy(to, &whole, type.bytes);
}

}  // namespace

std::vector<Array> output_columns(const Recording& recording, const ModePlan& plan, const ResampledTable& table,
                                  const Selection& selection) {
  const std::vector<std::int64_t>& kept = selection.kept;
  const auto count = static_cast<std::int64_t>(kept.size());
  std::vector<Array> made;
  std::vector<std::byte*> memory;  // of each column of real numbers
  for (std::size_t c = 0; c < recording.columns.size(); ++c) {
    const Array& from = recording.columns[c].data;
    const std::string what = "column '" + recording.columns[c].name + "'";
    if (is_copied(plan.whole_columns[c])) {
      made.push_back(take_rows(from, source_rows(table, row_mode(table, plan.whole_columns[c]), kept), what));
      memory.push_back(nullptr);
      continue;
    }
    Array to{from.type, from.shape, {}};
    to.shape[0] = count;
    auto data = allocate(to.bytes(), what);
    memory.push_back(data.get());
    to.data = std::move(data);
    made.push_back(std::move(to));
  }
  for (std::int64_t first = 0; first < count; first += kPiece) {
    const std::int64_t piece = std::min(kPiece, count - first);
    const std::int64_t target = kept[static_cast<std::size_t>(first)];
    const bool together = kept[static_cast<std::size_t>(first + piece - 1)] - target == piece - 1;
    std::int64_t at = 0;
    for (const ModeGroup& group : plan.groups)
      for (const ChannelReference& channel : group.channels) {
        const ElementType& type = made[channel.column].type;
        if (type.kind != ElementKind::real) {  // below, since a sum goes on from piece to piece
          ++at;
          continue;
        }
        const std::int64_t width = recording.columns[channel.column].width();
        std::byte* to = memory[channel.column] + static_cast<std::size_t>(first * width + channel.channel) * type.bytes;
        if (together) {
          store_reals(type, table.values.get() + target * table.stride + at, table.stride, piece, to, width);
        } else {
          for (std::int64_t i = 0; i < piece; ++i)
            store_reals(type, table.values.get() + kept[static_cast<std::size_t>(first + i)] * table.stride + at, 0, 1,
                        to + static_cast<std::size_t>(i * width) * type.bytes, 0);
        }
        ++at;
      }
  }
  std::int64_t at = 0;
  for (const ModeGroup& group : plan.groups)
    for (const ChannelReference& channel : group.channels) {
      const ElementType& type = made[channel.column].type;
      const std::int64_t width = recording.columns[channel.column].width();
      for (std::size_t e = 0; type.kind != ElementKind::real && e + 1 < selection.offsets.size(); ++e) {
        double total = 0, stored = 0;  // a sum leaves its fraction to the next target, so that no part is lost
        for (std::int64_t i = selection.offsets[e]; i < selection.offsets[e + 1]; ++i) {
          double value = table.values[static_cast<std::size_t>(kept[static_cast<std::size_t>(i)] * table.stride + at)];
          if (std::isnan(value)) value = 0;
          total += value;
          if (group.interpolation == Interpolation::sum) value = std::round(total) - stored;
          stored += value;
          store_whole(recording.columns[channel.column], group.interpolation, value,
                      memory[channel.column] + static_cast<std::size_t>(i * width + channel.channel) * type.bytes);
        }
      }
      ++at;
    }
  return made;
}

}  // namespace tmaops::recording
