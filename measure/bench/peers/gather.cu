// The loads of a multi-scale deformable attention alone: each lane reads 16 bytes of a row, without weights and without
// arithmetic on the values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>

#include "bench/peers/gather.hpp"
#include "core/cuda_launch.hpp"
#include "device/vector.cuh"
#include "tmaops/error.hpp"

namespace tmaops::bench {
namespace {

constexpr int kGatherThreads = 256;
/// Samples whose locations are read at once, 16 bytes per load. Read one by one they take a good part of the time.
constexpr int kTogether = 4;

__device__ float2 as_floats(__half2 pair) { return __half22float2(pair); }
__device__ float2 as_floats(__nv_bfloat162 pair) { return __bfloat1622float2(pair); }
__device__ float2 as_floats(float2 pair) { return pair; }

__device__ int corner(float location, int extent) {
  const int first = __float2int_rd(fmaf(location, static_cast<float>(extent), -0.5F));
  return max(0, min(first, extent - 2));
}

__device__ void exclusive_or(uint4& to, const uint4& from) {
  to.x ^= from.x;
  to.y ^= from.y;
  to.z ^= from.z;
  to.w ^= from.w;
}

/// Neighbouring locations, in pieces of 16 bytes where they are whole pieces.
template <class Pair, int kSamples>
__device__ void load_locations(Pair (&to)[kSamples], const Pair* from) {
  if constexpr (sizeof to % sizeof(uint4) == 0) {
    constexpr int each = sizeof(uint4) / sizeof(Pair);
#pragma unroll
    for (int i = 0; i < kSamples; i += each) {
      const uint4 piece = device::load_16(from + i);
      memcpy(static_cast<void*>(to + i), &piece, sizeof piece);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kSamples; ++i) to[i] = from[i];
  }
}

template <class Pair, int kSamples>
__global__ void __launch_bounds__(kGatherThreads)
    gather_kernel(const __grid_constant__ GatherShape shape, const uint4* value, const Pair* locations, uint4* output) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kGatherThreads + threadIdx.x;
  const std::int64_t row = i / shape.chunks;
  if (row >= shape.rows) return;
  const int chunk = static_cast<int>(i % shape.chunks);
  const std::int64_t image = row / shape.rows_per_image;
  const int pixel = shape.heads * shape.chunks;  // chunks from one pixel to the next; an image has less than 2^31
  const uint4* of_head = value + image * shape.length * pixel + row % shape.heads * shape.chunks + chunk;
  const Pair* at = locations + row * shape.levels * shape.points;
  uint4 sum{};
  for (int l = 0; l < shape.levels; ++l) {
    const GatherLevel level = shape.level[l];
    const uint4* map = of_head + level.start * pixel;
    const int down = level.height > 1 ? level.width * pixel : 0;
    const int right = level.width > 1 ? pixel : 0;
#pragma unroll 1
    for (int first = 0; first < shape.points; first += kSamples, at += kSamples) {
      Pair some[kSamples];
      load_locations(some, at);
#pragma unroll
      for (int p = 0; p < kSamples; ++p) {
        const float2 location = as_floats(some[p]);
        const int upper = (corner(location.y, level.height) * level.width + corner(location.x, level.width)) * pixel;
        exclusive_or(sum, device::load_16(map + upper));
        exclusive_or(sum, device::load_16(map + (upper + right)));
        exclusive_or(sum, device::load_16(map + (upper + down)));
        exclusive_or(sum, device::load_16(map + (upper + down + right)));
      }
    }
  }
  device::store_16(output + i, sum);
}

template <class Pair, int kSamples>
void launch_with(const GatherShape& shape, const void* value, const void* locations, void* output, Stream stream) {
  const std::int64_t threads = shape.rows * shape.chunks;
  if (threads == 0) return;
  const LaunchShape config{.grid = static_cast<unsigned>((threads + kGatherThreads - 1) / kGatherThreads),
                           .block = kGatherThreads};
  launch_kernel<gather_kernel<Pair, kSamples>>("gather", config, stream, shape, static_cast<const uint4*>(value),
                                               static_cast<const Pair*>(locations), static_cast<uint4*>(output));
}

template <class Pair>
void launch(const GatherShape& shape, const void* value, const void* locations, void* output, Stream stream) {
  if (shape.points % kTogether == 0) return launch_with<Pair, kTogether>(shape, value, locations, output, stream);
  launch_with<Pair, 1>(shape, value, locations, output, stream);
}

}  // namespace

void launch_gather(const GatherShape& shape, const void* value, const ConstTensorView& locations, void* output,
                   Stream stream) {
  switch (locations.dtype) {
    case DType::f16:
      return launch<__half2>(shape, value, locations.data, output, stream);
    case DType::bf16:
      return launch<__nv_bfloat162>(shape, value, locations.data, output, stream);
    case DType::f32:
      return launch<float2>(shape, value, locations.data, output, stream);
    default:
      throw Error(ErrorCode::variant_refuses,
                  {.where = "gather", .got = "", .needed = "locations of f16, bf16 or f32"});
  }
}

}  // namespace tmaops::bench
