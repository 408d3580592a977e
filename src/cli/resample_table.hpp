// One call of tmaops::resample for all columns of a recording.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/resample_modes.hpp"
#include "cli/resample_targets.hpp"
#include "io/recording.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::cli {

struct ResamplePolicies {
  Outside outside = Outside::hold;
  Duplicates duplicates = Duplicates::error;
  std::int64_t max_gap = 0;  // nanoseconds, 0: no limit
};

/// Rows that were removed because the mask says that they have no data. `before[row]` is their number in front of a
/// row: between two neighbours with different numbers rows are missing.
struct MissingRows {
  std::vector<std::int64_t> before{};  // empty: nothing is missing
  std::int64_t count = 0;
};

/// The resampled targets.
struct ResampledTable {
  std::vector<double> values{};       // (targets, matrix columns), in the order of the plan's groups
  std::vector<std::uint8_t> valid{};  // per target
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
ResampledTable resample_table(const io::Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                              const ResamplePolicies& policies, const MissingRows& missing = {});

/// The column of the output, for the targets in `kept`: real numbers rounded once to the column's type; elements of
/// other types copied, zero (empty, false) at targets that are not valid.
io::Array output_column(const io::Recording& recording, std::size_t column, const ModePlan& plan,
                        const ResampledTable& table, const std::vector<std::int64_t>& kept);

}  // namespace tmaops::cli
