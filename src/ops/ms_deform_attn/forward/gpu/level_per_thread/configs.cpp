// Groups of threads that share the points of an item, best first: as many as run all at once.
#include "ops/ms_deform_attn/forward/gpu/level_per_thread/threads.hpp"

namespace tmaops::ops::ms_deform_attn::level_per_thread {

std::vector<Config> configs(const Problem& problem, const DeviceInfo& device) {
  std::vector<Config> all;
  for (int bits = 0; gpu::lane_bits(problem) + bits <= kMostThreadBits; ++bits)
    all.insert(bits == 0 || fits(problem, device, bits, 1) ? all.begin() : all.end(), Config{.groups = 1 << bits});
  return all;
}

}  // namespace tmaops::ops::ms_deform_attn::level_per_thread
