#include <cstdlib>
#include <string>

#include "core/cuda_status.hpp"
#include "tmaops/error.hpp"

namespace tmaops {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Errors that stay with the context: every later call returns them, whatever it does.
bool is_sticky(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
      return true;
    default:
      return false;
  }
}

}  // namespace

void check_cuda(cudaError_t status, std::string_view where) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  const std::string place(where);
  const std::string name = cudaGetErrorName(status) + std::string(": ") + cudaGetErrorString(status);
  if (status == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    const std::string runtime = version_text(CUDART_VERSION);
    if (driver == 0)
      throw Error(ErrorCode::no_driver,
                  {.where = place, .got = "no driver library (libcuda.so.1)", .needed = "one for CUDA " + runtime});
    throw Error(ErrorCode::driver_too_old, {.where = place,
                                            .got = "a driver for CUDA " + version_text(driver),
                                            .needed = "CUDA " + runtime + " or newer"});
  }
  if (status == cudaErrorNoDevice) {
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr)
      throw Error(
          ErrorCode::device_hidden,
          {.where = place, .got = "CUDA_VISIBLE_DEVICES='" + std::string(visible) + "'", .needed = "a device in it"});
    throw Error(ErrorCode::no_device, {.where = place, .got = "0 devices", .needed = "1"});
  }
  if (status == cudaErrorMemoryAllocation)
    throw Error(ErrorCode::device_out_of_memory, {.where = place, .got = name, .needed = ""});
  if (is_sticky(status))
    throw Error(ErrorCode::earlier_cuda_error, {.where = place, .got = name, .needed = "a working context"});
  throw Error(ErrorCode::cuda_failed, {.where = place, .got = name, .needed = "success"});
}

}  // namespace tmaops
