// The steps of resampling a recording and what each hands to the next. run.cpp goes through them in this order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recording/column_rules.hpp"
#include "recording/options.hpp"
#include "recording/recording.hpp"
#include "recording/times.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::recording {

// --- policies.cpp: the options that are checked before any data is looked at -----------------------------------------
/// What holds where the options say nothing.
struct Defaults {
  std::string outside = "nan";
  bool last_duplicate_wins = false;
  bool drop_gaps = false;  // targets in a gap are left out, because the output has no place for their being invalid
};

struct Policies {
  std::string outside{};                 // as --outside names it
  Outside outside_mode = Outside::hold;  // what the operator does there
  Duplicates duplicates = Duplicates::error;
  std::int64_t max_gap = 0;  // nanoseconds, 0: no limit
  bool drop_gaps = false;
};

/// Throws Error bad_parameter.
Policies make_policies(const Options& options, const Defaults& defaults);

/// --start, --end and --snap in nanoseconds.
struct TargetWindow {
  std::optional<std::int64_t> start{};
  std::optional<std::int64_t> end{};
  std::int64_t snap = 0;
};
/// Throws Error bad_parameter.
TargetWindow parse_window(const Options& options);

// --- selectors.cpp: the columns that a text such as `tx..tz`, `state[3:7]` or `quaternion` names ---------------------
/// The quaternions and positions that the selectors `quaternion` and `position` name.
struct ColumnRoles {
  std::vector<NamedVector> quaternions{};
  std::vector<NamedVector> positions{};
};

ColumnRoles find_roles(const Recording& recording);

/// Reads the selectors of an option:
///   NAME                    a column, with or without its unit in brackets
///   NAME[a:b], NAME[a]      channels a to b - 1 of an array, or channel a
///   A..B                    the columns from A to B
///   3                       a column of a text file by its number, counted from 1 with the time column
///   position, quaternion    every one that is recognised
/// Throws Error usage.
class Selector {
 public:
  /// `option` is its text in messages: "--mode x=linear". Numbers name columns only where `numbers` is true.
  Selector(const Recording& recording, const ColumnRoles& roles, std::string option, bool numbers = true)
      : recording_(recording), roles_(roles), option_(std::move(option)), numbers_(numbers) {}

  std::vector<ChannelReference> select(const std::string& text) const;
  /// The column of this name, exactly or without its unit.
  std::optional<std::size_t> find(const std::string& name) const;
  /// True for NAME[a:b] and NAME[a] of a column that there is.
  bool is_slice(const std::string& text) const;
  std::vector<ChannelReference> all_channels(std::size_t column) const;
  [[noreturn]] void fail(std::string got, std::string needed) const;

 private:
  std::optional<std::size_t> find_or_number(const std::string& text) const;
  std::vector<ChannelReference> slice(std::size_t column, const std::string& text) const;

  const Recording& recording_;
  const ColumnRoles& roles_;
  std::string option_;
  bool numbers_;
};

/// A channel that --columns kept, with its old and its new place.
struct MovedChannel {
  ChannelReference from{};
  ChannelReference to{};
};
/// The roles of columns that were chosen and renamed: those of their names now, and those of their names before where
/// all components were kept.
ColumnRoles carry_roles(const Recording& recording, const ColumnRoles& before, const std::vector<MovedChannel>& moved);

// --- input.cpp: the recording, sorted, without rows that have no data, with the chosen columns -----------------------
/// Rows that were removed because the mask says that they have no data. `before[row]` is their number in front of a
/// row: between two neighbours with different numbers rows are missing.
struct MissingRows {
  std::vector<std::int64_t> before{};  // empty: nothing is missing
  std::int64_t count = 0;
};

struct Input {
  ColumnRoles given{};  // of the columns as given
  ColumnRoles roles{};  // of the chosen ones
  MissingRows missing{};
  std::int64_t rows = 0;   // as given
  std::int64_t moved = 0;  // rows that --sort moved
  bool has_mask = false;   // there is a column `valid`
};

/// Numbers the values of the first rows of an array that is no real one, in the order in which they come first.
std::vector<std::size_t> number_values(const Array& array, std::int64_t rows);

/// Throws Error usage for --columns, empty_trajectory.
/// `roles` are those of the given columns where they are decided already.
Input prepare(Recording& recording, const Options& options, const ColumnRoles* roles = nullptr);

// --- modes.cpp: the interpolation of every column --------------------------------------------------------------------
/// Channels that are interpolated together: any number of them, the four of one quaternion for slerp, or one angle.
/// They are real numbers, but for modes over intervals that keep whole numbers whole.
struct ModeGroup {
  Interpolation interpolation = Interpolation::linear;
  std::vector<ChannelReference> channels{};
  std::optional<AngleRule> angle{};
};

/// A column, or neighbouring channels of one, that have one mode.
struct ModePart {
  std::string name;       // "tx", "state[3:7]"
  std::string_view mode;  // "linear", "angle"
  std::string_view reason;
  std::size_t source = Column::kMade;  // the column among the arrays that the caller gave
  std::int64_t first = 0, count = 0;   // channels
};

struct ModePlan {
  std::vector<ModeGroup> groups{};
  std::vector<ChannelReference> linear_by_default{};  // that nobody asked to be so
  /// Per column that is not of real numbers, or an image: previous, next or nearest, and it is copied sample by sample;
  /// or a mode over intervals that keeps its numbers whole, and it is part of a group.
  std::vector<Interpolation> whole_columns{};  // index: column; linear for other columns of real numbers
  std::vector<ModePart> parts{};               // for the summary
  /// Quaternions by the names of their columns, and the order of their components.
  std::vector<std::pair<std::string, std::string>> quaternions{};
  /// The four channels of each that has mode slerp, in the order of their computation: arrays that the caller gave.
  std::vector<std::vector<ChannelReference>> slerp{};
  std::vector<Note> notes{};
  std::vector<Note> warnings{};
};

/// Applies the defaults and then the user's "SELECTOR,SELECTOR=MODE" or "MODE" in order. A SELECTOR is one of the
/// class Selector, or * for every column that can have the mode. Columns of whole numbers of a text file that are part
/// of a quaternion or position, or that get linear, cubic, slerp or angle by name, become real numbers in the
/// recording. Throws Error usage (unknown selector or mode), bad_column_mode, bad_quaternion.
ModePlan plan_modes(Recording& recording, const ColumnRoles& roles, const Options& options);

// --- targets.cpp: the times to resample to ---------------------------------------------------------------------------
/// Targets that are given: the times of a file or an array.
struct GivenTargets {
  std::vector<std::int64_t> times{};    // nanoseconds, the same for every episode
  std::vector<std::int64_t> offsets{};  // not empty: of each episode's targets among the times instead
  std::string option = "--times";       // that gave them
  std::string unit_option = "--times-unit";
  std::string where{};           // for messages
  std::string text{};            // for the summary: "FILE, column 't' in s"
  std::vector<Note> warnings{};  // of reading them
  TimeColumn time{};             // how they were given
};

/// Target times of all episodes one after the other, and where each episode's start.
struct ResampleTargets {
  std::vector<std::int64_t> times{};         // nanoseconds
  std::vector<std::int64_t> sample_times{};  // the times of the values: `times`, or a sample's within --snap
  std::vector<std::int64_t> offsets{};       // episodes + 1
  std::int64_t snapped = 0;                  // how many of them differ
};

/// From --hz (per episode: the grid begins at its first timestamp, or at --start, or with --align at a multiple of the
/// period; point i lies i / hz later, rounded to the nanosecond; up to the last timestamp or --end), or `given` (the
/// same for every episode, those from --start to --end). Throws Error bad_parameter, usage.
ResampleTargets make_targets(const Options& options, const TargetWindow& window, const Recording& recording,
                             const GivenTargets* given);

// --- table.cpp: one call of tmaops::resample for all columns ---------------------------------------------------------
/// The targets that are kept, and how many lie outside or in gaps.
struct Selection {
  std::vector<std::int64_t> kept{};
  std::vector<std::int64_t> offsets{0};  // of the kept ones, per episode
  std::int64_t outside = 0;
  std::int64_t in_gaps = 0;  // the masked ones among them
};

/// The resampled targets.
struct ResampledTable {
  std::unique_ptr<double[]> values{};  // (targets, matrix columns), in the order of the plan's groups
  std::vector<std::uint8_t> valid{};   // per target
  /// Per target and mode previous, next, nearest: the row of the source that columns of other types copy.
  std::vector<Interpolation> row_modes{};
  std::int64_t masked = 0;         // targets between samples that the mask separates
  std::int64_t value_columns = 0;  // of the matrix; the row numbers follow them
  std::int64_t stride = 0;         // columns of the matrix in all
  std::string variant{};
};

/// Resamples real columns in f64. The row numbers are resampled like a channel, so that columns of other types can be
/// copied bit by bit; f64 holds the numbers exactly. Targets between rows with missing rows between them are NaN and
/// not valid.
ResampledTable resample_table(const Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                              const Policies& policies, const MissingRows& missing = {});

/// Gives the kept targets the events of those that are left out.
void move_events(const Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                 const Policies& policies, const Selection& selection, ResampledTable& table);

/// The columns of the output, for the targets in `kept`: real numbers rounded once to the column's type; elements of
/// other types copied, zero (empty, false, row -1) at targets that are not valid.
std::vector<Array> output_columns(const Recording& recording, const ModePlan& plan, const ResampledTable& table,
                                  const Selection& selection);

// --- output.cpp: the recording at its new times ----------------------------------------------------------------------
Selection select_rows(const Recording& recording, const ResampleTargets& targets, const ResampledTable& table,
                      const Policies& policies);

/// Throws Error target_outside or bad_parameter when no target at all has data.
void check_something_left(const GivenTargets* given, const Recording& recording, const ResampleTargets& targets,
                          const ResampledTable& table, const Selection& selection, const Policies& policies);

/// Puts the selected targets into the place of the samples.
void replace_rows(Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                  const ResampledTable& table, const Selection& selection, bool with_valid);

// --- report.cpp, warnings.cpp: how the times were read, what looks wrong, what was done ------------------------------
/// The steps between neighbouring samples of an episode, in nanoseconds.
struct Steps {
  std::int64_t longest = 0, median = 0, wider_than_gap = 0, zero = 0;
};
Steps measure_steps(const Recording& recording, std::int64_t max_gap);

/// How the times of a recording were read.
struct TimeSummary {
  TimeColumn column{};
  std::string_view kind = "column";
  std::int64_t first = 0, last = 0, median_step = 0;

  /// "column 'seq' in s, 0 to 20 s, 10 Hz median (the first column, since no name is known; unit assumed)". The options
  /// are those that named the column and its unit.
  std::string text(std::string_view name_option = "--times-array", std::string_view unit_option = "--time-unit") const;
};
TimeSummary summarise_times(const Recording& recording, const Steps& steps);

/// What looks wrong in the recording itself.
void warn_of_recording(const Recording& recording, std::vector<Note>& warnings);
/// Columns of which a part of the energy is above half the rate of the targets. The work has a bound per column.
void warn_of_aliasing(const Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                      Duplicates duplicates, std::vector<Note>& warnings);
/// What looks wrong between the recording and the targets.
void warn_of_targets(const Options& options, const Recording& recording, const GivenTargets* given,
                     const ResampleTargets& targets, const Steps& steps, const TargetWindow& window,
                     std::vector<Note>& warnings);

}  // namespace tmaops::recording
