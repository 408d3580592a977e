// Tensor maps of the levels: one per level, since the levels have different widths.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

#include <memory>

#include "core/cuda_launch.hpp"
#include "ops/tile_load/problem.hpp"

namespace tmaops::ops::tile_load {

struct LevelMaps {
  CUtensorMap level[kMaxLevels];
};

/// Innermost first: {channels, width, height, batch} for rank 4, {channels, 1, width, height, batch} for rank 5, where
/// the 1 is the head of deformable attention's value. Box: 2 x 2 pixels of all channels; zero outside.
inline std::shared_ptr<const LevelMaps> make_maps(const Problem& problem, const Arguments& arguments, int rank) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address, 12000, cudaEnableDefault, &found),
             "cuTensorMapEncodeTiled");
  const auto encode = reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(address);
  auto maps = std::make_shared<LevelMaps>();
  auto* data = static_cast<unsigned char*>(const_cast<void*>(arguments.value));
  const auto image = static_cast<cuuint64_t>(problem.length()) * kPixelBytes;
  for (std::size_t l = 0; l < problem.levels.size(); ++l) {
    const auto width = static_cast<cuuint64_t>(problem.levels[l].width);
    const auto height = static_cast<cuuint64_t>(problem.levels[l].height);
    const auto batch = static_cast<cuuint64_t>(problem.batch);
    const cuuint64_t dims4[] = {kChannels, width, height, batch};
    const cuuint64_t dims5[] = {kChannels, 1, width, height, batch};
    const cuuint64_t strides4[] = {kPixelBytes, width * kPixelBytes, image};
    const cuuint64_t strides5[] = {kPixelBytes, kPixelBytes, width * kPixelBytes, image};
    const cuuint32_t box4[] = {kChannels, 2, 2, 1};
    const cuuint32_t box5[] = {kChannels, 1, 2, 2, 1};
    const cuuint32_t ones[] = {1, 1, 1, 1, 1};
    const CUresult result =
        encode(&maps->level[l], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, static_cast<cuuint32_t>(rank), data,
               rank == 4 ? dims4 : dims5, rank == 4 ? strides4 : strides5, rank == 4 ? box4 : box5, ones,
               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
      throw Error(ErrorCode::internal,
                  {.where = "tile_load", .got = "CUresult " + std::to_string(result), .needed = "a tensor map"});
    data += width * height * kPixelBytes;
  }
  return maps;
}

}  // namespace tmaops::ops::tile_load
