// What a warp makes at a time.
#pragma once

namespace tmaops::ops::resample::curve_window_walk {

/// Consecutive targets that a warp walks along, a strand.
inline constexpr int kStrandTargets = 16;

}  // namespace tmaops::ops::resample::curve_window_walk
