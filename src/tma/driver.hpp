// The driver's answer to a specification, without a check of the rules. encode() and `tmaops probe` use it.
#pragma once

#include <string>

#include "tmaops/tensor_map.hpp"

namespace tmaops::tma {

/// The result of cuTensorMapEncode*.
struct DriverAnswer {
  int code = 0;      // CUresult, 0 is success
  std::string name;  // "CUDA_ERROR_INVALID_VALUE"
  bool accepted() const { return code == 0; }
};

/// Whether the driver's parameters can hold the specification: lists of the right lengths, no negative or too large
/// number, rank at most 8.
bool fits_driver(const TensorMapSpec& spec);

/// Makes a context on the device and finds the driver's functions. Throws the errors of encode() that are not about the
/// map.
void load_driver(int device_index);

/// Calls the driver without checking any rule. fits_driver(spec) must hold and load_driver() must have been called on
/// this thread. A broken context throws Error earlier_cuda_error.
DriverAnswer encode_unchecked(const TensorMapSpec& spec, TensorMap& map);

/// Whether the driver sets bit 85 of small tensors' maps wrongly: Blackwell, up to CUDA 13.3 (known issue of NVIDIA's
/// driver 595.71.05). Sporadic illegal addresses follow where the allocation is below 128 KB and the map not dense.
bool sets_bit_85_wrongly(int compute_capability, int driver_version);
/// Clears the bit where the tensor may lie in so small an allocation, as the release notes advise.
void clear_bit_85(const TensorMapSpec& spec, TensorMap& map);

/// encode() for an operator whose supports() allows valid maps alone: the rules are looked at when the driver refuses.
TensorMap encode_valid(const TensorMapSpec& spec, int device_index);

}  // namespace tmaops::tma
