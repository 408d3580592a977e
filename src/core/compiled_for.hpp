// Which GPUs this build holds kernels for. For .cu files only.
#pragma once

#include <string>

#include "core/registry.hpp"

namespace tmaops {

/// Yes where the kernels that need no more than TMA were compiled for the device; the build says for which
/// (TMAOPS_GPUS), as capabilities: 90,120.
inline Support compiled_for(const DeviceInfo& device) {
  const auto in_words = [](int capability) {
    return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
  };
  std::string list;
  for (const int capability : {TMAOPS_COMPILED_FOR}) {
    if (device.compute_capability == capability) return Support::yes();
    list += (list.empty() ? "" : ", ") + in_words(capability);
  }
  return Support::no("compiled for compute capability " + list + ", " + device.name + " has " +
                     in_words(device.compute_capability) +
                     (device.compute_capability > 90 ? " (configure with -DTMAOPS_GPUS=ALL)" : ""));
}

}  // namespace tmaops
