// wgmma: D[64][N] += A[64][16] B[16][N] by a warpgroup, f16 or bf16 in, f32 accumulators (PTX ISA "wgmma.mma_async"). A
// and B come from shared memory. Compute capability 9.0a only.
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
/// accumulators were touched by other instructions.
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

namespace detail {
template <int n>
struct WgmmaShape;

// One instruction text per N and type. Operands after the accumulators: descriptors, then whether D is added to (a
// predicate), scale A, scale B, and the majors.
#define TMAOPS_WGMMA_SS(n, type, a, b, c, x, y)                                                                        \
  asm volatile("{\n .reg .pred p;\n setp.ne.b32 p, %" #c ", 0;\n wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type \
               "." type " {" TMAOPS_FOURS_##n(TMAOPS_FIRST_NAMES, TMAOPS_MORE_NAMES) "}, %" #a ", %" #b                \
                                                                                     ", p, 1, 1, %" #x ", %" #y ";\n}" \
               : TMAOPS_FOURS_##n(TMAOPS_FIRST_SUMS, TMAOPS_MORE_SUMS)                                                 \
               : "l"(left.bits), "l"(right.bits), "r"(accumulate), "n"(left_major), "n"(right_major)                   \
               : "memory")
#define TMAOPS_WGMMA_SHAPE(n, a, b, c, x, y)                                                                          \
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
  };
TMAOPS_WGMMA_SHAPES(TMAOPS_WGMMA_SHAPE)
#undef TMAOPS_WGMMA_SHAPE
#undef TMAOPS_WGMMA_SS
}  // namespace detail

/// T: __half or __nv_bfloat16. Accumulators are float[n / 2] per thread: element i of thread t of the warpgroup is
/// D[t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8][i / 4 * 8 + t % 4 * 2 + i % 2].
template <class T, int n>
struct Wgmma {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, "wgmma here takes f16 or bf16");
  static_assert(n >= 8 && n <= 256 && n % 8 == 0, "wgmma's N is a multiple of 8 from 8 to 256");
  static constexpr bool half = std::is_same_v<T, __half>;
  using Accumulators = float[n / 2];

  /// d = (accumulate ? d : 0) + A B for 16 elements of k.
  template <Major a_major = Major::k, Major b_major = Major::k>
  static __device__ __forceinline__ void multiply(Accumulators& d, OperandDescriptor a, OperandDescriptor b,
                                                  bool accumulate) {
    detail::WgmmaShape<n>::template shared<half, static_cast<int>(a_major), static_cast<int>(b_major)>(
        d, a, b, static_cast<int>(accumulate));
  }
};

}  // namespace tmaops::device
