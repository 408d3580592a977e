// Loads boxes of a matrix by TMA: one block, one box, one barrier. `load fault` has its fault switched on.
//   nvcc -std=c++20 -arch=sm_90a load.cu -o load $(pkg-config --cflags --libs tmaops-device)
//
// A matrix of 100 rows of 200 halves is cut into boxes of 64 x 32. Those at the right and lower edge reach past its
// end: TMA fills the rest with zero, and the barrier counts the bytes of the whole box all the same. With the fault the
// barrier expects only the bytes that lie inside the matrix.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "device/launch.cuh"
#include "device/tensor_copy.cuh"
#include "tmaops/tensor_map.hpp"

using namespace tmaops;

constexpr int kWidth = 200, kHeight = 100;      // of the matrix
constexpr int kBoxWidth = 64, kBoxHeight = 32;  // one load brings a box
constexpr int kAcross = 4, kDown = 4;           // boxes that cover the matrix
constexpr int kBox = kBoxWidth * kBoxHeight;

struct Shared {
  alignas(128) __half box[kBox];  // the destination of a load is a multiple of 128 bytes
  device::Barrier arrived;
};

/// Block (x, y) copies box (x, y) to `to`, where the boxes lie one behind the other.
__global__ void load_kernel(const __grid_constant__ tma::TensorMap map, __half* to, bool fault) {
  auto& shared = device::block_shared<Shared>();
  const int thread = static_cast<int>(threadIdx.x);
  const int x = static_cast<int>(blockIdx.x) * kBoxWidth, y = static_cast<int>(blockIdx.y) * kBoxHeight;

  if (thread == 0) {
    device::init_barrier(shared.arrived, 1);  // one arrival: that of the thread below
    device::fence_barrier_init();             // the copy engine sees it
  }
  __syncthreads();  // and so do the other threads

  if (thread == 0) {
    const int rows_inside = min(kBoxHeight, kHeight - y);
    const int rows = fault ? rows_inside : kBoxHeight;
    device::arrive_expect_bytes(shared.arrived, static_cast<std::uint32_t>(rows * kBoxWidth * sizeof(__half)));
    device::tensor_load(shared.box, &map, {x, y}, shared.arrived);
  }
  device::wait(shared.arrived, 0, {"the box"});  // every thread waits for the first phase, which has parity 0

  __half* box = to + (blockIdx.y * kAcross + blockIdx.x) * kBox;
  for (int i = thread; i < kBox; i += static_cast<int>(blockDim.x)) box[i] = shared.box[i];
}

#define CHECK(call)                                                    \
  if (const cudaError_t status = (call); status != cudaSuccess) {      \
    std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(status)); \
    return 1;                                                          \
  }

int main(int count, char** words) {
  const bool fault = count > 1 && std::strcmp(words[1], "fault") == 0;
  std::vector<__half> matrix(kWidth * kHeight), got(kAcross * kDown * kBox);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = __float2half(static_cast<float>(i % 2048) + 1);
  __half *from = nullptr, *to = nullptr;
  CHECK(cudaMalloc(&from, matrix.size() * sizeof(__half)));
  CHECK(cudaMalloc(&to, got.size() * sizeof(__half)));
  CHECK(cudaMemcpy(from, matrix.data(), matrix.size() * sizeof(__half), cudaMemcpyHostToDevice));

  tma::TensorMapSpec spec = tma::tiled_spec(tma::ElementType::f16, {kWidth, kHeight}, {kBoxWidth, kBoxHeight});
  spec.address = reinterpret_cast<std::uint64_t>(from);
  const tma::TensorMap map = tma::encode(spec);  // throws an Error that says what is wrong
  CHECK(device::launch(load_kernel, {.grid = {kAcross, kDown}, .block = 64}, map, to, fault));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(got.data(), to, got.size() * sizeof(__half), cudaMemcpyDeviceToHost));

  // The same on the CPU.
  for (int box = 0; box < kAcross * kDown; ++box)
    for (int i = 0; i < kBox; ++i) {
      const int x = box % kAcross * kBoxWidth + i % kBoxWidth, y = box / kAcross * kBoxHeight + i / kBoxWidth;
      const float want = x < kWidth && y < kHeight ? __half2float(matrix[y * kWidth + x]) : 0.0f;
      const float is = __half2float(got[box * kBox + i]);
      if (is != want) {
        std::fprintf(stderr, "box %d, element %d: got %g, should be %g\n", box, i, is, want);
        return 1;
      }
    }
  std::printf("load: %d boxes are right\n", kAcross * kDown);
  return 0;
}
