// The calls that are measured most, in about 130 bytes: one of linear, previous, next and nearest for all channels,
// targets outside held, no gaps, no mask, nothing packed. Kernels are compiled for these and for the general Call; the
// parts that differ are overloads. (A general call is 500 bytes in several lines of constant memory, and its policies
// cost about as many instructions as combining a hundred 16-byte chunks.)
#pragma once

#include "ops/resample/cuda/call.cuh"
#include "ops/resample/cuda/timeline.cuh"

namespace tmaops::ops::resample::cuda {

/// Passed to kernels by value.
struct PlainCall {
  const unsigned char* stamps = nullptr;   // source times; multiple of 16
  const unsigned char* targets = nullptr;  // target times
  const unsigned char* values = nullptr;
  unsigned char* output = nullptr;
  std::int64_t stamp_stride = 0;   // bytes from one trajectory to the next, 0 when shared
  std::int64_t target_stride = 0;  // the same for targets
  std::int64_t value_stride = 0;
  std::int64_t output_stride = 0;
  const unsigned char* stamps_end = nullptr;  // the last multiple of 16 inside the tensor: 16-byte units end here
  const unsigned char* values_end = nullptr;
  int samples = 0;
  int target_count = 0;
  int batch = 0;
  Pace pace{};
  Interpolation interpolation = Interpolation::linear;
};

/// The second number of __launch_bounds__: `wanted` blocks per multiprocessor, or those whose threads it holds.
constexpr int resident_blocks(int threads, int wanted) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
  constexpr int most = 1536;
#else
  constexpr int most = 2048;
#endif
  return wanted * threads > most ? most / threads : wanted;
}

inline constexpr std::int64_t kMostPlainBatch = 65535;  // one dimension of a grid

/// Whether a call is plain; supports_windows() holds and rows are dense.
inline bool is_plain(const Problem& problem, const Call& call) {
  const auto aligned = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; };
  return problem.outside == Outside::hold && !problem.max_gap && !problem.valid_mask && !problem.packed_source &&
         !problem.packed_target && !problem.uniform_grid && problem.dense_rows && problem.unit_time_stride &&
         problem.source >= 2 && problem.batch <= kMostPlainBatch && call.times_begin == call.line.source.data &&
         aligned(call.times_begin) && call.values_begin == call.values.data && aligned(call.values_begin);
}

inline PlainCall plain_call(const Problem& problem, const Call& call) {
  const auto time_bytes = static_cast<std::int64_t>(size_of(problem.times));
  const auto value_bytes = static_cast<std::int64_t>(size_of(problem.values));
  const auto last_unit = [](const unsigned char* end) { return end - reinterpret_cast<std::uintptr_t>(end) % 16; };
  PlainCall plain;
  plain.stamps = static_cast<const unsigned char*>(call.line.source.data);
  plain.targets = static_cast<const unsigned char*>(call.line.target.data);
  plain.values = static_cast<const unsigned char*>(call.values.data);
  plain.output = static_cast<unsigned char*>(const_cast<void*>(call.output.data));
  plain.stamp_stride = call.line.source.trajectory_stride * time_bytes;
  plain.target_stride = call.line.target.trajectory_stride * time_bytes;
  plain.value_stride = call.values.trajectory_stride * value_bytes;
  plain.output_stride = call.output.trajectory_stride * value_bytes;
  plain.stamps_end = last_unit(call.times_end);
  plain.values_end = last_unit(call.values_end);
  plain.samples = static_cast<int>(problem.source);
  plain.target_count = static_cast<int>(problem.target);
  plain.batch = static_cast<int>(problem.batch);
  plain.pace = call.pace;
  plain.interpolation = call.interpolation;
  return plain;
}

/// Calls fn with the PlainCall where the call is plain, else with the Call.
template <class Fn>
void with_call(const Problem& problem, const Call& call, const Fn& fn) {
  if (is_plain(problem, call))
    fn(plain_call(problem, call));
  else
    fn(call);
}

}  // namespace tmaops::ops::resample::cuda
