// What the GPU tests share: skipping with a reason, buffers in device memory, launching, tensor maps.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/cuda_launch.hpp"
#include "core/device_info.hpp"
#include "core/registry.hpp"
#include "gpu/device_layer_bytes.hpp"
#include "tmaops/allocator.hpp"
#include "tmaops/error.hpp"

namespace tmaops::test {

/// Why kernels of an architecture in variants.def cannot run here; empty when they can.
inline std::string no_gpu_reason(std::string_view arch) {
  try {
    return fits_device(arch, {}, device_info({DeviceType::cuda, 0})).reason;
  } catch (const Error& error) {
    return error.what();
  }
}

#define TMAOPS_NEEDS(arch) \
  if (const std::string reason = ::tmaops::test::no_gpu_reason(arch); !reason.empty()) GTEST_SKIP() << reason
/// Tests of operators run where some of their variants do, those of the device layer on a Hopper.
#define TMAOPS_NEEDS_GPU() TMAOPS_NEEDS("sm80")
#define TMAOPS_NEEDS_HOPPER() TMAOPS_NEEDS("sm90a")

/// The executor takes a thousand times as long as a GPU, and has neither graphs nor an order of streams.
#ifdef TMAOPS_EXECUTOR
inline constexpr bool kOnExecutor = true;
#else
inline constexpr bool kOnExecutor = false;
#endif
/// Tests of large problems, graphs and streams: on a GPU alone.
#define TMAOPS_NEEDS_CHIP()  \
  TMAOPS_NEEDS_GPU();        \
  if constexpr (kOnExecutor) \
  GTEST_SKIP() << "too long for the executor, or order of streams and graphs, which it does not have"
/// How many random problems a test draws, of so many on a GPU.
constexpr int problems(int on_a_gpu) { return kOnExecutor ? 3 : on_a_gpu; }

/// Whether this build has a GPU variant and the GPU runs it.
template <class Variant>
bool runs_here(const Variant& variant) {
  return variant.device == DeviceType::cuda && variant.built() &&
         fits_device(variant.arch, variant.attributes, device_info({DeviceType::cuda, 0}));
}
template <class Table>
bool runs_here(const Table& table, std::string_view name) {
  return std::ranges::any_of(table, [&](const auto& one) { return one.name == name && runs_here(one); });
}

/// An array in device memory, aligned to 256 bytes.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count, int fill = 0xFF) : count_(count) {
    check_cuda(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    check_cuda(cudaMemset(data_, fill, count * sizeof(T)), "cudaMemset");
    check_cuda(cudaDeviceSynchronize(), "cudaMemset");  // streams that do not wait for the default one are used too
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    check_cuda(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "upload");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }
  T* get() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> host(count_);
    check_cuda(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "download");
    note_bytes(host.data(), host.size() * sizeof(T));
    return host;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Captures one run of a plan, or one call(stream), into a CUDA graph, replays that so many times and waits.
template <class Call>
void replay_captured(const Call& call, int times = 1) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  check_cuda(cudaStreamCreate(&stream), "stream");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  if constexpr (requires { call.run(stream); })
    call.run(stream);
  else
    call(stream);
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  check_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
  for (int i = 0; i < times; ++i) check_cuda(cudaGraphLaunch(replay, stream), "replay");
  check_cuda(cudaStreamSynchronize(stream), "replay");
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

/// A caller's allocator of device memory, which counts.
class CountingAllocator {
 public:
  CountingAllocator() = default;
  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

  Allocator allocator() {
    return {.context = this,
            .allocate =
                [](void* context, std::size_t bytes, Stream stream) {
                  auto& counts = *static_cast<CountingAllocator*>(context);
                  void* memory = nullptr;
                  if (cudaMallocAsync(&memory, bytes, static_cast<cudaStream_t>(stream)) != cudaSuccess) return memory;
                  counts.allocated += bytes;
                  counts.held += bytes;
                  return memory;
                },
            .release =
                [](void* context, void* memory, std::size_t bytes, Stream stream) {
                  static_cast<CountingAllocator*>(context)->held -= bytes;
                  (void)cudaFreeAsync(memory, static_cast<cudaStream_t>(stream));
                }};
  }

  std::size_t allocated = 0;  // bytes so far
  std::size_t held = 0;
};

/// Launches and waits; a failure of the kernel is thrown as Error and fails the test with CUDA's words.
template <auto kernel, class... Given>
void run(const LaunchShape& config, Given... given) {
  launch_kernel<kernel>("kernel under test", config, nullptr, given...);
  check_cuda(cudaDeviceSynchronize(), "kernel under test");
}

/// 0, 1, 2, ... in 16 bits, so that every element of a small tensor differs from its neighbours.
inline std::vector<std::uint16_t> counting(std::size_t count) {
  std::vector<std::uint16_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint16_t>(i * 7 + 1);
  return values;
}

}  // namespace tmaops::test
