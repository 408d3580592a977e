// Launches that the hardware refuses.
#include <string>

#include "executor/state.hpp"

namespace tmaops::executor {

/// What a Hopper refuses (CUDA C++ Programming Guide, "Compute Capabilities"). Clusters of more than eight want an
/// attribute that the device layer does not set.
std::string refused(const LaunchShape& shape) {
  const auto text = [](const Extent& e) {
    return std::to_string(e.x) + " x " + std::to_string(e.y) + " x " + std::to_string(e.z);
  };
  const auto& [grid, block] = std::pair{shape.grid, shape.block};
  if (volume(block) == 0 || volume(block) > 1024 || block.z > 64)
    return "a block of " + text(block) + " threads, needs 1 to 1024, of them at most 64 along z";
  if (volume(grid) == 0 || grid.x > 0x7FFFFFFFu || grid.y > 65535 || grid.z > 65535)
    return "a grid of " + text(grid) + " blocks, needs at least 1 and along y and z at most 65535";
  const unsigned cluster = std::max(1u, shape.cluster);
  if (cluster > 8 || grid.x % cluster != 0)
    return "clusters of " + std::to_string(cluster) + " in a grid of " + text(grid) +
           " blocks, need at most 8 blocks each and a grid that is a multiple of them along x";
  if (shape.shared_bytes < 0 || static_cast<std::uint32_t>(shape.shared_bytes) > kMostSharedBytes)
    return std::to_string(shape.shared_bytes) + " bytes of dynamic shared memory, needs at most " +
           std::to_string(kMostSharedBytes);
  return {};
}

}  // namespace tmaops::executor
