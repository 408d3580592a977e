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

/// Rows that the recording's mask says have no data are not among its samples. `before[row]` counts those in front of a
/// row that has: two neighbours with different counts have something missing between them.
struct MissingRows {
  std::vector<std::int64_t> before{};  // empty: nothing is missing
  std::int64_t count = 0;
};

/// What became of the targets.
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

/// Values of real columns are resampled in f64. The row numbers themselves are resampled like a channel (f64 holds them
/// exactly), so that columns of any type are copied bit by bit.
/// Nothing is interpolated across missing rows: such targets are NaN and not valid.
ResampledTable resample_table(const io::Recording& recording, const ResampleTargets& targets, const ModePlan& plan,
                              const ResamplePolicies& policies, const MissingRows& missing = {});

/// The column of the output, for the targets in `kept`: real numbers rounded once to the column's type; elements of
/// other types copied, zero (empty, false) at targets that are not valid.
io::Array output_column(const io::Recording& recording, std::size_t column, const ModePlan& plan,
                        const ResampledTable& table, const std::vector<std::int64_t>& kept);

}  // namespace tmaops::cli
