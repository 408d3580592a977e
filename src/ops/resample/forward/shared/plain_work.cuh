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
  const LaunchShape shape = tile_launch(problem, arguments, problem.target, tile.tile, cut.threads,
                                        static_cast<int>(offsetof(Storage, bytes)) + tile.shared_end);
  add(work, shape, tile);
  return work;
}

/// The same where every lane locates the target whose chunks it combines, in one of lane_configs(). cut_for(problem,
/// threads, lanes) cuts the call. `kernel_of` gives the kernel for a type of values and a number of chunks.
template <class Storage, class KernelOf>
Work lane_work(const LaunchSite& site, const Problem& problem, const Arguments& arguments, const Config& config,
               PlainCut (*cut_for)(const Problem&, int, int), const KernelOf& kernel_of) {
  const PlainCut cut = cut_for(problem, config.threads, static_cast<int>(problem.row_bytes() / 16) / config.chunks);
  return plain_work<Storage>(site, problem, arguments, cut, [&](Work& work, const auto& shape, const PlainTile& tile) {
    with_value_type(problem.values, [&]<class Value>(Value*) {
      switch (config.chunks) {
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
