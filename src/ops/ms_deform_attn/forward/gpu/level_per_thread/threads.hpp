// The threads of level_per_thread: for the kernel and for its configurations.
#pragma once

#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn::level_per_thread {

inline constexpr int kMostThreadBits = 4;  // log2 of the threads of an item: with more, some would have no point

/// Of a multiprocessor, and of a block at most: 96 registers; with these the points of a whole item and values of f32
/// would spill a few.
constexpr int threads_at_once(std::size_t value_size, int group_bits) {
  return value_size == 4 && group_bits == 0 ? 512 : 640;
}

/// Of a multiprocessor where two groups have the loads of all their samples under way: 128 registers.
inline constexpr int kThreadsOfWhole = 512;

/// Whether all items run in `rounds` with so many groups each.
inline bool fits(const Problem& problem, const DeviceInfo& device, int group_bits, int rounds, int threads) {
  return problem.batch * problem.queries * problem.heads << (gpu::lane_bits(problem) + group_bits) <=
         std::int64_t{rounds} * device.multiprocessors * threads;
}
inline bool fits(const Problem& problem, const DeviceInfo& device, int group_bits, int rounds) {
  return fits(problem, device, group_bits, rounds, threads_at_once(size_of(problem.value_dtype), group_bits));
}

}  // namespace tmaops::ops::ms_deform_attn::level_per_thread
