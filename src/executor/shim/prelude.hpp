// In front of every kernel file in a build with the executor: CUDA C++ for a host compiler. Qualifiers that mean
// nothing there, and the functions that nvcc knows without a header, as the CUDA C++ Programming Guide and the Math API
// define them.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>

#include "executor/interface.hpp"

#undef __align__
#define __align__(n) __attribute__((aligned(n)))
#undef __global__
#define __global__ __attribute__((flatten))  // inlines calls: GCC has no hook for a struct that a call takes or returns
#undef __device__
#define __device__
#undef __host__
#define __host__
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#undef __noinline__
#define __noinline__  // empty, since libstdc++ has an attribute of this name

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <device_launch_parameters.h>  // threadIdx and so on: variables that the executor defines

namespace tmaops::executor {

template <class T>
std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
T from_bits(std::uint64_t bits) {
  T value;
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class T, class Change>
[[gnu::noinline, gnu::no_sanitize("thread")]] T changed(T* at, Change change) {
  const T before = *at;
  *at = change(before);
  return before;
}
template <class T, class Change>
__forceinline__ T atomically(T* at, Change change) {
  atomic_access(at, sizeof(T));
  return changed(at, change);
}

/// Rounded already: what does not fit becomes the nearest number that does, and NaN becomes `nan`.
template <class Integer>
Integer saturated(double value, Integer nan) {
  if (std::isnan(value)) return nan;
  if (value >= static_cast<double>(std::numeric_limits<Integer>::max()) + 1) return std::numeric_limits<Integer>::max();
  if (value < static_cast<double>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(value);
}

}  // namespace tmaops::executor

// --- warps and blocks -----------------------------------------------------------------------------------------------
#define TMAOPS_SHUFFLE(name, Argument, kind)                                                                      \
  template <class T>                                                                                              \
  __forceinline__ T name(unsigned mask, T value, Argument argument, int width = 32) {                             \
    using namespace tmaops::executor;                                                                             \
    return from_bits<T>(warp_collective(Collect::kind, mask, to_bits(value), static_cast<int>(argument), width)); \
  }
TMAOPS_SHUFFLE(__shfl_sync, int, shuffle)
TMAOPS_SHUFFLE(__shfl_up_sync, unsigned, shuffle_up)
TMAOPS_SHUFFLE(__shfl_down_sync, unsigned, shuffle_down)
TMAOPS_SHUFFLE(__shfl_xor_sync, int, shuffle_xor)
#undef TMAOPS_SHUFFLE
#define TMAOPS_REDUCTION(name, T, kind)                                                               \
  __forceinline__ T name(unsigned mask, T value) {                                                    \
    using namespace tmaops::executor;                                                                 \
    return static_cast<T>(warp_collective(Collect::kind, mask, static_cast<unsigned>(value), 0, 32)); \
  }
TMAOPS_REDUCTION(__reduce_add_sync, unsigned, sum)
TMAOPS_REDUCTION(__reduce_add_sync, int, sum)
TMAOPS_REDUCTION(__reduce_min_sync, unsigned, least)
TMAOPS_REDUCTION(__reduce_max_sync, unsigned, most)
TMAOPS_REDUCTION(__reduce_min_sync, int, least_signed)
TMAOPS_REDUCTION(__reduce_max_sync, int, most_signed)
TMAOPS_REDUCTION(__reduce_and_sync, unsigned, all_bits)
TMAOPS_REDUCTION(__reduce_or_sync, unsigned, any_bits)
TMAOPS_REDUCTION(__reduce_xor_sync, unsigned, odd_bits)
#undef TMAOPS_REDUCTION
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate) {
  using namespace tmaops::executor;
  return static_cast<unsigned>(warp_collective(Collect::ballot, mask, predicate != 0, 0, 32));
}
template <class T>
__forceinline__ unsigned __match_any_sync(unsigned mask, T value) {
  unsigned same = 0;
  for (int lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1) != 0)
      same |= static_cast<unsigned>(tmaops::executor::to_bits(__shfl_sync(mask, value, lane)) ==
                                    tmaops::executor::to_bits(value))
              << lane;
  return same;
}
template <class T>
__forceinline__ unsigned __match_all_sync(unsigned mask, T value, int* all_are_same) {
  *all_are_same = __match_any_sync(mask, value) == mask ? 1 : 0;
  return *all_are_same != 0 ? mask : 0;
}
/// Lanes of a warp need not be together: here each one is alone.
__forceinline__ unsigned __activemask() {
  return 1u << (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}
__forceinline__ int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
__forceinline__ int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }
__forceinline__ void __syncwarp(unsigned mask = 0xffffffffu) {
  using namespace tmaops::executor;
  warp_collective(Collect::sync, mask, 0, 0, 32);
}
__forceinline__ void __syncthreads() { tmaops::executor::block_barrier(0, 0, true); }
#define TMAOPS_VOTE(name, how)                                                             \
  __forceinline__ int name(int predicate) {                                                \
    return tmaops::executor::block_vote(tmaops::executor::BlockVote::how, predicate != 0); \
  }
TMAOPS_VOTE(__syncthreads_count, count)
TMAOPS_VOTE(__syncthreads_and, all)
TMAOPS_VOTE(__syncthreads_or, any)
#undef TMAOPS_VOTE
__forceinline__ void __threadfence_block() { tmaops::executor::thread_fence(); }
__forceinline__ void __threadfence() { tmaops::executor::thread_fence(); }
__forceinline__ void __threadfence_system() { tmaops::executor::thread_fence(); }
__forceinline__ void __trap() { tmaops::executor::trap(); }
__forceinline__ long long clock64() { return tmaops::executor::cycles(); }
#define __builtin_assume(condition) ((void)0)
__forceinline__ void __nanosleep(unsigned) { tmaops::executor::sleep(); }

// --- memory ---------------------------------------------------------------------------------------------------------
template <class T>
__forceinline__ T __ldg(const T* from) {
  return *from;
}
#define TMAOPS_LOAD(name)                 \
  template <class T>                      \
  __forceinline__ T name(const T* from) { \
    return *from;                         \
  }
TMAOPS_LOAD(__ldca)
TMAOPS_LOAD(__ldcg)
TMAOPS_LOAD(__ldcs)
TMAOPS_LOAD(__ldcv)
TMAOPS_LOAD(__ldlu)
#undef TMAOPS_LOAD
#define TMAOPS_STORE(name)                           \
  template <class T>                                 \
  __forceinline__ void name(T* to, const T& value) { \
    *to = value;                                     \
  }
TMAOPS_STORE(__stcg)
TMAOPS_STORE(__stcs)
TMAOPS_STORE(__stwb)
TMAOPS_STORE(__stwt)
#undef TMAOPS_STORE
__forceinline__ std::size_t __cvta_generic_to_shared(const void* pointer) {
  return tmaops::executor::shared_address(pointer);
}
#define TMAOPS_ATOMICS(T)                                                                        \
  __forceinline__ T atomicAdd(T* at, T value) {                                                  \
    return tmaops::executor::atomically(at, [=](T old) { return static_cast<T>(old + value); }); \
  }                                                                                              \
  __forceinline__ T atomicMin(T* at, T value) {                                                  \
    return tmaops::executor::atomically(at, [=](T old) { return old < value ? old : value; });   \
  }                                                                                              \
  __forceinline__ T atomicMax(T* at, T value) {                                                  \
    return tmaops::executor::atomically(at, [=](T old) { return old > value ? old : value; });   \
  }                                                                                              \
  __forceinline__ T atomicExch(T* at, T value) {                                                 \
    return tmaops::executor::atomically(at, [=](T) { return value; });                           \
  }
TMAOPS_ATOMICS(int)
TMAOPS_ATOMICS(unsigned)
TMAOPS_ATOMICS(long long)
TMAOPS_ATOMICS(unsigned long long)
TMAOPS_ATOMICS(float)
TMAOPS_ATOMICS(double)
TMAOPS_ATOMICS(__half)
TMAOPS_ATOMICS(__nv_bfloat16)
#undef TMAOPS_ATOMICS
/// Each of the two is added atomically.
#define TMAOPS_PAIR_ATOMIC(Pair)                         \
  __forceinline__ Pair atomicAdd(Pair* at, Pair value) { \
    const auto x = atomicAdd(&at->x, value.x);           \
    return {x, atomicAdd(&at->y, value.y)};              \
  }
TMAOPS_PAIR_ATOMIC(__half2)
TMAOPS_PAIR_ATOMIC(__nv_bfloat162)
TMAOPS_PAIR_ATOMIC(float2)
#undef TMAOPS_PAIR_ATOMIC
#define TMAOPS_INTEGER_ATOMICS(T)                                                                 \
  __forceinline__ T atomicSub(T* at, T value) {                                                   \
    return tmaops::executor::atomically(at, [=](T old) { return old - value; });                  \
  }                                                                                               \
  __forceinline__ T atomicAnd(T* at, T value) {                                                   \
    return tmaops::executor::atomically(at, [=](T old) { return old & value; });                  \
  }                                                                                               \
  __forceinline__ T atomicOr(T* at, T value) {                                                    \
    return tmaops::executor::atomically(at, [=](T old) { return old | value; });                  \
  }                                                                                               \
  __forceinline__ T atomicXor(T* at, T value) {                                                   \
    return tmaops::executor::atomically(at, [=](T old) { return old ^ value; });                  \
  }                                                                                               \
  __forceinline__ T atomicCAS(T* at, T compare, T value) {                                        \
    return tmaops::executor::atomically(at, [=](T old) { return old == compare ? value : old; }); \
  }
TMAOPS_INTEGER_ATOMICS(int)
TMAOPS_INTEGER_ATOMICS(unsigned)
TMAOPS_INTEGER_ATOMICS(unsigned long long)
TMAOPS_INTEGER_ATOMICS(unsigned short)
#undef TMAOPS_INTEGER_ATOMICS
__forceinline__ unsigned atomicInc(unsigned* at, unsigned most) {
  return tmaops::executor::atomically(at, [=](unsigned old) { return old >= most ? 0 : old + 1; });
}
__forceinline__ unsigned atomicDec(unsigned* at, unsigned most) {
  return tmaops::executor::atomically(at, [=](unsigned old) { return old == 0 || old > most ? most : old - 1; });
}

// --- integers and bits ----------------------------------------------------------------------------------------------
__forceinline__ float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
__forceinline__ float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
__forceinline__ unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
__forceinline__ int __float_as_int(float value) { return std::bit_cast<int>(value); }
__forceinline__ long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
__forceinline__ double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
__forceinline__ unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
}
__forceinline__ int __mulhi(int a, int b) { return static_cast<int>(static_cast<std::int64_t>(a) * b >> 32); }
__forceinline__ unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
__forceinline__ int __popc(unsigned bits) { return std::popcount(bits); }
__forceinline__ int __popcll(unsigned long long bits) { return std::popcount(bits); }
__forceinline__ int __clz(int bits) { return std::countl_zero(static_cast<unsigned>(bits)); }
__forceinline__ int __clzll(long long bits) { return std::countl_zero(static_cast<unsigned long long>(bits)); }
__forceinline__ int __ffs(int bits) { return __builtin_ffs(bits); }
__forceinline__ int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline unsigned __brev(unsigned bits) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (bits >> i & 1u) << (31 - i);
  return reversed;
}
inline unsigned long long __brevll(unsigned long long bits) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(bits))) << 32 |
         __brev(static_cast<unsigned>(bits >> 32));
}
#define TMAOPS_DOT(Word, Byte)                                                                    \
  inline Word __dp4a(Word a, Word b, Word sum) {                                                  \
    for (int i = 0; i < 32; i += 8) sum += static_cast<Byte>(a >> i) * static_cast<Byte>(b >> i); \
    return sum;                                                                                   \
  }
TMAOPS_DOT(int, std::int8_t)
TMAOPS_DOT(unsigned, std::uint8_t)
#undef TMAOPS_DOT
__forceinline__ unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}
__forceinline__ unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selectors) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned selector = selectors >> (4 * i) & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (selector & 7))) & 0xff;
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;  // its sign
    result |= byte << (8 * i);
  }
  return result;
}

// --- floating point -------------------------------------------------------------------------------------------------
__forceinline__ float __fdividef(float a, float b) { return a / b; }
__forceinline__ float __saturatef(float value) { return value >= 0.0f ? (value <= 1.0f ? value : 1.0f) : 0.0f; }
__forceinline__ int __float2int_rz(float value) { return tmaops::executor::saturated(std::trunc(value), 0); }
__forceinline__ int __float2int_rd(float value) { return tmaops::executor::saturated(std::floor(value), 0); }
__forceinline__ int __float2int_ru(float value) { return tmaops::executor::saturated(std::ceil(value), 0); }
__forceinline__ int __float2int_rn(float value) { return tmaops::executor::saturated(std::nearbyint(value), 0); }
__forceinline__ unsigned __float2uint_rn(float value) { return tmaops::executor::saturated(std::nearbyint(value), 0u); }
__forceinline__ unsigned __float2uint_rz(float value) { return tmaops::executor::saturated(std::trunc(value), 0u); }
__forceinline__ long long __double2ll_rn(double value) {
  return tmaops::executor::saturated(std::nearbyint(value), std::numeric_limits<long long>::min());
}
__forceinline__ float __double2float_rd(double value) {
  const float nearest = static_cast<float>(value);
  return nearest > value ? std::nextafterf(nearest, -std::numeric_limits<float>::infinity()) : nearest;
}
__forceinline__ double __dmul_rn(double a, double b) { return a * b; }
__forceinline__ double __dadd_rn(double a, double b) { return a + b; }
__forceinline__ float __fmul_rn(float a, float b) { return a * b; }
__forceinline__ float __fadd_rn(float a, float b) { return a + b; }
__forceinline__ float __fsub_rn(float a, float b) { return a - b; }
__forceinline__ float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
__forceinline__ float __frcp_rn(float value) { return 1.0f / value; }
__forceinline__ float __expf(float value) { return std::exp(value); }
__forceinline__ float __logf(float value) { return std::log(value); }
__forceinline__ float __log2f(float value) { return std::log2(value); }
__forceinline__ float __sinf(float value) { return std::sin(value); }
__forceinline__ float __cosf(float value) { return std::cos(value); }
__forceinline__ float __tanf(float value) { return std::tan(value); }
__forceinline__ float __exp10f(float value) { return std::pow(10.0f, value); }
__forceinline__ void __sincosf(float value, float* sine, float* cosine) {
  *sine = std::sin(value);
  *cosine = std::cos(value);
}
__forceinline__ float __powf(float base, float exponent) { return std::pow(base, exponent); }
__forceinline__ float __fsqrt_rn(float value) { return std::sqrt(value); }
__forceinline__ float __fdiv_rn(float a, float b) { return a / b; }
__forceinline__ float __int2float_rn(int value) { return static_cast<float>(value); }
__forceinline__ float __uint2float_rn(unsigned value) { return static_cast<float>(value); }
inline float sinpif(float x) { return static_cast<float>(std::sin(3.14159265358979323846 * static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(std::cos(3.14159265358979323846 * static_cast<double>(x))); }
inline float sinpi(float x) { return sinpif(x); }
inline double sinpi(double x) { return std::sin(3.14159265358979323846 * x); }
inline double cospi(double x) { return std::cos(3.14159265358979323846 * x); }
__forceinline__ float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
__forceinline__ double rsqrt(double value) { return 1.0 / std::sqrt(value); }

#include "executor/shim/sixteen_bits.hpp"

/// CUDA's take two numbers of different types, and of a NaN and a number the number.
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
__forceinline__ auto min(A a, B b) {
  using Common = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<Common>)
    return static_cast<Common>(std::fmin(static_cast<Common>(a), static_cast<Common>(b)));
  else
    return static_cast<Common>(a) < static_cast<Common>(b) ? static_cast<Common>(a) : static_cast<Common>(b);
}
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
__forceinline__ auto max(A a, B b) {
  using Common = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<Common>)
    return static_cast<Common>(std::fmax(static_cast<Common>(a), static_cast<Common>(b)));
  else
    return static_cast<Common>(a) < static_cast<Common>(b) ? static_cast<Common>(b) : static_cast<Common>(a);
}
using std::isfinite;
using std::isinf;
using std::isnan;

// --- what nvcc adds to the runtime's functions ----------------------------------------------------------------------
template <class Function>
cudaError_t cudaFuncSetAttribute(Function*, cudaFuncAttribute, int) {
  return cudaSuccess;  // a launch checks its shared memory itself
}
template <class T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0) {
  std::memcpy(reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(&symbol)) + offset, from, bytes);
  return cudaSuccess;
}

// Each thread would have a variable of its own.
#undef __shared__
#define __shared__ _Pragma("GCC error \"__shared__ is unknown to the executor: device::block_shared<T>() is\"")
// libcu++ has assembly of the host, in a folder of this name.
#define asm                                                                                  \
  static_assert(__builtin_strstr(__FILE__, "/cuda/") != nullptr,                             \
                "inline PTX is unknown to the executor: the functions of device/*.cuh are"); \
  asm
