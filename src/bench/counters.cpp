#include "bench/counters.hpp"

namespace tmaops::bench {

const char* const kCounterPermission =
    "Run as root (in a container with --cap-add=SYS_ADMIN), or let all users: write 'options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0' to /etc/modprobe.d/nvidia-profiling.conf and load the driver anew.";

Counters fold_kernels(const std::vector<std::array<double, kCounters.size()>>& kernels) {
  Counters counters{.kernels = static_cast<int>(kernels.size())};
  double total = 0;
  for (const auto& kernel : kernels) total += kernel[0];
  for (const auto& kernel : kernels)
    for (std::size_t i = 0; i < kCounters.size(); ++i)
      counters.values[i] +=
          kCounters[i].fold == Fold::sum ? kernel[i] : (total > 0 ? kernel[i] * kernel[0] / total : 0);
  return counters;
}

}  // namespace tmaops::bench
