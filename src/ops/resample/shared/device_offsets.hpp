// Offsets of packed rows that only the device knows. Nobody has checked them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tmaops::ops::resample::gpu {

/// Which rows belong to each of `batch` trajectories.
struct UncheckedOffsets {
  const std::int64_t* at = nullptr;  // batch + 1 numbers; null: every trajectory has `rows` rows of its own
  std::int64_t rows = 0;             // of all trajectories together where there are offsets
  std::int64_t batch = 0;

  /// Whether number i breaks a rule: offsets begin at 0, never decrease, and end at the number of rows. Where none
  /// does, every trajectory lies within the rows.
  constexpr bool is_wrong(std::int64_t i) const {
    if (at == nullptr) return false;
    return (i == 0 ? at[0] != 0 : at[i] < at[i - 1]) || (i == batch && at[i] != rows);
  }
  constexpr std::int64_t offset(std::int64_t i) const { return at == nullptr ? i * rows : at[i]; }
};

/// Rows of a trajectory that a grid is made for where nobody knows the longest one: several times the mean, since many
/// are about as long. Longer ones are taken by the same blocks.
constexpr std::int64_t expected_rows(std::int64_t rows, std::int64_t batch) {
  constexpr std::int64_t kMeans = 4;
  return batch < 1 ? 0 : std::min(rows, kMeans * ((rows + batch - 1) / batch));
}

/// Elements of a tensor (trajectories, rows, channels), of 1, 2, 4 or 8 bytes.
struct Elements {
  unsigned char* data = nullptr;
  std::int64_t trajectories = 0, rows = 0, channels = 0;
  std::int64_t trajectory_stride = 0, row_stride = 0, channel_stride = 0;
  std::int64_t size = 0;

  constexpr std::int64_t count() const { return trajectories * rows * channels; }
  /// Address of element i in the order of rows.
  constexpr unsigned char* element(std::int64_t i) const {
    const std::int64_t row = i / channels;
    return data + (row / rows * trajectory_stride + row % rows * row_stride + i % channels * channel_stride) * size;
  }
};

}  // namespace tmaops::ops::resample::gpu
