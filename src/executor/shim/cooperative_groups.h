// Host twin of <cooperative_groups.h>: a block, a cluster, tiles of a warp.
#pragma once

#include "executor/interface.hpp"

namespace cooperative_groups {

struct thread_block {
  static unsigned thread_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
  static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 dim_threads() { return {blockDim.x, blockDim.y, blockDim.z}; }
  __forceinline__ static void sync() { __syncthreads(); }
};
inline thread_block this_thread_block() { return {}; }

struct cluster_group {
  static unsigned block_rank() { return tmaops::executor::cluster_rank(); }
  static unsigned num_blocks() { return tmaops::executor::cluster_size(); }
  static unsigned thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
  static unsigned num_threads() { return num_blocks() * thread_block::size(); }
  static unsigned size() { return num_threads(); }
  __forceinline__ static void barrier_arrive() { tmaops::executor::cluster_arrive(true); }
  __forceinline__ static void barrier_wait() { tmaops::executor::cluster_wait(); }
  __forceinline__ static void sync() {
    barrier_arrive();
    barrier_wait();
  }
  template <class T>
  static T* map_shared_rank(T*, int) {
    static_assert(sizeof(T) == 0,
                  "map_shared_rank is unknown to the executor: device::arrive_at() and device::store_async() are");
  }
};
inline cluster_group this_cluster() { return {}; }

template <unsigned threads, class Parent = void>
struct thread_block_tile {
  static_assert(threads <= 32 && (threads & (threads - 1)) == 0,
                "the executor knows tiles of 1, 2, 4, 8, 16 and 32 threads");
  static unsigned thread_rank() { return thread_block::thread_rank() % threads; }
  static constexpr unsigned num_threads() { return threads; }
  static constexpr unsigned size() { return threads; }
  static unsigned meta_group_size() { return (Parent::size() + threads - 1) / threads; }
  static unsigned meta_group_rank() { return Parent::thread_rank() / threads; }
  static unsigned first_lane() { return thread_block::thread_rank() % 32 / threads * threads; }
  static unsigned mask() { return (threads == 32 ? ~0u : (1u << threads % 32) - 1) << first_lane(); }
  __forceinline__ void sync() const { __syncwarp(mask()); }
  template <class T>
  __forceinline__ T shfl(T value, int from) const {
    return __shfl_sync(mask(), value, from, threads);
  }
  template <class T>
  __forceinline__ T shfl_up(T value, unsigned by) const {
    return __shfl_up_sync(mask(), value, by, threads);
  }
  template <class T>
  __forceinline__ T shfl_down(T value, unsigned by) const {
    return __shfl_down_sync(mask(), value, by, threads);
  }
  template <class T>
  __forceinline__ T shfl_xor(T value, int lanes) const {
    return __shfl_xor_sync(mask(), value, lanes, threads);
  }
  __forceinline__ unsigned ballot(int predicate) const {
    return (__ballot_sync(mask(), predicate) & mask()) >> first_lane();
  }
  __forceinline__ int any(int predicate) const { return ballot(predicate) != 0; }
  __forceinline__ int all(int predicate) const { return ballot(predicate == 0) == 0; }
};
template <unsigned threads, class Parent>
thread_block_tile<threads, Parent> tiled_partition(const Parent&) {
  return {};
}

template <class Group>
__forceinline__ void sync(const Group& group) {
  group.sync();
}

#define TMAOPS_UNKNOWN_GROUP(name)                                                                                    \
  template <class... Given>                                                                                           \
  int name(const Given&...) {                                                                                         \
    static_assert(sizeof...(Given) > 9, #name " is unknown to the executor: a block, a cluster and tiles are known"); \
    return 0;                                                                                                         \
  }
TMAOPS_UNKNOWN_GROUP(this_grid)
TMAOPS_UNKNOWN_GROUP(coalesced_threads)
TMAOPS_UNKNOWN_GROUP(binary_partition)
TMAOPS_UNKNOWN_GROUP(labeled_partition)
#undef TMAOPS_UNKNOWN_GROUP

}  // namespace cooperative_groups
