// Multiplies 64 x 64 matrices of small integers whose tiles, loads, descriptors and steps along k are those that
// `tmaops wgmma` names: wgmma_operands.py gives them, for A and then for B: major, swizzle, descriptor, loads, elements
// of a row of the box, bytes of each step.
#include <cuda_fp16.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "device/launch.cuh"
#include "device/tensor_copy.cuh"
#include "device/wgmma.cuh"
#include "tmaops/tensor_map.hpp"

using namespace tmaops;
using device::Major;

constexpr int kSize = 64, kSteps = kSize / 16, kBytes = kSize * kSize * 2;

struct Operand {
  std::uint64_t descriptor;
  int loads, width, steps[kSteps];
};
struct Shared {
  alignas(1024) unsigned char tile[2][kBytes];
  device::Barrier arrived;
};

template <Major a_major, Major b_major>
__global__ void multiply_kernel(const __grid_constant__ tma::TensorMap a_map,
                                const __grid_constant__ tma::TensorMap b_map, Operand a, Operand b, float* d) {
  auto& shared = device::block_shared<Shared>();
  const Operand operands[2] = {a, b};
  if (threadIdx.x == 0) {
    device::init_barrier(shared.arrived, 1);
    device::fence_barrier_init();
    device::arrive_expect_bytes(shared.arrived, 2 * kBytes);
    for (int i = 0; i < 2; ++i)
      for (int load = 0; load < operands[i].loads; ++load)
        device::tensor_load(shared.tile[i] + load * operands[i].width * kSize * 2, i == 0 ? &a_map : &b_map,
                            {load * operands[i].width, 0}, shared.arrived);
  }
  __syncthreads();
  device::wait(shared.arrived, 0);
  using Product = device::Wgmma<__half, kSize>;
  Product::Accumulators sums = {};
  device::wgmma_fence();
  for (int step = 0; step < kSteps; ++step) {
    const auto at = [&](int i) {
      return device::OperandDescriptor{operands[i].descriptor}.advanced(
          static_cast<int>(device::shared_address(shared.tile[i])) + operands[i].steps[step]);
    };
    Product::multiply<a_major, b_major>(sums, at(0), at(1), step > 0);
  }
  device::wgmma_commit();
  device::wgmma_wait<0>();
  const int t = static_cast<int>(threadIdx.x);
  for (int i = 0; i < kSize / 2; ++i)
    d[(t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8) * kSize + i / 4 * 8 + t % 4 * 2 + i % 2] = sums[i];
}

/// Element (mn, k) of an operand.
float value(int which, int mn, int k) { return static_cast<float>((mn * 7 + k * 5 + which * 3 + mn * k % 11) % 7 - 3); }

int main(int, char** words) {
  Operand operand[2];
  bool k_major[2];
  tma::TensorMap map[2];
  for (int i = 0; i < 2; ++i) {
    char** word = words + 1 + i * (5 + kSteps);
    k_major[i] = std::string(word[0]) == "k";
    operand[i] = {std::strtoull(word[2], nullptr, 16), std::atoi(word[3]), std::atoi(word[4]), {}};
    for (int step = 0; step < kSteps; ++step) operand[i].steps[step] = std::atoi(word[5 + step]);
    std::vector<__half> matrix(kSize * kSize);
    for (int at = 0; at < kSize * kSize; ++at)
      matrix[at] = __float2half(k_major[i] ? value(i, at / kSize, at % kSize) : value(i, at % kSize, at / kSize));
    void* memory = nullptr;
    if (cudaMalloc(&memory, kBytes) != cudaSuccess) return 1;
    cudaMemcpy(memory, matrix.data(), kBytes, cudaMemcpyHostToDevice);
    tma::TensorMapSpec spec = tma::tiled_spec(tma::ElementType::f16, {kSize, kSize}, {operand[i].width, kSize});
    spec.swizzle = tma::parse_swizzle(word[1]).value();
    spec.address = reinterpret_cast<std::uint64_t>(memory);
    map[i] = tma::encode(spec);
  }
  std::vector<float> d(kSize * kSize);
  float* memory = nullptr;
  if (cudaMalloc(&memory, d.size() * sizeof(float)) != cudaSuccess) return 1;
  const auto kernel = k_major[0]
                          ? (k_major[1] ? multiply_kernel<Major::k, Major::k> : multiply_kernel<Major::k, Major::mn>)
                          : (k_major[1] ? multiply_kernel<Major::mn, Major::k> : multiply_kernel<Major::mn, Major::mn>);
  if (device::launch(kernel, {.block = 128}, map[0], map[1], operand[0], operand[1], memory) != cudaSuccess) return 1;
  cudaMemcpy(d.data(), memory, d.size() * sizeof(float), cudaMemcpyDeviceToHost);
  for (int at = 0; at < kSize * kSize; ++at) {
    float want = 0;
    for (int k = 0; k < kSize; ++k) want += value(0, at / kSize, k) * value(1, at % kSize, k);
    if (d[at] != want) {
      std::fprintf(stderr, "element %d, %d: got %g, should be %g\n", at / kSize, at % kSize, d[at], want);
      return 1;
    }
  }
  return 0;
}
