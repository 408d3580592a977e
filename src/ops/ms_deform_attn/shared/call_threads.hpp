// How many threads a call on the CPU is worth.
#pragma once

#include "core/parallel.hpp"
#include "ops/ms_deform_attn/problem.hpp"

namespace tmaops::ops::ms_deform_attn {

/// Microseconds that one thread takes, about, to read a channel at the four pixels of a sample (results/cpu: decoders).
inline constexpr double kSampledChannel = 0.5e-3;
/// The same for the backward pass, and for a channel of a pixel that it converts and writes back.
inline constexpr double kSampledChannelBackward = 2e-3;
inline constexpr double kPixelChannelBackward = 1e-3;

/// Channels of all pixels, or of all samples, of every image and head.
inline double channels_of(const Problem& problem, std::int64_t places) {
  return static_cast<double>(problem.batch) * static_cast<double>(problem.heads) *
         static_cast<double>(problem.channels) * static_cast<double>(places);
}
inline double sampled_channels(const Problem& problem) {
  return channels_of(problem, problem.queries) * static_cast<double>(problem.points);
}

inline int forward_threads(const Problem& problem) { return threads_for(kSampledChannel * sampled_channels(problem)); }

inline int backward_threads(const Problem& problem) {
  return threads_for(kSampledChannelBackward * sampled_channels(problem) +
                     kPixelChannelBackward * channels_of(problem, problem.length));
}

}  // namespace tmaops::ops::ms_deform_attn
