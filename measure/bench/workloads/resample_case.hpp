// What a configuration says about a resampling, and the time grids of its two directions.
#pragma once

#include <cstdint>
#include <string>

#include "bench/workloads/workload.hpp"
#include "config/settings.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::bench {

inline constexpr double kNanoseconds = 1e9;  // of a second

struct ResampleCase {
  std::int64_t batch = 0;     // B
  std::int64_t samples = 0;   // S
  std::int64_t targets = 0;   // T
  std::int64_t channels = 0;  // D
  bool random_times = false;
  DType dtype = DType::f32;
  DType time_dtype = DType::f32;
  Interpolation interpolation = Interpolation::linear;
  Outside outside = Outside::hold;
  double max_gap = 0;  // seconds
  bool backward = false;
};

/// Reads the case and what differs from the defaults. Throws Error for bad settings.
ResampleCase read_resample_case(const Settings& problem);

/// Name, problem and operations; the floor is known with the times.
CaseInfo describe_resample(const Settings& problem, const ResampleCase& c, Device device);

/// Jittered: both grids are regular, each stamp moved by up to 40 % of its step. Random: source steps of 0.5 to 1.5
/// times the average, targets drawn uniformly over the recorded time and sorted. Dense (B, S) and (B, T) tensors.
void fill_times(const ResampleCase& c, const TensorView& source, const TensorView& target, std::uint64_t seed);

/// Rows of values that some target needs, over all trajectories: the two around it, or all over intervals.
double rows_touched(const ResampleCase& c, const TensorView& source, const TensorView& target);

/// The times of one trajectory, (1, S) or (1, T).
ConstTensorView times_of(const TensorView& times, std::int64_t trajectory);

}  // namespace tmaops::bench
