// The checks that need the times and values themselves, one after the other in the order of the trajectories.
#pragma once

#include "ops/resample/problem.hpp"

namespace tmaops::ops::resample {

/// Throws the first error that the data of a call holds: empty_trajectory, times_not_finite, time_precision,
/// times_not_sorted, duplicate_times, time_overflow, target_outside, bad_quaternion. Trajectories without targets are
/// not looked at. Variants check in passing and come here only to say what was wrong, so that every variant reports
/// the same first error. Without values, quaternions are not checked.
void check_data(const Problem& problem, const Timeline& timeline, const Rows* values);

/// For a variant whose own checks failed: throws the error, internal if there is none.
[[noreturn]] void throw_data_error(const Problem& problem, const Timeline& timeline, const Rows* values);

/// True when f32 cannot tell timestamps of this magnitude and mean distance apart: its resolution at the larger end
/// exceeds the mean step. With all timestamps equal it is taken as too coarse from 2^17 s on.
bool too_coarse(float first, float last, std::int64_t count);

}  // namespace tmaops::ops::resample
