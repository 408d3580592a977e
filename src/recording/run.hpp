// Resampling a recording: every step of steps.hpp, in order.
#pragma once

#include <string>
#include <vector>

#include "recording/steps.hpp"

namespace tmaops::recording {

/// What the columns of a recording are. Decided once, it holds for other recordings of the same columns, such as the
/// episodes of a data set.
struct Rules {
  struct Kind {
    std::string name;
    ElementKind kind;
    std::int64_t width;
    friend bool operator==(const Kind&, const Kind&) = default;
  };

  Input input{};
  ModePlan plan{};
  TimeSummary time{};
  std::vector<Kind> columns{};  // that the plan is for

  /// What was assumed: how the times were read, the quaternions, angles and so on.
  std::vector<Note> notes() const;
  /// The times, the mode of every column with its reason, quaternions, notes and warnings, as JSON.
  std::string json(const std::vector<Note>& warnings) const;
};

/// Prepares the rows and columns of the recording and decides its rules, or takes those that are `fixed` already.
/// Throws Error bad_parameter where these are for other columns.
Rules decide(Recording& recording, const Options& options, const Policies& policies, const Rules* fixed,
             std::vector<Note>& warnings);

/// What a run found out, decided and computed.
struct Run {
  Policies policies{};
  Rules rules{};
  ResampleTargets targets{};
  Steps steps{};
  ResampledTable table{};
  Selection selection{};
  bool with_valid = false;  // some targets can have no data

  /// All but the values, as JSON: counts, the times, the mode of every column, quaternions, notes, warnings.
  std::string json(const std::vector<Note>& warnings) const;
};

/// Resamples the recording, whose rows and columns it prepares, but leaves the samples in it: replace_rows() puts the
/// selected targets into their place. What looks wrong is added to `warnings`, also when an error is thrown.
Run resample_recording(Recording& recording, const Options& options, const Defaults& defaults,
                       const GivenTargets* given, std::vector<Note>& warnings, const Rules* fixed = nullptr);

/// Throws Error warnings_refused for --strict where there is a warning.
void check_strict(const Options& options, const std::vector<Note>& warnings);

}  // namespace tmaops::recording
