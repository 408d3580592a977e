// Finds cuTensorMapEncode* in the driver by name and version, so that nothing links against libcuda.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "core/cuda_launch.hpp"
#include "core/device_info.hpp"
#include "core/fail.hpp"
#include "tma/driver.hpp"

namespace tmaops::tma {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) && alignof(TensorMap) >= alignof(CUtensorMap));
static_assert(static_cast<int>(ElementType::u6x16_align16) == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B &&
              static_cast<int>(ElementType::bf16) == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 &&
              static_cast<int>(Interleave::b32) == CU_TENSOR_MAP_INTERLEAVE_32B &&
              static_cast<int>(Swizzle::b128_atom64) == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B &&
              static_cast<int>(L2Promotion::b256) == CU_TENSOR_MAP_L2_PROMOTION_L2_256B &&
              static_cast<int>(Fill::nan) == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);

constexpr unsigned int kFirstVersionWithTma = 12000;
constexpr std::size_t kMostEntries = 8;

struct Functions {
  PFN_cuTensorMapEncodeTiled_v12000 tiled = nullptr;
  PFN_cuTensorMapEncodeIm2col_v12000 im2col = nullptr;
  PFN_cuGetErrorName_v6000 error_name = nullptr;
};

template <class Function>
Function find(const char* symbol, unsigned int version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check_cuda(cudaGetDriverEntryPointByVersion(symbol, &address, version, cudaEnableDefault, &found), symbol);
  if (found == cudaDriverEntryPointSuccess && address != nullptr) return reinterpret_cast<Function>(address);
  int driver = 0;
  cudaDriverGetVersion(&driver);
  fail(ErrorCode::driver_too_old, symbol,
       "a driver for CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10) +
           ", which has no such function",
       "CUDA 12.0 or newer");
}

const Functions& functions_of_driver() {
  // A failure is not kept, so the next call tries again and reports its own error.
  static std::mutex mutex;
  static Functions functions;
  const std::scoped_lock lock(mutex);
  if (functions.tiled == nullptr) {
    functions.im2col = find<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col", kFirstVersionWithTma);
    functions.error_name = find<PFN_cuGetErrorName_v6000>("cuGetErrorName", 6000);
    functions.tiled = find<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled", kFirstVersionWithTma);
  }
  return functions;
}

thread_local bool clears_bit_85 = false;  // of the device that load_driver() was last called for

template <class T>
std::array<T, kMostEntries> as(const std::vector<std::int64_t>& values) {
  std::array<T, kMostEntries> result{};
  std::ranges::transform(values, result.begin(), [](std::int64_t value) { return static_cast<T>(value); });
  return result;
}

}  // namespace

void load_driver(int device_index) {
  const DeviceInfo& device = device_info({DeviceType::cuda, device_index});
  if (device.compute_capability < kHopper)
    fail(ErrorCode::wrong_architecture, "tensor map on " + device.name,
         "compute capability " + std::to_string(device.compute_capability / 10) + "." +
             std::to_string(device.compute_capability % 10),
         "9.0 or newer: older GPUs have no TMA");
  const CurrentDevice current(device_index);
  const RelaxedCapture relaxed;
  // Needs the context, so it makes it, and reports an error that an earlier kernel left in it.
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "before making a tensor map");
  functions_of_driver();
  int version = 0;
  check_cuda(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  clears_bit_85 = sets_bit_85_wrongly(device.compute_capability, version);
}

DriverAnswer encode_unchecked(const TensorMapSpec& spec, TensorMap& map) {
  const Functions& functions = functions_of_driver();
  const auto dims = as<cuuint64_t>(spec.dims);
  const auto strides = as<cuuint64_t>(spec.strides);
  auto steps = as<cuuint32_t>(spec.element_strides);
  if (spec.element_strides.empty()) steps.fill(1);
  const auto rank = static_cast<cuuint32_t>(spec.dims.size());
  const auto type = static_cast<CUtensorMapDataType>(spec.dtype);
  auto* address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(spec.address));
  auto* target = reinterpret_cast<CUtensorMap*>(&map);
  const auto interleave = static_cast<CUtensorMapInterleave>(spec.interleave);
  const auto swizzle = static_cast<CUtensorMapSwizzle>(spec.swizzle);
  const auto promotion = static_cast<CUtensorMapL2promotion>(spec.l2_promotion);
  const auto fill = static_cast<CUtensorMapFloatOOBfill>(spec.fill);
  CUresult result = CUDA_SUCCESS;
  if (spec.mode == Mode::tiled) {
    const auto box = as<cuuint32_t>(spec.box);
    result = functions.tiled(target, type, rank, address, dims.data(), strides.data(), box.data(), steps.data(),
                             interleave, swizzle, promotion, fill);
  } else {
    const auto lower = as<int>(spec.lower_corner);
    const auto upper = as<int>(spec.upper_corner);
    result = functions.im2col(target, type, rank, address, dims.data(), strides.data(), lower.data(), upper.data(),
                              static_cast<cuuint32_t>(spec.channels_per_pixel),
                              static_cast<cuuint32_t>(spec.pixels_per_column), steps.data(), interleave, swizzle,
                              promotion, fill);
  }
  if (result == CUDA_SUCCESS) {
    if (clears_bit_85) clear_bit_85(spec, map);
    return {};
  }
  // Errors that stay with a context have the same number in CUresult and cudaError_t.
  if (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_NOT_SUPPORTED)
    check_cuda(static_cast<cudaError_t>(result), "making a tensor map");
  const char* name = nullptr;
  functions.error_name(result, &name);
  return {static_cast<int>(result), name != nullptr ? name : "CUDA error " + std::to_string(result)};
}

}  // namespace tmaops::tma
