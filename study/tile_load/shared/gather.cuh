// What all kernels of tile_load use: where a tile lies, its checksum, the cycles of a block, launch shapes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/vector.cuh"
#include "device/warp.cuh"
#include "device/watchdog.cuh"
#include "offers/tile_load.hpp"

namespace tmaops::ops::tile_load {

/// Four threads work on one tile: thread q of them on bytes 16 q to 16 q + 15 of each of its four pixels.
inline constexpr int kLanesPerTile = 4;
inline constexpr int kPixels = 4;
inline constexpr int kTilesPerWarp = device::kWarpThreads / kLanesPerTile;
inline constexpr int kBlockThreads = 128;
inline constexpr int kTilesPerBlock = kBlockThreads / kLanesPerTile;

struct DeviceLevel {
  int height = 0;
  int width = 0;
  std::int64_t start = 0;  // first pixel in the image
};

/// Division by a number known at launch, as a multiplication. A division takes some twenty instructions, and these
/// would limit every variant. Exact for dividends below 2^31 (Granlund and Montgomery, PLDI 1994).
struct Divider {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 0;
  std::uint32_t shift = 0;
  Divider() = default;
  explicit Divider(std::int64_t by) : divisor(static_cast<std::uint32_t>(std::max<std::int64_t>(by, 1))) {
    while ((std::uint64_t{1} << shift) < divisor) ++shift;
    if (divisor > 1) {
      multiplier = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + shift)) + divisor - 1) / divisor);
      shift -= 1;
    }
  }
  __device__ __forceinline__ std::uint32_t quotient(std::uint32_t n) const {
    return divisor == 1 ? n : __umulhi(n, multiplier) >> shift;
  }
};

/// The problem as kernels read it.
struct DeviceProblem {
  const unsigned char* value = nullptr;
  const int2* coordinates = nullptr;
  std::uint32_t* checksums = nullptr;
  std::int64_t* cycles = nullptr;
  std::uint32_t cycle_count = 0;
  std::uint32_t tiles = 0;  // of this launch
  std::uint32_t level_count = 0;
  Divider points;
  Divider levels_divider;
  Divider tiles_per_image;       // over all levels
  std::int32_t only_level = -1;  // a launch for one level: `tiles` counts that level's; -1: all levels
  std::int64_t image_bytes = 0;
  DeviceLevel levels[kMaxLevels];
};

struct Tile {
  int x = 0;
  int y = 0;
  std::uint32_t image = 0;
  std::uint32_t level = 0;
};

/// Number of the t-th tile of this launch among all tiles.
__device__ __forceinline__ std::uint32_t tile_number(const DeviceProblem& problem, std::uint32_t t) {
  if (problem.only_level < 0 || problem.level_count == 1) return t;
  const std::uint32_t query = problem.points.quotient(t);
  const std::uint32_t point = t - query * problem.points.divisor;
  return (query * problem.level_count + static_cast<std::uint32_t>(problem.only_level)) * problem.points.divisor +
         point;
}

/// The tile of that number; the caller knows there is one.
__device__ __forceinline__ Tile tile_at(const DeviceProblem& problem, std::uint32_t number) {
  const int2 at = __ldg(problem.coordinates + number);
  std::uint32_t level = 0;
  if (problem.level_count > 1) {
    const std::uint32_t run = problem.points.quotient(number);
    level = run - problem.levels_divider.quotient(run) * problem.level_count;
  }
  return {at.x, at.y, problem.tiles_per_image.quotient(number), level};
}

/// Where the four pixels of a tile are.
struct TilePixels {
  const unsigned char* first;  // pixel (0, 0), also when it lies outside
  std::int64_t row_bytes;
  // Bit dx: column x + dx lies inside; bit dy: row y + dy does. An array would be indexed at run time.
  unsigned columns = 0;
  unsigned rows = 0;
  __device__ __forceinline__ TilePixels(const DeviceProblem& problem, const Tile& tile) {
    const DeviceLevel& level = problem.levels[tile.level];
    row_bytes = static_cast<std::int64_t>(level.width) * kPixelBytes;
    first = problem.value + tile.image * problem.image_bytes + level.start * kPixelBytes + tile.y * row_bytes +
            static_cast<std::int64_t>(tile.x) * kPixelBytes;
#pragma unroll
    for (int d = 0; d < 2; ++d) {
      columns |= static_cast<unsigned>(static_cast<unsigned>(tile.x + d) < static_cast<unsigned>(level.width)) << d;
      rows |= static_cast<unsigned>(static_cast<unsigned>(tile.y + d) < static_cast<unsigned>(level.height)) << d;
    }
  }
  __device__ __forceinline__ bool inside(int pixel) const {
    return (columns >> (pixel % 2) & rows >> (pixel / 2) & 1u) != 0;
  }
  __device__ __forceinline__ const unsigned char* at(int pixel) const {
    return first + pixel / 2 * row_bytes + pixel % 2 * kPixelBytes;
  }
};

/// 16 bytes of a pixel, zero outside the level.
__device__ __forceinline__ uint4 load_chunk(const TilePixels& pixels, int pixel, int chunk) {
  return pixels.inside(pixel) ? device::load_16(pixels.at(pixel) + chunk * 16) : make_uint4(0, 0, 0, 0);
}

/// The part of the checksum that 16 bytes at chunk `quarter` (0 to 3) of pixel 0 to 3 make.
__device__ __forceinline__ std::uint32_t checksum_part(const uint4& words, int pixel, int quarter) {
  const std::uint32_t weight = 2 * static_cast<std::uint32_t>(pixel * 16 + quarter * 4) + 1;
  return words.x * weight + words.y * (weight + 2) + words.z * (weight + 4) + words.w * (weight + 6);
}

/// This thread's part of the checksum of a dense tile in shared memory. `order` is 0 or 1 and differs between
/// neighbouring tiles: so the 8 threads of two tiles touch each of the 32 banks once.
__device__ __forceinline__ std::uint32_t checksum_of(const unsigned char* tile, int quarter, int order) {
  std::uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < kPixels; ++i) {
    const int pixel = i ^ order;
    sum += checksum_part(*reinterpret_cast<const uint4*>(tile + pixel * kPixelBytes + quarter * 16), pixel, quarter);
  }
  return sum;
}

/// Lets the next kernel start and waits for the one in front. Where the caller asked for cycles, it counts those of the
/// block's slowest warp up to the end of the scope.
class BlockRun {
 public:
  __device__ __forceinline__ explicit BlockRun(const DeviceProblem& problem) : problem_(problem) {
    device::let_next_kernel_start();
    device::wait_for_previous_kernel();
    if (problem_.cycles != nullptr) start_ = device::cycles();
  }
  __device__ __forceinline__ ~BlockRun() {
    if (problem_.cycles == nullptr || blockIdx.x >= problem_.cycle_count || device::lane_index() != 0) return;
    atomicMax(reinterpret_cast<long long*>(problem_.cycles + blockIdx.x),
              static_cast<long long>(device::cycles() - start_));
  }

 private:
  const DeviceProblem& problem_;
  std::int64_t start_ = 0;
};

/// All levels in one launch.
inline DeviceProblem device_problem(const Problem& problem, const Arguments& arguments) {
  DeviceProblem made;
  made.value = static_cast<const unsigned char*>(arguments.value);
  made.coordinates = reinterpret_cast<const int2*>(arguments.coordinates);
  made.checksums = arguments.checksums;
  made.cycles = arguments.cycles;
  made.cycle_count = static_cast<std::uint32_t>(arguments.cycle_count);
  made.tiles = static_cast<std::uint32_t>(problem.tiles());
  made.level_count = static_cast<std::uint32_t>(problem.levels.size());
  made.points = Divider(problem.points);
  made.levels_divider = Divider(made.level_count);
  made.tiles_per_image = Divider(problem.tiles() / problem.batch);
  made.image_bytes = problem.length() * kPixelBytes;
  std::int64_t start = 0;
  for (std::size_t l = 0; l < problem.levels.size(); ++l) {
    const LevelShape& level = problem.levels[l];
    made.levels[l] = {static_cast<int>(level.height), static_cast<int>(level.width), start};
    start += level.height * level.width;
  }
  return made;
}

/// For persistent kernels: the rounds ahead of the last tile must still fit in 32 bits.
inline Support persistent_supports(const Problem& problem) {
  if (problem.tiles() > INT32_MAX - (1 << 24)) return Support::no("more than 2^31 - 2^24 tiles");
  return Support::yes();
}

/// The shape of a persistent kernel: threads of a block, and how many blocks each multiprocessor holds.
struct PersistentShape {
  int threads = kBlockThreads;
  int blocks_per_multiprocessor = 1;
  int shared_bytes = 0;
};

/// As many blocks as there is work for, at most those that the multiprocessors hold.
inline LaunchShape persistent_grid(const Problem& problem, const Arguments& arguments, std::int64_t tiles,
                                   const PersistentShape& shape) {
  const std::int64_t tiles_per_block = shape.threads / kLanesPerTile;
  const std::int64_t wanted = (tiles + tiles_per_block - 1) / tiles_per_block;
  return {.grid = static_cast<unsigned>(std::min<std::int64_t>(
              wanted, device_info(problem.device).multiprocessors * shape.blocks_per_multiprocessor)),
          .block = static_cast<unsigned>(shape.threads),
          .shared_bytes = shape.shared_bytes,
          .dependent = arguments.dependent_launch};
}

/// All levels in one launch of a persistent kernel. `maps`: of one that takes tensor maps.
template <class... Maps>
Work persistent_work(void (*kernel)(DeviceProblem, Maps...), const LaunchSite& site, const Problem& problem,
                     const Arguments& arguments, const PersistentShape& shape, const Maps&... maps) {
  Work work(site, problem.device);
  work.add(kernel, persistent_grid(problem, arguments, problem.tiles(), shape), device_problem(problem, arguments),
           maps...);
  return work;
}

}  // namespace tmaops::ops::tile_load
