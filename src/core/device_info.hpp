// What a device offers: the one place that knows an architecture's limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tmaops/tensor.hpp"

namespace tmaops {

/// Properties a variant may ask for. On the CPU only `device` and `name` are set.
struct DeviceInfo {
  Device device{};
  std::string name = "CPU";
  int compute_capability = 0;  // 90 for 9.0
  int multiprocessors = 0;
  std::int64_t shared_memory_per_block = 0;  // opt-in maximum, bytes
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;

  friend bool operator==(const DeviceInfo&, const DeviceInfo&) = default;
};

/// Properties of a device, cached for the process. For a CUDA device throws Error no_cuda_build, no_driver,
/// driver_too_old, no_device, device_hidden, bad_parameter (ordinal) or earlier_cuda_error.
const DeviceInfo& device_info(Device device);

/// Whether kernels of this build wait for the one in front of them on the device (device::wait_for_previous_kernel).
bool has_dependent_launch(const DeviceInfo& device);

/// CUDA devices that can be used; 0 where device_info would throw.
int cuda_device_count();

/// What device_info() looks up for a CUDA device.
const DeviceInfo& cuda_device_info(Device device);

/// For tests of what is chosen: while one lives, every CUDA device is this one, in every thread, and counts as one that
/// the kernels were compiled for if they can be. A build without kernels chooses as if it had them.
class PretendedDevice {
 public:
  explicit PretendedDevice(const DeviceInfo& device);
  ~PretendedDevice();
  PretendedDevice(const PretendedDevice&) = delete;
  PretendedDevice& operator=(const PretendedDevice&) = delete;
  static bool exists();

 private:
  DeviceInfo device_;
};

}  // namespace tmaops
