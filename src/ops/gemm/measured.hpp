// The choices that ship with the library: what was fastest on an H100 and on an H200, inputs in the L2, for the
// products of configs/models_gemm.yaml.
#pragma once

#include <string_view>

#include "core/device_info.hpp"

namespace tmaops::ops::gemm {

/// "wgmma_split_k/64x16k2t" for a product ("RC 16x4096x4096") whose D has the type of A; empty where the device is
/// another one, the product was not measured, or the costs choose the same.
std::string_view measured_choice(const DeviceInfo& device, std::string_view product);

}  // namespace tmaops::ops::gemm
