// For the variants with tensor maps: the box of a tile in maps of rank 4 and 5 (ops/tile_load/shared/maps.hpp), and
// launches of kernels that take the maps of all levels or of one.
#pragma once

#include "device/tensor_copy.cuh"
#include "study/tile_load/shared/maps.hpp"
#include "study/tile_load/shared/warp_ring.cuh"

namespace tmaops::ops::tile_load {

template <int rank>
__device__ __forceinline__ void load_box(const Tile& tile, unsigned char* to, const tma::TensorMap& map,
                                         device::Barrier& barrier) {
  static_assert(rank == 4 || rank == 5, "a tile has channels, x, y and image");
  const auto image = static_cast<std::int32_t>(tile.image);
  if constexpr (rank == 4) device::tensor_load(to, &map, {0, tile.x, tile.y, image}, barrier);
  if constexpr (rank == 5) device::tensor_load(to, &map, {0, 0, tile.x, tile.y, image}, barrier);
}

/// Which levels a launch loads from, and so which maps its kernel takes.
enum class Levels { one, all };

/// For run_warp_ring: one box per tile, through maps[0] or the map of the tile's level.
template <int rank, Levels levels>
struct BoxCopy {
  const tma::TensorMap* maps;
  __device__ __forceinline__ void issue(const Tile& tile, unsigned char* to, device::Barrier& barrier) const {
    load_box<rank>(tile, to, maps[levels == Levels::one ? 0 : tile.level], barrier);
  }
};

/// All levels in one launch, through maps of this rank, which are parameters of the kernel.
template <int rank, int smem>
__device__ __forceinline__ void run_levels(const DeviceProblem& problem, const LevelMaps& maps) {
  if (threadIdx.x < problem.level_count) device::prefetch_tensor_map(&maps.level[threadIdx.x]);
  const BlockRun run(problem);
  run_warp_ring<smem>(problem, BoxCopy<rank, Levels::all>{maps.level});
}

/// A launch for each level. shape(problem, tiles) is the shape of one that loads so many tiles.
template <class Shape>
Work each_level_work(void (*kernel)(DeviceProblem, tma::TensorMap), const LaunchSite& site, const Problem& problem,
                     const Arguments& arguments, const LevelMaps& maps, const Shape& shape) {
  Work work(site, problem.device);
  DeviceProblem one = device_problem(problem, arguments);
  one.tiles /= one.level_count;
  const LaunchShape grid = persistent_grid(problem, arguments, one.tiles, shape(problem, one.tiles));
  for (one.only_level = 0; one.only_level < static_cast<int>(one.level_count); ++one.only_level)
    work.add(kernel, grid, one, maps.level[one.only_level]);
  return work;
}

}  // namespace tmaops::ops::tile_load
