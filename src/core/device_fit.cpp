// Whether a device has what the line of a GPU variant asks for.
#include <algorithm>
#include <vector>

#include "core/registry.hpp"
#include "core/spelling.hpp"

namespace tmaops {
namespace {

std::string in_words(int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

/// Compute capabilities for which this build was compiled (TMAOPS_GPUS).
const std::vector<int>& compiled_capabilities() {
#ifdef TMAOPS_COMPILED_FOR
  static const std::vector<int> list{TMAOPS_COMPILED_FOR};
#else
  static const std::vector<int> list{90};
#endif
  return list;
}

#ifdef TMAOPS_PTX
constexpr bool kPtx = true;
#else
constexpr bool kPtx = false;
#endif

/// The oldest compute capability on which kernels of a line run.
int oldest(std::string_view arch) { return arch == "sm80" ? 80 : 90; }

/// Whether what was compiled for a compute capability runs on a device: PTX on all later ones, machine code on those of
/// the same major version.
bool runs_on(int compiled, int has) { return compiled <= has && (kPtx || compiled / 10 == has / 10); }

}  // namespace

std::string compiled_for() { return joined(compiled_capabilities(), ", ", in_words) + (kPtx ? " as PTX" : ""); }

bool has_dependent_launch(const DeviceInfo& device) { return device.compute_capability >= 90 && !kPtx; }

Support fits_shared_memory(std::int64_t bytes, const DeviceInfo& device) {
  if (bytes <= device.shared_memory_per_block) return Support::yes();
  return Support::no("asks for " + std::to_string(bytes) + " bytes of shared memory per block, " + device.name +
                     " has " + std::to_string(device.shared_memory_per_block));
}

Support fits_device(std::string_view arch, const VariantAttributes& attributes, const DeviceInfo& device) {
  const int has = device.compute_capability;
  const std::string but = ", " + device.name + " has " + in_words(has);
  if (arch == "sm90a" && has != 90) return Support::no("needs compute capability 9.0" + but);
  if (has < oldest(arch)) return Support::no("needs compute capability " + in_words(oldest(arch)) + " or newer" + but);
  const auto runs = [&](int compiled) { return compiled >= oldest(arch) && runs_on(compiled, has); };
  if (!PretendedDevice::exists() && std::ranges::none_of(compiled_capabilities(), runs))
    return Support::no("compiled for compute capability " + compiled_for() + but +
                       " (configure with -DTMAOPS_GPUS=ALL)");
  const int least = attributes.least_shared_memory;
  return fits_shared_memory(least >= 0 ? least : attributes.shared_memory, device);
}

}  // namespace tmaops
