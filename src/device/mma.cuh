// Products of small matrices in a warp's registers (PTX ISA "mma.sync"), accumulated in f32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace tmaops::device {

/// d += a (16 x 16) b (16 x 8), where T is __half or __nv_bfloat16. A register of a or b holds two elements. With
/// t = lane % 4 and g = lane / 4 a thread holds:
///   a[0]  row g, columns 2t and 2t + 1;  a[1]  row g + 8;  a[2], a[3]  the same rows, 8 columns further
///   b[0]  column g, rows 2t and 2t + 1;  b[1]  8 rows further
///   d[0], d[1]  row g, columns 2t and 2t + 1;  d[2], d[3]  row g + 8
template <class T>
__device__ __forceinline__ void multiply_add(float* d, const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, __half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace tmaops::device
