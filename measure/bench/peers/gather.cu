// The ceiling `gather`: the loads of a multi-scale deformable attention alone. Each lane reads 16 bytes of a row,
// without weights and without arithmetic on the values, and what it reads is checked.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bench/peers/peers.hpp"
#include "bench/workloads/element.hpp"
#include "bench/workloads/random.hpp"
#include "core/cuda_launch.hpp"
#include "device/vector.cuh"

namespace tmaops::bench {
namespace {

constexpr int kMostLevels = 8;

struct GatherLevel {
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int64_t start = 0;  // first pixel in S
};

/// Shape of a multi-scale deformable attention. A row is one query's head; a chunk is 16 bytes of its channels.
struct GatherShape {
  std::int64_t rows = 0;            // N * Lq * M
  std::int64_t rows_per_image = 0;  // Lq * M
  std::int64_t length = 0;          // S
  std::int32_t heads = 0;
  std::int32_t chunks = 0;
  std::int32_t points = 0;  // of each level
  std::int32_t levels = 0;
  std::array<GatherLevel, kMostLevels> level{};
};

constexpr int kGatherThreads = 256;
/// Samples whose locations are read at once, 16 bytes per load. Read one by one they take a good part of the time.
constexpr int kTogether = 4;

__device__ float2 as_floats(__half2 pair) { return __half22float2(pair); }
__device__ float2 as_floats(__nv_bfloat162 pair) { return __bfloat1622float2(pair); }
__device__ float2 as_floats(float2 pair) { return pair; }

__host__ __device__ int corner(float location, int extent) {
  const int first = static_cast<int>(floorf(fmaf(location, static_cast<float>(extent), -0.5F)));
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

template <class Pair>
void launch(const GatherShape& shape, const void* value, const void* locations, void* output, Stream stream) {
  const std::int64_t threads = shape.rows * shape.chunks;
  if (threads == 0) return;
  const LaunchShape config{.grid = static_cast<unsigned>((threads + kGatherThreads - 1) / kGatherThreads),
                           .block = kGatherThreads};
  const auto with = [&]<int kSamples>() {
    launch_kernel<gather_kernel<Pair, kSamples>>("gather", config, stream, shape, static_cast<const uint4*>(value),
                                                 static_cast<const Pair*>(locations), static_cast<uint4*>(output));
  };
  if (shape.points % kTogether == 0) return with.template operator()<kTogether>();
  with.template operator()<1>();
}

/// For every row and chunk: reads each sample's location and the four pixels around it, and writes the exclusive or of
/// what it read. value (N, S, M, chunks) of 16 bytes, locations of the type in (N, Lq, M, L, P, 2), output (N, Lq, M,
/// chunks) of 16 bytes.
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
      peer_refuses("gather", "locations of f16, bf16 or f32");
  }
}

constexpr std::int64_t kCheckedRows = 4096;
constexpr std::size_t kChunkBytes = 16;

GatherShape shape_of(const Workload& workload) {
  const TensorView value = workload.tensor("value", 0);
  const TensorView locations = workload.tensor("sampling_locations", 0);
  const nlohmann::json parameters = workload.peer_parameters();
  if (parameters["sampling"] != "bilinear") peer_refuses("gather", "bilinear sampling");
  if (parameters["fused"] != "none") peer_refuses("gather", "nothing fused in: it reads the locations as they are");
  if (!parameters["level_points"].empty()) peer_refuses("gather", "as many points in every level");
  const auto row_bytes = static_cast<std::size_t>(value.shape[3]) * size_of(value.dtype);
  if (row_bytes % kChunkBytes != 0) peer_refuses("gather", "rows of a multiple of 16 bytes");
  if (parameters["levels"].size() > kMostLevels) peer_refuses("gather", "at most 8 levels");
  if (value.shape[1] * value.shape[2] * static_cast<std::int64_t>(row_bytes / kChunkBytes) >= std::int64_t{1} << 31)
    peer_refuses("gather", "images below 2^31 pieces of 16 bytes");
  GatherShape shape{.rows = value.shape[0] * locations.shape[1] * value.shape[2],
                    .rows_per_image = locations.shape[1] * value.shape[2],
                    .length = value.shape[1],
                    .heads = static_cast<std::int32_t>(value.shape[2]),
                    .chunks = static_cast<std::int32_t>(row_bytes / kChunkBytes),
                    .points = static_cast<std::int32_t>(locations.shape[4]),
                    .levels = static_cast<std::int32_t>(parameters["levels"].size())};
  std::int64_t start = 0;
  for (std::size_t i = 0; i < parameters["levels"].size(); ++i) {
    const std::int32_t height = parameters["levels"][i][0];
    const std::int32_t width = parameters["levels"][i][1];
    shape.level[i] = {height, width, start};
    start += std::int64_t{height} * width;
  }
  return shape;
}

class Gather : public InProcess {
 public:
  Gather(const Workload& workload, Timer& timer)
      : InProcess("gather", Kind::ceiling, "", timer), shape_(shape_of(workload)) {
    for (int set = 0; set < workload.sets(); ++set)
      calls_.push_back([shape = shape_, value = workload.tensor("value", set).data,
                        locations = workload.tensor("sampling_locations", set),
                        output = workload.tensor("output", set).data](Stream stream) {
        launch_gather(shape, value, locations, output, stream);
      });
  }

  Comparison verify(Workload& workload, int set, double) override {
    workload.poison(set);
    timer_.run(calls_.at(static_cast<std::size_t>(set)));
    workload.fetch("output", set);
    const auto* got = static_cast<const std::byte*>(workload.host("output", set).data);
    const auto row_bytes = static_cast<std::size_t>(shape_.chunks) * kChunkBytes;
    Random random(set + 1);
    for (std::int64_t i = 0; i < std::min(kCheckedRows, shape_.rows); ++i) {
      const std::int64_t row = random.below(shape_.rows);
      const std::vector<std::byte> want = expected(workload, row, row_bytes);
      if (std::memcmp(got + static_cast<std::size_t>(row) * row_bytes, want.data(), row_bytes) != 0)
        return {.ok = false, .problem = "row " + std::to_string(row) + " differs"};
    }
    return {.ok = true};
  }

 private:
  std::vector<std::byte> expected(const Workload& workload, std::int64_t row, std::size_t row_bytes) const {
    const TensorView locations = workload.host("sampling_locations", 0);
    const auto* value = static_cast<const std::byte*>(workload.host("value", 0).data);
    const std::int64_t image = row / shape_.rows_per_image;
    const std::int64_t head = row % shape_.heads;
    std::vector<std::byte> sum(row_bytes);
    for (std::int32_t l = 0; l < shape_.levels; ++l) {
      const GatherLevel& level = shape_.level[static_cast<std::size_t>(l)];
      for (std::int32_t p = 0; p < shape_.points; ++p) {
        const std::int64_t at = 2 * ((row * shape_.levels + l) * shape_.points + p);
        const std::int64_t x = corner(static_cast<float>(load(locations.dtype, locations.data, at)), level.width);
        const std::int64_t y = corner(static_cast<float>(load(locations.dtype, locations.data, at + 1)), level.height);
        for (const std::int64_t dy : {0, level.height > 1 ? 1 : 0})
          for (const std::int64_t dx : {0, level.width > 1 ? 1 : 0}) {
            const std::int64_t pixel = level.start + (y + dy) * level.width + x + dx;
            const std::byte* from =
                value + static_cast<std::size_t>((image * shape_.length + pixel) * shape_.heads + head) * row_bytes;
            for (std::size_t i = 0; i < row_bytes; ++i) sum[i] ^= from[i];
          }
      }
    }
    return sum;
  }

  GatherShape shape_;
};

}  // namespace

std::unique_ptr<Implementation> make_cuda_gather(const Workload& workload, Timer& timer) {
  return std::make_unique<Gather>(workload, timer);
}

}  // namespace tmaops::bench
