// Whether a device has what the line of a GPU variant asks for.
#include <algorithm>
#include <vector>

#include "core/registry.hpp"
#include "core/spelling.hpp"

namespace tmaops {
namespace {

std::string in_words(int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

/// Compute capabilities for which this build has the kernels of sm90 lines (TMAOPS_GPUS).
const std::vector<int>& compiled_capabilities() {
#ifdef TMAOPS_COMPILED_FOR
  static const std::vector<int> list{TMAOPS_COMPILED_FOR};
#else
  static const std::vector<int> list{90};
#endif
  return list;
}

}  // namespace

Support fits_shared_memory(std::int64_t bytes, const DeviceInfo& device) {
  if (bytes <= device.shared_memory_per_block) return Support::yes();
  return Support::no("asks for " + std::to_string(bytes) + " bytes of shared memory per block, " + device.name +
                     " has " + std::to_string(device.shared_memory_per_block));
}

Support fits_device(std::string_view arch, const VariantAttributes& attributes, const DeviceInfo& device) {
  const int has = device.compute_capability;
  const std::string but = ", " + device.name + " has " + in_words(has);
  if (arch == "sm90a" && has != 90) return Support::no("needs compute capability 9.0" + but);
  if (has < 90) return Support::no("needs compute capability 9.0 or newer" + but);
  if (const std::vector<int>& compiled = compiled_capabilities();
      std::ranges::find(compiled, has) == compiled.end() && !PretendedDevice::exists()) {
    return Support::no("compiled for compute capability " + joined(compiled, ", ", in_words) + but +
                       " (configure with -DTMAOPS_GPUS=ALL)");
  }
  const int least = attributes.least_shared_memory;
  return fits_shared_memory(least >= 0 ? least : attributes.shared_memory, device);
}

}  // namespace tmaops
