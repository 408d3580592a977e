// Version 5: bulk copies, which need no tensor map. Two of 128 bytes per tile, one for each row. What lies outside the
// level is zeroed by the thread that issues the copy; a tensor map would do that.
#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "study/tile_load/shared/warp_ring.cuh"

namespace tmaops::ops::tile_load::bulk_rows {
namespace {

struct RowCopy {
  static constexpr int lanes = 2;
  static constexpr bool whole_tiles = false;
  const DeviceProblem& problem;

  /// Pixels of row `part` of the tile that lie inside the level: [begin, end) of the two.
  struct Inside {
    int begin = 0;
    int end = 0;
  };
  __device__ __forceinline__ Inside inside(const Tile& tile, int part) const {
    const DeviceLevel& level = problem.levels[tile.level];
    const int y = tile.y + part;
    if (y < 0 || y >= level.height || tile.x < -1 || tile.x >= level.width) return {};
    return {tile.x < 0 ? 1 : 0, tile.x + 1 < level.width ? 2 : 1};
  }
  __device__ __forceinline__ std::uint32_t bytes(const Tile& tile, int part) const {
    const Inside row = inside(tile, part);
    return static_cast<std::uint32_t>((row.end - row.begin) * kPixelBytes);
  }
  __device__ __forceinline__ void issue(const Tile& tile, int part, unsigned char* to, device::Barrier& barrier) const {
    const Inside row = inside(tile, part);
    unsigned char* row_to = to + part * 2 * kPixelBytes;
    if (row.end - row.begin < 2) {
      for (int pixel = 0; pixel < 2; ++pixel)
        if (pixel < row.begin || pixel >= row.end)
          for (int i = 0; i < kPixelBytes; i += 16)
            *reinterpret_cast<uint4*>(row_to + pixel * kPixelBytes + i) = make_uint4(0, 0, 0, 0);
      device::fence_async_shared();  // a later bulk copy into these bytes comes after the zeros
    }
    if (row.begin == row.end) return;
    const DeviceLevel& level = problem.levels[tile.level];
    const std::int64_t pixel =
        level.start + static_cast<std::int64_t>(tile.y + part) * level.width + tile.x + row.begin;
    device::bulk_load(row_to + row.begin * kPixelBytes,
                      problem.value + tile.image * problem.image_bytes + pixel * kPixelBytes, bytes(tile, part),
                      barrier);
  }
};

__global__ void __launch_bounds__(kRingThreads, kRingBlocksPerMultiprocessor)
    kernel(const __grid_constant__ DeviceProblem problem) {
  const BlockRun run(problem);
  run_warp_ring<kSite.smem>(problem, RowCopy{problem});
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) { return persistent_supports(problem); }

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return persistent_work(kernel, kSite, problem, arguments, ring_shape(problem, problem.tiles()));
}

}  // namespace tmaops::ops::tile_load::bulk_rows
