// wgmma on small integers, where every sum is exact: all N, both types, all majors, all swizzles.
#include <type_traits>

#include "device/fence.cuh"
#include "device/wgmma.cuh"
#include "device/wgmma_shapes.inc"  // the executor's twin has any N
#include "gpu/support.hpp"

namespace tmaops {
namespace {

using test::DeviceArray;
using test::run;
using namespace device;  // NOLINT(google-build-using-namespace)

constexpr int kDepth = 64;  // K of the test: four instructions

/// Row of D, 0 to 63, and column of element i of a thread's accumulators, thread = 0 to 127 in the warpgroup.
__host__ __device__ constexpr int accumulator_row(int thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8;
}
__host__ __device__ constexpr int accumulator_column(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

/// Byte offset of element (mn, k) in a canonical layout without padding, `extent` elements along mn; written from the
/// layout's description in words, independent of the descriptor code.
template <Major major, Swizzle swizzle>
__device__ std::uint32_t layout_offset(int mn, int k, int extent) {
  constexpr int width = static_cast<int>(swizzle) / 2;  // elements in a row
  if constexpr (swizzle == Swizzle::none) {
    // 8 x 8 blocks of 128 bytes; K-major: a row holds 8 elements of k. Blocks run along mn first, then k.
    const int block = k / 8 * (extent / 8) + mn / 8;
    return static_cast<std::uint32_t>(block * 128 +
                                      (major == Major::k ? mn % 8 * 16 + k % 8 * 2 : k % 8 * 16 + mn % 8 * 2));
  } else if constexpr (major == Major::k) {
    // Panels of `width` elements of k, each `extent` rows.
    return static_cast<std::uint32_t>(k / width * extent * width * 2) +
           swizzled<swizzle>(static_cast<std::uint32_t>((mn * width + k % width) * 2));
  } else {
    // Panels of `width` elements of mn, each kDepth rows.
    return static_cast<std::uint32_t>(mn / width * kDepth * width * 2) +
           swizzled<swizzle>(static_cast<std::uint32_t>((k * width + mn % width) * 2));
  }
}

template <Major major, Swizzle swizzle>
__device__ OperandDescriptor descriptor_at(const unsigned char* tile, int extent, int k) {
  constexpr int row = static_cast<int>(swizzle);
  if constexpr (swizzle == Swizzle::none) {
    const std::uint32_t along_mn = 128, along_k = extent / 8 * 128;
    const auto base = operand_descriptor<swizzle>(tile, along_k, along_mn);
    return base.advanced(k / 8 * extent / 8 * 128);
  } else if constexpr (major == Major::k) {
    const auto base = operand_descriptor<swizzle>(tile, 16, 8 * row);
    return base.advanced(k * 2 / row * extent * row + k * 2 % row);
  } else {
    const auto base = operand_descriptor<swizzle>(tile, kDepth * row, 8 * row);
    return base.advanced(k * row);
  }
}

template <class T>
__device__ T value_of(const signed char* table, int index) {
  return T(static_cast<float>(table[index]));
}

// D[64][n] = A[64][64] B[64][n]; a and b are row-major tables of small integers.
template <class T, int n, Major a_major, Major b_major, Swizzle swizzle>
__global__ void multiply_kernel(const signed char* a, const signed char* b, float* d) {
  constexpr int a_bytes = 64 * kDepth * 2;
  struct alignas(1024) Storage {
    unsigned char a[a_bytes];
    unsigned char b[n * kDepth * 2];
  };
  Storage& shared = dynamic_shared<Storage>();
  const int t = threadIdx.x;
  for (int i = t; i < 64 * kDepth; i += 128)
    *reinterpret_cast<T*>(shared.a + layout_offset<a_major, swizzle>(i / kDepth, i % kDepth, 64)) = value_of<T>(a, i);
  for (int i = t; i < n * kDepth; i += 128)
    *reinterpret_cast<T*>(shared.b + layout_offset<b_major, swizzle>(i % n, i / n, n)) = value_of<T>(b, i);
  fence_async_shared();
  __syncthreads();

  typename Wgmma<T, n>::Accumulators sums;
#pragma unroll
  for (int i = 0; i < n / 2; ++i) sums[i] = 1e30F;  // the first product must overwrite it
  pin_registers(sums);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    const OperandDescriptor right = descriptor_at<b_major, swizzle>(shared.b, n, k);
    Wgmma<T, n>::template multiply<a_major, b_major>(sums, descriptor_at<a_major, swizzle>(shared.a, 64, k), right,
                                                     k != 0);
    wgmma_commit();
  }
  wgmma_wait<0>();
  pin_registers(sums);
#pragma unroll
  for (int i = 0; i < n / 2; ++i) d[accumulator_row(t, i) * n + accumulator_column(t, i)] = sums[i];
}

template <class T, int n, Major a_major = Major::k, Major b_major = Major::k, Swizzle swizzle = Swizzle::b128>
void check(const char* what) {
  std::vector<signed char> a(64 * kDepth), b(kDepth * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<signed char>((i * 2654435761u >> 13) % 15) - 7;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<signed char>((i * 40503u >> 7) % 15) - 7;
  const DeviceArray<signed char> device_a(a), device_b(b);
  const DeviceArray<float> d(64 * n);
  constexpr int shared = 1024 * ((64 + n) * kDepth * 2 / 1024 + ((64 + n) * kDepth * 2 % 1024 != 0));
  run<multiply_kernel<T, n, a_major, b_major, swizzle>>({.grid = 1, .block = 128, .shared_bytes = shared},
                                                        static_cast<const signed char*>(device_a.get()),
                                                        static_cast<const signed char*>(device_b.get()), d.get());
  const auto got = d.values();
  for (int m = 0; m < 64; ++m)
    for (int column = 0; column < n; ++column) {
      int sum = 0;
      for (int k = 0; k < kDepth; ++k)
        sum += a[static_cast<std::size_t>(m * kDepth + k)] * b[static_cast<std::size_t>(k * n + column)];
      ASSERT_EQ(got[static_cast<std::size_t>(m * n + column)], static_cast<float>(sum))
          << what << ", N " << n << ": element (" << m << ", " << column << ")";
    }
}

TEST(Wgmma, every_n_with_halves) {
  TMAOPS_NEEDS_HOPPER();
#define TMAOPS_CHECK(n, ...) check<__half, n>("every N");
  TMAOPS_WGMMA_SHAPES(TMAOPS_CHECK)
#undef TMAOPS_CHECK
}

TEST(Wgmma, bfloats) {
  TMAOPS_NEEDS_HOPPER();
  check<__nv_bfloat16, 16>("bf16");
  check<__nv_bfloat16, 144>("bf16");
  check<__nv_bfloat16, 256>("bf16");
}

template <Swizzle swizzle>
void check_majors(const char* what) {
  check<__half, 64, Major::k, Major::k, swizzle>(what);
  check<__half, 64, Major::mn, Major::k, swizzle>(what);
  check<__half, 128, Major::k, Major::mn, swizzle>(what);
  check<__nv_bfloat16, 128, Major::mn, Major::mn, swizzle>(what);
}

TEST(Wgmma, every_major_and_swizzle) {
  TMAOPS_NEEDS_HOPPER();
  check_majors<Swizzle::b128>("128B");
  check_majors<Swizzle::b64>("64B");
  check_majors<Swizzle::b32>("32B");
  check_majors<Swizzle::none>("no swizzle");
}

}  // namespace
}  // namespace tmaops
