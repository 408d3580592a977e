// Launching kernels: attributes, shared-memory opt-in and errors, in one place. Needs a CUDA toolkit.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/cuda_status.hpp"
#include "core/launch_site.hpp"
#include "tmaops/error.hpp"
#include "tmaops/tensor.hpp"

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

/// Shape and attributes of one launch.
struct LaunchConfig {
  dim3 grid{};
  dim3 block{};
  int shared_bytes = 0;    // dynamic shared memory per block
  unsigned cluster = 1;    // blocks per cluster along x; grid.x must be a multiple
  bool dependent = false;  // programmatic dependent launch: may start before the kernel in front of it ends, so
                           // the kernel itself must call device::wait_for_previous_kernel before its first global read
};

namespace detail {
inline constexpr int kMaxDevices = 64;
inline constexpr int kSharedWithoutOptIn = 48 * 1024;  // CUDA's limit for a kernel that did not ask for more
/// Dynamic shared memory a kernel may use so far, per device.
template <auto kernel>
inline std::array<std::atomic<int>, kMaxDevices> shared_allowed{};

/// The parameters of a launch, and where each of them lies.
class KernelParameters {
 public:
  template <class... Parameter>
  explicit KernelParameters(std::shared_ptr<std::tuple<Parameter...>> values) : values_(values) {
    static_assert(sizeof...(Parameter) <= kMost);
    std::apply(
        [&](auto&... each) {
          std::size_t i = 0;
          ((addresses_[i++] = &each), ...);
        },
        *values);
  }
  /// As cudaLaunchKernelExC and cuLaunchKernelEx take them: both only read.
  void** addresses() const { return const_cast<void**>(addresses_.data()); }

 private:
  static constexpr std::size_t kMost = 6;
  std::shared_ptr<void> values_;
  std::array<void*, kMost> addresses_{};
};

/// Takes launches down instead of having them done (repeated_launches.hpp).
class LaunchNotes {
 public:
  virtual void add(std::string_view where, const LaunchConfig& config, const void* kernel, KernelParameters given) = 0;

 protected:
  ~LaunchNotes() = default;
};
/// Those of this thread, null when its launches are done.
LaunchNotes* launch_notes();

void launch_by_runtime(std::string_view where, const LaunchConfig& config, Stream stream, const void* kernel,
                       void** parameters);

/// With the kernel's own types for its parameters.
template <class... Parameter, class... Given>
void launch_typed(std::string_view where, const LaunchConfig& config, Stream stream, void (*kernel)(Parameter...),
                  Given&&... given) {
  const auto* symbol = reinterpret_cast<const void*>(kernel);
  if (LaunchNotes* notes = launch_notes()) {
    auto values = std::make_shared<std::tuple<Parameter...>>(std::forward<Given>(given)...);
    return notes->add(where, config, symbol, KernelParameters(std::move(values)));
  }
  const auto launch = [&](Parameter... parameter) {
    std::array<void*, sizeof...(Parameter) + 1> addresses{&parameter...};
    launch_by_runtime(where, config, stream, symbol, addresses.data());
  };
  launch(std::forward<Given>(given)...);
}
}  // namespace detail

/// Launches `kernel`. Only the first launch on a device does more than launching: it raises the kernel's
/// shared-memory limit, which is allowed while a graph is captured. Throws Error cuda_failed.
template <auto kernel, class... Given>
void launch_kernel(const LaunchSite& site, const LaunchConfig& config, Stream stream, Given&&... given) {
  if (config.shared_bytes > site.smem)
    throw Error(ErrorCode::internal, {.where = std::string(site.where),
                                      .got = std::to_string(config.shared_bytes) + " B of shared memory",
                                      .needed = "at most smem(" + std::to_string(site.smem) + ")"});
  if (config.shared_bytes > detail::kSharedWithoutOptIn) {
    int device = 0;
    check_cuda(cudaGetDevice(&device), site.where);
    auto& allowed = detail::shared_allowed<kernel>[static_cast<std::size_t>(device % detail::kMaxDevices)];
    if (allowed.load(std::memory_order_relaxed) < config.shared_bytes) {
      check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, config.shared_bytes),
                 site.where);
      allowed.store(config.shared_bytes, std::memory_order_relaxed);
    }
  }
  detail::launch_typed(site.where, config, stream, kernel, std::forward<Given>(given)...);
}

}  // namespace tmaops
