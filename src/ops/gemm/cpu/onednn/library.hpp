// oneDNN as this variant uses it: its 2.x and 3.x interfaces behind one function, and each call on one thread alone.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <unordered_map>

#include "core/signals_held.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm::onednn {

/// The OpenMP run time that oneDNN was linked with; null functions when there is none.
struct OpenMp {
  void (*set_num_threads)(int) = nullptr;
  int (*get_max_threads)() = nullptr;

  static const OpenMp& get() {
    static const OpenMp loaded = [] {
      OpenMp found;
      found.set_num_threads = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
      found.get_max_threads = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
      return found;
    }();
    return loaded;
  }
};

/// While it lives, oneDNN makes and runs primitives on the calling thread alone. With one thread it never enters an
/// OpenMP region, so nothing hangs in a forked child, and the number of threads cannot change the bits.
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
  Sequential(const Sequential&) = delete;
  Sequential& operator=(const Sequential&) = delete;

 private:
  int before_ = 0;
};

inline const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// Whether oneDNN uses these instructions here, as ONEDNN_MAX_CPU_ISA allows.
inline bool has(dnnl::cpu_isa instructions) {
  const auto wanted = static_cast<unsigned>(instructions);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

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

/// How a plain matrix lies: where its rows start, or its columns.
struct Plain {
  DType dtype = DType::f32;
  bool row_major = true;
  std::int64_t leading_dimension = 0;

  dnnl::memory::desc descriptor(std::int64_t rows, std::int64_t columns) const {
    return {{rows, columns},
            data_type(dtype),
            row_major ? dnnl::memory::dims{leading_dimension, 1} : dnnl::memory::dims{1, leading_dimension}};
  }
};

/// What one call of oneDNN computes: D = alpha * A B + bias + beta * D. Activations are not left to oneDNN: its relu
/// turns NaN into 0, and the gelu of 3.7 infinity into NaN.
struct MatmulSpec {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  Plain a{}, d{};
  dnnl::memory::desc b{};
  float alpha = 1.0F;
  float beta = 0.0F;            // of D's own content
  std::optional<DType> bias{};  // `columns` elements; only with alpha = 1, since oneDNN adds it before scaling
};

/// The primitive for a specification; nothing when this oneDNN cannot do it on this processor.
inline std::optional<dnnl::matmul::primitive_desc> find_matmul(const MatmulSpec& spec) {
  dnnl::post_ops post;
  if (spec.alpha != 1.0F) {
#if DNNL_VERSION_MAJOR >= 3
    post.append_eltwise(dnnl::algorithm::eltwise_linear, spec.alpha, 0.0F);
#else
    post.append_eltwise(1.0F, dnnl::algorithm::eltwise_linear, spec.alpha, 0.0F);
#endif
  }
  if (spec.beta != 0.0F) post.append_sum(spec.beta);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);  // whatever ONEDNN_DEFAULT_FPMATH_MODE says
  attributes.set_post_ops(post);

  const dnnl::memory::desc a = spec.a.descriptor(spec.rows, spec.depth);
  const dnnl::memory::desc& b = spec.b;
  const dnnl::memory::desc d = spec.d.descriptor(spec.rows, spec.columns);
  const auto matmul = [&](const auto&... descriptors) {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl::matmul::primitive_desc(engine(), descriptors..., attributes);
#else
    return dnnl::matmul::primitive_desc(dnnl::matmul::desc(descriptors...), attributes, engine());
#endif
  };
  try {
    if (!spec.bias) return matmul(a, b, d);
    const dnnl::memory::desc bias({1, spec.columns}, data_type(*spec.bias), dnnl::memory::dims{spec.columns, 1});
    return matmul(a, b, bias, d);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    return std::nullopt;
  }
}

/// Memory for vector loads.
struct FreeAligned {
  static constexpr std::align_val_t kAlignment{64};
  void operator()(void* data) const { ::operator delete(data, kAlignment); }
};
using AlignedBuffer = std::unique_ptr<void, FreeAligned>;
inline AlignedBuffer aligned_buffer(std::size_t bytes) {
  return AlignedBuffer(bytes == 0 ? nullptr : ::operator new(bytes, FreeAligned::kAlignment));
}

/// From this depth on signals are held during a call, which costs a fraction of a microsecond. Where K is long (above
/// 252 with AVX2) oneDNN's f32 kernel points the stack pointer into its heap buffer: a handler that runs meanwhile
/// writes over whatever lies before that buffer (docs/findings/gemm_cpu.md, C10).
inline constexpr std::int64_t kDepthWithSignals = 64;

/// A primitive with memory objects of its own: for one thread, called again and again with other addresses.
class MatmulCall {
 public:
  MatmulCall(const dnnl::matmul& primitive, const dnnl::matmul::primitive_desc& description, void* scratchpad)
      : primitive_(primitive), hold_signals_(description.src_desc().dims().back() > kDepthWithSignals) {
    add(DNNL_ARG_SRC, description.src_desc(), nullptr);
    add(DNNL_ARG_WEIGHTS, description.weights_desc(), nullptr);
    add(DNNL_ARG_DST, description.dst_desc(), nullptr);
    add(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc(), scratchpad);
    if (const dnnl::memory::desc bias = description.bias_desc(); bias.get_size() > 0) add(DNNL_ARG_BIAS, bias, nullptr);
  }

  void run(const dnnl::stream& stream, const void* a, const void* b, const void* bias, void* d) {
    set(DNNL_ARG_SRC, a);
    set(DNNL_ARG_WEIGHTS, b);
    set(DNNL_ARG_DST, d);
    if (bias != nullptr) set(DNNL_ARG_BIAS, bias);
    std::optional<SignalsHeld> held;
    if (hold_signals_) held.emplace();
    primitive_.execute(stream, memories_);
  }

 private:
  void add(int argument, const dnnl::memory::desc& description, void* data) {
    memories_.emplace(argument, dnnl::memory(description, engine(), data));
  }
  void set(int argument, const void* data) {
    memories_.at(argument).set_data_handle(const_cast<void*>(data));  // oneDNN only reads its inputs
  }

  dnnl::matmul primitive_;
  bool hold_signals_;
  std::unordered_map<int, dnnl::memory> memories_{};
};

}  // namespace tmaops::ops::gemm::onednn
