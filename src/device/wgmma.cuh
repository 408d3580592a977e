// wgmma: D[64][N] += A[64][16] B[16][N] by a warpgroup, f16 or bf16 in, f32 accumulators (PTX ISA "wgmma.mma_async"). B
// comes from shared memory, A from shared memory or registers. Compute capability 9.0a only.
//
// One product of a 64 x N x K tile: wgmma_fence(); K / 16 calls of Wgmma<T, N>::multiply; wgmma_commit();
// wgmma_wait<0>(). The fence inside the loop over stages keeps ptxas from serialising (its warning C7510).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "device/wgmma_descriptor.cuh"
#include "device/wgmma_shapes.inc"

namespace tmaops::device {

/// Orders earlier register writes before the next wgmma (PTX ISA "wgmma.fence"): before the first one, and whenever
/// accumulators or A fragments were touched by other instructions.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/// Closes a group of the warpgroup's products (PTX ISA "wgmma.commit_group").
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until all but the newest `groups` groups are done (PTX ISA "wgmma.wait_group"). Accumulators may be read, and
/// shared memory given back, only then.
template <int groups = 0>
__device__ __forceinline__ void wgmma_wait() {
  static_assert(groups >= 0 && groups < 8, "wgmma can wait for all but 0 to 7 groups");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}

/// Keeps the compiler from moving reads or writes of a register across this point.
template <int count>
__device__ __forceinline__ void pin_registers(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

/// Row of D, 0 to 63, and column of element i of a thread's accumulators, thread = 0 to 127 in the warpgroup.
__host__ __device__ constexpr int accumulator_row(int thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8;
}
__host__ __device__ constexpr int accumulator_column(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

/// Row and k, 0 to 15, of the first of the two elements in register i (0 to 3) of a thread's A fragment.
__host__ __device__ constexpr int fragment_row(int thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
}
__host__ __device__ constexpr int fragment_k(int thread, int i) { return thread % 4 * 2 + i / 2 * 8; }

namespace detail {
template <int n>
struct WgmmaShape;

// One instruction text per N, type and source of A. Operands after the accumulators: descriptors or fragments, then
// whether D is added to (a predicate), scale A, scale B, and the majors.
#define TMAOPS_WGMMA_SS(n, type, a, b, c, x, y)                                                                        \
  asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %" #c ", 0;\n wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type \
               "." type " {" TMAOPS_LIST_##n "}, %" #a ", %" #b ", p, 1, 1, %" #x ", %" #y ";\n}"                      \
               : TMAOPS_INOUT_##n                                                                                      \
               : "l"(left.bits), "l"(right.bits), "r"(accumulate), "n"(left_major), "n"(right_major)                   \
               : "memory")
#define TMAOPS_WGMMA_RS(n, type, a, b, c, x, y, z, w)                                                                  \
  asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %" #z ", 0;\n wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type \
               "." type " {" TMAOPS_LIST_##n "}, {%" #a ", %" #b ", %" #c ", %" #x "}, %" #y ", p, 1, 1, %" #w ";\n}"  \
               : TMAOPS_INOUT_##n                                                                                      \
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right.bits), "r"(accumulate),             \
                 "n"(right_major)                                                                                      \
               : "memory")
#define TMAOPS_WGMMA_SHAPE(n, a, b, c, x, y, z, w, unused)                                                            \
  template <>                                                                                                         \
  struct WgmmaShape<n> {                                                                                              \
    template <bool half, int left_major, int right_major>                                                             \
    static __device__ __forceinline__ void shared(float (&d)[n / 2], OperandDescriptor left, OperandDescriptor right, \
                                                  int accumulate) {                                                   \
      if constexpr (half)                                                                                             \
        TMAOPS_WGMMA_SS(n, "f16", a, b, c, x, y);                                                                     \
      else                                                                                                            \
        TMAOPS_WGMMA_SS(n, "bf16", a, b, c, x, y);                                                                    \
    }                                                                                                                 \
    template <bool half, int right_major>                                                                             \
    static __device__ __forceinline__ void registers(float (&d)[n / 2], const std::uint32_t (&left)[4],               \
                                                     OperandDescriptor right, int accumulate) {                       \
      if constexpr (half)                                                                                             \
        TMAOPS_WGMMA_RS(n, "f16", a, b, c, x, y, z, w);                                                               \
      else                                                                                                            \
        TMAOPS_WGMMA_RS(n, "bf16", a, b, c, x, y, z, w);                                                              \
    }                                                                                                                 \
  };
TMAOPS_WGMMA_SHAPES(TMAOPS_WGMMA_SHAPE)
#undef TMAOPS_WGMMA_SHAPE
#undef TMAOPS_WGMMA_SS
#undef TMAOPS_WGMMA_RS
}  // namespace detail

/// T: __half or __nv_bfloat16. Accumulators are float[n / 2] per thread; see accumulator_row and _column.
template <class T, int n>
struct Wgmma {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, "wgmma here takes f16 or bf16");
  static_assert(n >= 8 && n <= 256 && n % 8 == 0, "wgmma's N is a multiple of 8 from 8 to 256");
  static constexpr bool half = std::is_same_v<T, __half>;
  using Accumulators = float[n / 2];

  /// d = (accumulate ? d : 0) + A B for 16 elements of k, both from shared memory.
  template <Major a_major = Major::k, Major b_major = Major::k>
  static __device__ __forceinline__ void multiply(Accumulators& d, OperandDescriptor a, OperandDescriptor b,
                                                  bool accumulate) {
    detail::WgmmaShape<n>::template shared<half, static_cast<int>(a_major), static_cast<int>(b_major)>(
        d, a, b, static_cast<int>(accumulate));
  }
  /// The same with A from registers, two elements each; see fragment_row and fragment_k.
  template <Major b_major = Major::k>
  static __device__ __forceinline__ void multiply(Accumulators& d, const std::uint32_t (&a)[4], OperandDescriptor b,
                                                  bool accumulate) {
    detail::WgmmaShape<n>::template registers<half, static_cast<int>(b_major)>(d, a, b, static_cast<int>(accumulate));
  }
};

}  // namespace tmaops::device
