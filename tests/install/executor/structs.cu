// Stores of structs that functions return: of CUDA's types, of one's own, small and large, by any call. Optimised or
// not, nothing is found in them, and `structs fault` reads one that nobody has written.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdio>
#include <cstring>

#include "device/launch.cuh"
#include "device/shared_memory.cuh"

using namespace tmaops;

constexpr int kThreads = 64;

struct Complex {
  float re, im;
};
__device__ Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

/// Copied and converted by code of its own.
struct Angle {
  float radians;
  Angle() = default;
  __device__ Angle(float degrees) : radians(degrees * 0.5f) {}
  __device__ Angle(const Angle& other) : radians(other.radians) {}
  __device__ Angle& operator=(const Angle& other) {
    radians = other.radians;
    return *this;
  }
};
__device__ Angle turned(const Angle& angle) { return Angle(4 * angle.radians); }

struct Row {
  float values[7];
};
__device__ Row row_of(int first) {
  Row row;
  for (int i = 0; i < 7; ++i) row.values[i] = static_cast<float>(first + i);
  return row;
}
__device__ Complex power(Complex base, int exponent) {
  return exponent == 0 ? Complex{1, 0} : power(base, exponent - 1) * base;
}

struct Shared {
  __half half[kThreads], sum[kThreads];
  __half2 half2[kThreads];
  __nv_bfloat16 bf16[kThreads];
  __nv_bfloat162 bf162[kThreads];
  float2 pair[kThreads];
  Complex product[kThreads], recursive[kThreads], pointed[kThreads];
  Angle angle[kThreads];
  Row row[kThreads];
  Complex unwritten;
};

__global__ void store_structs(float* to, Complex (*by_pointer)(Complex, int), bool fault) {
  auto& shared = device::block_shared<Shared>();
  const int i = threadIdx.x;
  const float x = static_cast<float>(i);
  for (int j = i; j < kThreads; j += kThreads) {
    shared.half[j] = __float2half(x);
    shared.sum[j] = __hadd(shared.half[j], __float2half(1.0f));
    shared.half2[j] = __floats2half2_rn(x, x);
    shared.bf16[j] = __float2bfloat16(x);
    shared.bf162[j] = __floats2bfloat162_rn(x, x);
    shared.pair[j] = make_float2(x, x);
    shared.product[j] = Complex{x, 1} * Complex{1, 0};
    shared.recursive[j] = power({x, 0}, 1);
    shared.pointed[j] = by_pointer({x, 0}, 1);
    shared.angle[j] = turned(Angle(x));
    shared.row[j] = row_of(j);
  }
  __syncthreads();
  const int other = kThreads - 1 - i;
  float sum = __half2float(shared.half[other]) + __half2float(shared.sum[other]) + __low2float(shared.half2[other]) +
              __bfloat162float(shared.bf16[other]) + __high2float(shared.bf162[other]) + shared.pair[other].x +
              shared.product[other].re + shared.recursive[other].re + shared.pointed[other].re +
              shared.angle[other].radians + shared.row[other].values[6];
  if (fault) sum += shared.unwritten.re;
  to[i] = sum;
}

int main(int count, char** words) {
  const bool fault = count > 1 && std::strcmp(words[1], "fault") == 0;
  float* memory = nullptr;
  cudaMalloc(&memory, sizeof(float) * kThreads);
  if (device::launch(store_structs, {.block = kThreads}, memory, &power, fault) != cudaSuccess) return 1;
  float sums[kThreads];
  cudaMemcpy(sums, memory, sizeof(sums), cudaMemcpyDeviceToHost);
  for (int i = 0; i < kThreads; ++i)
    if (sums[i] != 11.0f * static_cast<float>(kThreads - 1 - i) + 1 + 6) return 1;
  std::puts("right");
  return 0;
}
