// Host twin of src/device/launch.cuh.
#pragma once

#include <cstddef>
#include <utility>

namespace tmaops::device {

struct Launch {
  dim3 grid{1};
  dim3 block{1};
  unsigned cluster = 1;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  bool dependent = false;
};

template <class Indices, class... Parameter>
struct KernelCall;
template <std::size_t... i, class... Parameter>
struct KernelCall<std::index_sequence<i...>, Parameter...> {
  /// Not checked, since the parameters lie in memory of the host, where a kernel may not read.
  [[gnu::no_sanitize("thread")]] static void run(const void* kernel, void** parameters) {
    reinterpret_cast<void (*)(Parameter...)>(const_cast<void*>(kernel))(
        *static_cast<std::remove_reference_t<Parameter>*>(parameters[i])...);
  }
};

template <class... Parameter, class... Given>
cudaError_t launch(void (*kernel)(Parameter...), const Launch& how, Given&&... given) {
  const auto call = [&](Parameter... parameter) {
    void* addresses[] = {&parameter...};
    return executor::run_program_kernel({{how.grid.x, how.grid.y, how.grid.z},
                                         {how.block.x, how.block.y, how.block.z},
                                         how.cluster,
                                         how.shared_bytes,
                                         how.dependent},
                                        &KernelCall<std::index_sequence_for<Parameter...>, Parameter...>::run,
                                        reinterpret_cast<const void*>(kernel), addresses);
  };
  return call(std::forward<Given>(given)...) ? cudaSuccess : cudaErrorLaunchFailure;
}

}  // namespace tmaops::device
