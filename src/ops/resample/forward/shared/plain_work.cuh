// What plan() is for the kernels of plain calls.
#pragma once

#include "ops/resample/forward/shared/plain.cuh"

namespace tmaops::ops::resample::gpu {

/// The work of a plain call that is cut into tiles. add(work, shape, tile) adds the kernel to it.
template <class Storage, class Add>
Work plain_work(const LaunchSite& site, const Problem& problem, const Arguments& arguments, const PlainCut& cut,
                const Add& add) {
  Work work(site, problem.device);
  const PlainTile tile = make_plain_tile(problem, arguments, cut);
  const LaunchShape shape{.grid = tile_grid((problem.target + tile.tile - 1) / tile.tile, problem.batch),
                          .block = static_cast<unsigned>(cut.threads),
                          .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + tile.end_at,
                          .dependent = arguments.dependent_launch};
  add(work, shape, tile);
  return work;
}

/// The same where every lane locates the target whose chunks it combines. `kernel_of` gives the kernel for a type of
/// values and a number of chunks.
template <class Storage, class KernelOf>
Work lane_work(const LaunchSite& site, const Problem& problem, const Arguments& arguments, const PlainCut& cut,
               int chunks, const KernelOf& kernel_of) {
  return plain_work<Storage>(site, problem, arguments, cut, [&](Work& work, const auto& shape, const PlainTile& tile) {
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
  });
}

}  // namespace tmaops::ops::resample::gpu
