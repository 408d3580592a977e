// Tensor maps for the tests of the device layer.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <stdexcept>

namespace tmaops::test {

template <class Function>
Function driver_function(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found) != cudaSuccess ||
      address == nullptr)
    throw std::runtime_error(std::string("the driver has no ") + name);
  return reinterpret_cast<Function>(address);
}

inline void expect_encoded(CUresult result) {
  if (result != CUDA_SUCCESS) throw std::runtime_error("the driver refused the map: " + std::to_string(result));
}

constexpr std::uint64_t element_bytes(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 || type == CU_TENSOR_MAP_DATA_TYPE_UINT32 ? 4 : 2;
}

/// A dense tensor, extents and box innermost first.
template <std::size_t rank>
CUtensorMap encode_tiled(void* data, const std::array<std::uint64_t, rank>& extents,
                         const std::array<std::uint32_t, rank>& box,
                         CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
                         CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_UINT16) {
  std::array<cuuint64_t, rank> strides{};
  std::array<cuuint32_t, rank> ones{};
  ones.fill(1);
  std::array<cuuint64_t, rank> dims{};
  std::uint64_t pitch = element_bytes(type);
  for (std::size_t i = 0; i < rank; ++i) strides[i] = pitch *= dims[i] = extents[i];
  CUtensorMap map{};
  expect_encoded(driver_function<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled")(
      &map, type, rank, data, dims.data(), strides.data(), box.data(), ones.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
      swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

/// A dense image of 16-bit elements, (channels, w[, h[, d]], n); corners of the box of base pixels in (w[, h[, d]]).
template <std::size_t rank>
CUtensorMap encode_im2col(void* data, const std::array<std::uint64_t, rank>& extents,
                          const std::array<int, rank - 2>& lower, const std::array<int, rank - 2>& upper,
                          unsigned channels, unsigned pixels) {
  std::array<cuuint64_t, rank> strides{};
  std::array<cuuint32_t, rank> ones{};
  ones.fill(1);
  std::array<cuuint64_t, rank> dims{};
  std::uint64_t pitch = 2;
  for (std::size_t i = 0; i < rank; ++i) strides[i] = pitch *= dims[i] = extents[i];
  CUtensorMap map{};
  expect_encoded(driver_function<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col")(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT16, rank, data, dims.data(), strides.data(), lower.data(), upper.data(),
      channels, pixels, ones.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  return map;
}

}  // namespace tmaops::test
