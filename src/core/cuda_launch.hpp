// Launching kernels: attributes, shared-memory opt-in and errors, in one place. For .cu files only.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "core/cuda_status.hpp"
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
}  // namespace detail

/// Launches `kernel`. Only the first launch on a device does more than launching: it raises the kernel's
/// shared-memory limit, which is allowed while a graph is captured. Throws Error cuda_failed.
template <auto kernel, class... Given>
void launch_kernel(std::string_view where, const LaunchConfig& config, Stream stream, Given&&... given) {
#ifdef TMAOPS_VARIANT_SMEM  // smem(...) of the variant's line, given by the build to its kernel file
  if (config.shared_bytes > TMAOPS_VARIANT_SMEM)
    throw Error(ErrorCode::internal, {.where = std::string(where),
                                      .got = std::to_string(config.shared_bytes) + " B of shared memory",
                                      .needed = "at most smem(" + std::to_string(TMAOPS_VARIANT_SMEM) + ")"});
#endif
  if (config.shared_bytes > detail::kSharedWithoutOptIn) {
    int device = 0;
    check_cuda(cudaGetDevice(&device), where);
    auto& allowed = detail::shared_allowed<kernel>[static_cast<std::size_t>(device % detail::kMaxDevices)];
    if (allowed.load(std::memory_order_relaxed) < config.shared_bytes) {
      check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, config.shared_bytes), where);
      allowed.store(config.shared_bytes, std::memory_order_relaxed);
    }
  }
  std::array<cudaLaunchAttribute, 2> attributes{};
  unsigned count = 0;
  if (config.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = config.cluster;
    attributes[count].val.clusterDim.y = 1;
    attributes[count].val.clusterDim.z = 1;
    ++count;
  }
  if (config.dependent) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count].val.programmaticStreamSerializationAllowed = 1;
    ++count;
  }
  cudaLaunchConfig_t launch{};
  launch.gridDim = config.grid;
  launch.blockDim = config.block;
  launch.dynamicSmemBytes = static_cast<std::size_t>(config.shared_bytes);
  launch.stream = static_cast<cudaStream_t>(stream);
  launch.attrs = attributes.data();
  launch.numAttrs = count;
  check_cuda(cudaLaunchKernelEx(&launch, kernel, std::forward<Given>(given)...), where);
}

}  // namespace tmaops
