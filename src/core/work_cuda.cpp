#include <cuda.h>
#include <cudaTypedefs.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cuda_launch.hpp"
#include "core/work_device.hpp"

namespace tmaops {
namespace {

constexpr int kSharedWithoutOptIn = 48 * 1024;  // CUDA's limit for a kernel that did not ask for more

dim3 to_dim3(const Extent& extent) { return {extent.x, extent.y, extent.z}; }

/// Raises a kernel's limit of dynamic shared memory on the current device, which is allowed while a graph is captured.
void allow_shared_memory(std::string_view where, const void* kernel, int bytes) {
  if (bytes <= kSharedWithoutOptIn) return;
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, int> allowed;
  int device = 0;
  check_cuda(cudaGetDevice(&device), where);
  const std::lock_guard lock(mutex);
  int& most = allowed[{kernel, device}];
  if (most >= bytes) return;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), where);
  most = bytes;
}

void run_memset(std::string_view where, const Work::Memset& memset, Stream stream) {
  check_cuda(cudaMemsetAsync(memset.to, memset.byte, memset.bytes, static_cast<cudaStream_t>(stream)), where);
}

/// cuLaunchKernelEx, found by name so that nothing links against libcuda. Null where the driver has none: the runtime
/// launches then.
PFN_cuLaunchKernelEx_v11060 find_driver_launch() {
  static std::atomic<void*> known{nullptr};  // a failure is not kept
  void* address = known.load(std::memory_order_relaxed);
  if (address != nullptr) return reinterpret_cast<PFN_cuLaunchKernelEx_v11060>(address);
  cudaDriverEntryPointQueryResult found{};
  check_cuda(cudaGetDriverEntryPointByVersion("cuLaunchKernelEx", &address, 11060, cudaEnableDefault, &found),
             "cuLaunchKernelEx");
  if (found != cudaDriverEntryPointSuccess) return nullptr;
  known.store(address, std::memory_order_relaxed);
  return reinterpret_cast<PFN_cuLaunchKernelEx_v11060>(address);
}

/// A kernel as the driver launches it.
struct DriverLaunch {
  const void* symbol = nullptr;  // the runtime's handle
  cudaFunction_t function{};     // of the device's context
  CUlaunchConfig config{};       // without stream and attributes
  std::array<CUlaunchAttribute, 2> attributes{};

  /// Looks the function up, unless it is that of the launch before.
  void set(std::string_view where, const Work::Kernel& kernel) {
    allow_shared_memory(where, kernel.function.handle, kernel.shape.shared_bytes);
    if (symbol != kernel.function.handle) check_cuda(cudaGetFuncBySymbol(&function, kernel.function.handle), where);
    symbol = kernel.function.handle;
    config = {};
    const LaunchShape& shape = kernel.shape;
    config.gridDimX = shape.grid.x;
    config.gridDimY = shape.grid.y;
    config.gridDimZ = shape.grid.z;
    config.blockDimX = shape.block.x;
    config.blockDimY = shape.block.y;
    config.blockDimZ = shape.block.z;
    config.sharedMemBytes = static_cast<unsigned>(shape.shared_bytes);
    if (shape.cluster > 1) {
      CUlaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim = {shape.cluster, 1, 1};
    }
    if (shape.dependent) {
      CUlaunchAttribute& attribute = attributes[config.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attribute.value.programmaticStreamSerializationAllowed = 1;
    }
  }
};

class RepeatedOnDevice : public RepeatedWork {
 public:
  explicit RepeatedOnDevice(Work work) : work_(std::move(work)) {
    const CurrentDevice current(work_.device().index);
    launch_driver_ = find_driver_launch();
    set_launches();
  }

  void rebind(Work work) override {
    const CurrentDevice current(work.device().index);
    work_ = std::move(work);
    graph_fits_ = false;
    graph_.reset();  // one that runs is freed when it has ended
    set_launches();
  }

  void run(Stream stream) const override {
    const CurrentDevice current(work_.device().index);
    if (!KernelsOneByOne::wanted() && launch_graph(stream)) return;
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      if (const auto* memset = std::get_if<Work::Memset>(&work_.steps()[i])) {
        run_memset(where(), *memset, stream);
        continue;
      }
      const auto& kernel = std::get<Work::Kernel>(work_.steps()[i]);
      CUlaunchConfig config = launches_[i].config;
      config.hStream = static_cast<CUstream>(stream);
      config.attrs = const_cast<CUlaunchAttribute*>(launches_[i].attributes.data());  // only read
      if (launch_driver_ == nullptr ||
          launch_driver_(&config, launches_[i].function, kernel.parameters.addresses(), nullptr) != CUDA_SUCCESS)
        // Falls back to the runtime: it creates a missing context and reports errors.
        launch_by_runtime(where(), kernel.shape, stream, kernel.function, kernel.parameters.addresses());
    }
  }

 private:
  std::string_view where() const { return work_.site().where; }

  void set_launches() {
    launches_.resize(work_.steps().size());
    for (std::size_t i = 0; i < launches_.size(); ++i) {
      const auto* kernel = std::get_if<Work::Kernel>(&work_.steps()[i]);
      if (kernel == nullptr) continue;
      launches_[i].set(where(), *kernel);
      if (kernel->shape.dependent) graph_fits_ = false;  // a graph would wait for everything in front of it
    }
  }

  /// False where the steps have to be run one by one.
  bool launch_graph(Stream stream) const {
    const std::unique_lock lock(graph_mutex_, std::try_to_lock);  // a graph takes one thread at a time
    if (!lock.owns_lock() || !graph_fits_) return false;
    // Runs of one graph wait for each other, so those of several streams would too. A single run needs no graph.
    if (std::exchange(graph_stream_, stream) != stream) return false;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const auto on = static_cast<cudaStream_t>(stream);
    bool done = cudaStreamIsCapturing(on, &status) == cudaSuccess;
    if (done && status != cudaStreamCaptureStatusNone) return false;  // a caller's graph wants the kernels
    if (done && graph_ == nullptr) graph_fits_ = done = make_graph();
    done = done && cudaGraphLaunch(graph_.get(), on) == cudaSuccess;
    if (!done) (void)cudaGetLastError();  // running the steps one by one reports the error if it is still there
    return done;
  }

  bool make_graph() const {
    const RelaxedCapture relaxed;
    cudaGraph_t made{};
    if (cudaGraphCreate(&made, 0) != cudaSuccess) return false;
    const std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> graph(made, &cudaGraphDestroy);
    cudaGraphNode_t before{};
    for (const Work::Step& step : work_.steps()) {
      cudaGraphNode_t added{};
      const std::size_t waits = before == nullptr ? 0 : 1;
      if (const auto* memset = std::get_if<Work::Memset>(&step)) {
        cudaMemsetParams node{};
        node.dst = memset->to;
        node.value = static_cast<unsigned char>(memset->byte);
        node.elementSize = 1;
        node.width = memset->bytes;
        node.height = 1;
        if (cudaGraphAddMemsetNode(&added, made, &before, waits, &node) != cudaSuccess) return false;
      } else if (!add_kernel(std::get<Work::Kernel>(step), made, before, waits, added)) {
        return false;
      }
      before = added;
    }
    cudaGraphExec_t executable{};
    if (cudaGraphInstantiate(&executable, made, 0) != cudaSuccess) return false;
    graph_.reset(executable);
    return true;
  }

  static bool add_kernel(const Work::Kernel& kernel, cudaGraph_t graph, const cudaGraphNode_t& before,
                         std::size_t waits, cudaGraphNode_t& added) {
    cudaKernelNodeParams node{};
    node.func = const_cast<void*>(kernel.function.handle);
    node.gridDim = to_dim3(kernel.shape.grid);
    node.blockDim = to_dim3(kernel.shape.block);
    node.sharedMemBytes = static_cast<unsigned>(kernel.shape.shared_bytes);
    node.kernelParams = kernel.parameters.addresses();
    if (cudaGraphAddKernelNode(&added, graph, &before, waits, &node) != cudaSuccess) return false;
    if (kernel.shape.cluster == 1) return true;
    cudaLaunchAttributeValue value{};
    value.clusterDim.x = kernel.shape.cluster;
    value.clusterDim.y = value.clusterDim.z = 1;
    return cudaGraphKernelNodeSetAttribute(added, cudaLaunchAttributeClusterDimension, &value) == cudaSuccess;
  }

  Work work_;
  PFN_cuLaunchKernelEx_v11060 launch_driver_ = nullptr;
  std::vector<DriverLaunch> launches_;  // one per step; that of a memset is not used

  mutable std::mutex graph_mutex_;
  mutable bool graph_fits_ = true;  // no dependent launches, never bound anew, and nothing has failed
  mutable Stream graph_stream_ =
      const_cast<RepeatedOnDevice*>(this);  // of the last run; at first a value that no stream has
  mutable std::unique_ptr<CUgraphExec_st, decltype(&cudaGraphExecDestroy)> graph_{nullptr, &cudaGraphExecDestroy};
};

}  // namespace

void launch_by_runtime(std::string_view where, const LaunchShape& shape, Stream stream, KernelFunction kernel,
                       void** parameters) {
  allow_shared_memory(where, kernel.handle, shape.shared_bytes);
  std::array<cudaLaunchAttribute, 2> attributes{};
  unsigned count = 0;
  if (shape.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = shape.cluster;
    attributes[count].val.clusterDim.y = 1;
    attributes[count].val.clusterDim.z = 1;
    ++count;
  }
  if (shape.dependent) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count].val.programmaticStreamSerializationAllowed = 1;
    ++count;
  }
  cudaLaunchConfig_t launch{};
  launch.gridDim = to_dim3(shape.grid);
  launch.blockDim = to_dim3(shape.block);
  launch.dynamicSmemBytes = static_cast<std::size_t>(shape.shared_bytes);
  launch.stream = static_cast<cudaStream_t>(stream);
  launch.attrs = attributes.data();
  launch.numAttrs = count;
  check_cuda(cudaLaunchKernelExC(&launch, kernel.handle, parameters), where);
}

void run_on_device(Device device, const LaunchSite& site, std::span<const Work::Step> steps, Stream stream,
                   Dependence dependence) {
  const CurrentDevice current(device.index);
  for (const Work::Step& step : steps) {
    if (const auto* memset = std::get_if<Work::Memset>(&step)) {
      run_memset(site.where, *memset, stream);
      continue;
    }
    const auto& kernel = std::get<Work::Kernel>(step);
    LaunchShape shape = kernel.shape;
    if (dependence == Dependence::not_the_first && &step == &steps.front()) shape.dependent = false;
    launch_by_runtime(site.where, shape, stream, kernel.function, kernel.parameters.addresses());
  }
}

void finish_on_device(Device device, const LaunchSite& site, std::span<const Work::Step> steps, Stream stream) {
  const CurrentDevice current(device.index);
  const RelaxedCapture relaxed;
  cudaEvent_t made{};
  check_cuda(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), site.where);
  const std::unique_ptr<CUevent_st, decltype(&cudaEventDestroy)> done(made, &cudaEventDestroy);
  run_on_device(device, site, steps, stream, Dependence::as_asked);
  check_cuda(cudaEventRecord(made, static_cast<cudaStream_t>(stream)), site.where);
  check_cuda(cudaEventSynchronize(made), site.where);
}

std::unique_ptr<RepeatedWork> repeat_on_device(Work work) {
  return std::make_unique<RepeatedOnDevice>(std::move(work));
}

}  // namespace tmaops
