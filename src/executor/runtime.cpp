// The part of the CUDA runtime that host code of this project calls, on the executor's memory. Everything is done when
// a call returns, so streams and their order need nothing.
#include <cuda_runtime_api.h>

#include <cstring>
#include <new>

#include "executor/state.hpp"

using tmaops::executor::allocate;
using tmaops::executor::host_step;
using tmaops::executor::release;

extern "C" {

cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t CUDARTAPI cudaGetLastError() { return cudaSuccess; }
const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
  if (error == cudaErrorLaunchFailure) return "cudaErrorLaunchFailure";
  return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown";
}
const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorLaunchFailure) return "the kernel breaks a rule of the executor";
  return error == cudaErrorMemoryAllocation ? "out of memory" : "the executor does not do that";
}
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMalloc(void** memory, std::size_t bytes) {
  try {
    *memory = allocate(bytes);
    return cudaSuccess;
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  }
}
cudaError_t CUDARTAPI cudaFree(void* memory) {
  release(memory);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemset(void* to, int byte, std::size_t bytes) {
  host_step();
  std::memset(to, byte, bytes);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t) {
  return cudaMemset(to, byte, bytes);
}
cudaError_t CUDARTAPI cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  host_step();
  std::memcpy(to, from, bytes);
  if (kind == cudaMemcpyHostToDevice) tmaops::executor::written_by_host(to, bytes);
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t CUDARTAPI cudaDeviceSynchronize() {
  host_step();
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  return cudaMalloc(memory, bytes);
}
cudaError_t CUDARTAPI cudaFreeAsync(void* memory, cudaStream_t) { return cudaFree(memory); }
cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t* stream) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }
cudaError_t CUDARTAPI cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t CUDARTAPI cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t call, void* with) {
  call(with);
  return cudaSuccess;
}
// A graph would have to remember its kernels instead of running them.
cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t, cudaGraph_t*) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t*, cudaGraph_t, unsigned long long) {
  return cudaErrorNotSupported;
}
cudaError_t CUDARTAPI cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t) { return cudaErrorNotSupported; }
cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
}
