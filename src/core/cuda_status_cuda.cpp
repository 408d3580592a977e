#include <cstdlib>
#include <string>

#include "core/cuda_status.hpp"
#include "core/fail.hpp"

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
    if (driver == 0) fail(ErrorCode::no_driver, place, "no driver library (libcuda.so.1)", "one for CUDA " + runtime);
    fail(ErrorCode::driver_too_old, place, "a driver for CUDA " + version_text(driver),
         "CUDA " + runtime + " or newer");
  }
  if (status == cudaErrorNoDevice) {
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr)
      fail(ErrorCode::device_hidden, place, "CUDA_VISIBLE_DEVICES='" + std::string(visible) + "'", "a device in it");
    fail(ErrorCode::no_device, place, "0 devices", "1");
  }
  if (status == cudaErrorMemoryAllocation) fail(ErrorCode::device_out_of_memory, place, name, "");
  if (is_sticky(status)) fail(ErrorCode::earlier_cuda_error, place, name, "a working context");
  fail(ErrorCode::cuda_failed, place, name, "success");
}

}  // namespace tmaops
