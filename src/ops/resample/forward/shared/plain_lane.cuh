// What plan() is where every lane locates the target whose chunks it combines.
#pragma once

#include "ops/resample/forward/shared/plain.cuh"

namespace tmaops::ops::resample::gpu {

/// The work of a plain call. `kernel_of` gives the kernel for a type of values and a number of chunks.
template <class Storage, class KernelOf>
Work lane_work(const LaunchSite& site, const Problem& problem, const Arguments& arguments, const PlainCut& cut,
               int chunks, const KernelOf& kernel_of) {
  Work work(site, problem.device);
  if (problem.batch == 0 || problem.target == 0) return work;
  const PlainTile tile = make_plain_tile(problem, arguments, cut);
  const LaunchShape shape{.grid = tile_grid((problem.target + tile.tile - 1) / tile.tile, problem.batch),
                          .block = static_cast<unsigned>(cut.threads),
                          .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + tile.end_at,
                          .dependent = arguments.dependent_launch};
  with_value_type(problem.values, [&]<class Value>(Value*) {
    switch (chunks) {
      case 1:
        return work.add(kernel_of.template operator()<Value, 1>(), shape, tile);
      case 2:
        return work.add(kernel_of.template operator()<Value, 2>(), shape, tile);
      default:
        return work.add(kernel_of.template operator()<Value, 4>(), shape, tile);
    }
  });
  return work;
}

}  // namespace tmaops::ops::resample::gpu
