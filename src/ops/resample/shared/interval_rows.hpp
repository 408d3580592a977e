// Rows of channels over the interval of a target: what a variant brings, in f64 whatever the type of the values.
#pragma once

#include <cstdint>

namespace tmaops::ops::resample {

/// Neighbouring samples of a group; strides in elements.
struct RowRun {
  const void* rows;
  std::int64_t row_stride;
  std::int64_t channel_stride;
  std::int64_t count;
  std::int64_t channels;
};

/// The kernels of a variant for one type of values.
struct IntervalKernels {
  /// sums = origin + sum over rows of weight * (row - origin), which keeps constants exact where weights add up to 1.
  void (*weigh)(const RowRun&, const double* weights, const double* origin, double* sums);
  /// The first row.
  void (*read)(const RowRun&, double* values);
  /// The extreme of each channel, and which row has it first.
  void (*smallest)(const RowRun&, double* best, std::int64_t* rows);
  void (*largest)(const RowRun&, double* best, std::int64_t* rows);
  void (*any)(const RowRun&, double* found);
  void (*count)(const RowRun&, double* counts);
  void (*write)(const double* values, void* to, std::int64_t stride, std::int64_t count);
};

}  // namespace tmaops::ops::resample
