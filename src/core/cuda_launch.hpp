// Launching kernels with the CUDA runtime. Needs a CUDA toolkit.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <string_view>
#include <utility>

#include "core/cuda_status.hpp"
#include "core/work.hpp"

namespace tmaops {

/// Makes a device the current one while it lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    if (device == before_) return;
    check_cuda(cudaSetDevice(device), "cudaSetDevice");
    changed_ = true;
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() {
    if (changed_) (void)cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// While it lives, this thread may call what could disturb a capture: another thread may be capturing, but what is done
/// here has nothing to do with its streams.
class RelaxedCapture {
 public:
  RelaxedCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Launches a kernel on a stream of the current device. `where` is the place that an error names. Throws Error
/// cuda_failed.
void launch_by_runtime(std::string_view where, const LaunchShape& shape, Stream stream, KernelFunction kernel,
                       void** parameters);

namespace detail {
template <class... Parameter, class... Given>
void launch_typed(std::string_view where, const LaunchShape& shape, Stream stream, void (*kernel)(Parameter...),
                  Given&&... given) {
  const auto launch = [&](Parameter... parameter) {
    std::array<void*, sizeof...(Parameter) + 1> addresses{&parameter...};
    launch_by_runtime(where, shape, stream, KernelFunction(kernel), addresses.data());
  };
  launch(std::forward<Given>(given)...);
}
}  // namespace detail

/// The same for a kernel that belongs to no variant, as bench, probe and the tests have. `given` becomes the kernel's
/// own parameter types.
template <auto kernel, class... Given>
void launch_kernel(std::string_view where, const LaunchShape& shape, Stream stream, Given&&... given) {
  detail::launch_typed(where, shape, stream, kernel, std::forward<Given>(given)...);
}

}  // namespace tmaops
