// oneDNN as this variant and its peer in `bench` use it.
#pragma once

#include <dlfcn.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "core/signals_held.hpp"
#include "tmaops/dtype.hpp"

namespace tmaops::ops::gemm::onednn {

/// The OpenMP run time that oneDNN was linked with; null functions when there is none.
struct OpenMp {
  void (*set_num_threads)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  int (*get_max_threads)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));

  static const OpenMp& get() {
    static const OpenMp loaded;
    return loaded;
  }
};

/// While it lives, oneDNN works on the calling thread alone. With one thread it never enters an OpenMP region, so
/// nothing hangs in a forked child, and the number of threads cannot change the bits. No signal handler runs meanwhile:
/// an f32 kernel points the stack pointer into its heap buffer (docs/findings/gemm_cpu.md, C10).
class Sequential {
 public:
  Sequential() {
    if (const OpenMp& openmp = OpenMp::get(); openmp.set_num_threads != nullptr) {
      before_ = openmp.get_max_threads();
      openmp.set_num_threads(1);  // of this thread only
    }
  }
  ~Sequential() {
    if (before_ > 0) OpenMp::get().set_num_threads(before_);
  }

 private:
  SignalsHeld held_{};
  int before_ = 0;
};

inline dnnl::memory::data_type data_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return dnnl::memory::data_type::f16;
    case DType::bf16:
      return dnnl::memory::data_type::bf16;
    default:
      return dnnl::memory::data_type::f32;
  }
}

}  // namespace tmaops::ops::gemm::onednn
