#include <cuda.h>
#include <cudaTypedefs.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/cuda_launch.hpp"
#include "core/repeated_launches.hpp"

namespace tmaops {
namespace {

/// cuLaunchKernelEx, found by name so that nothing links against libcuda. Null where the driver has none: the runtime
/// launches then.
PFN_cuLaunchKernelEx_v11060 driver_launch() {
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

struct Launch {
  std::string_view where;
  LaunchConfig shape;
  const void* kernel = nullptr;    // the runtime's handle
  cudaFunction_t function{};       // the driver's, of the device's context
  detail::KernelParameters given;  // the launch reads them from here
  CUlaunchConfig config{};         // without stream and attributes
  std::array<CUlaunchAttribute, 2> attributes{};
};

class CudaLaunches : public RepeatedLaunches, public detail::LaunchNotes {
 public:
  explicit CudaLaunches(Device device) : device_(device.index) {}

  void add(std::string_view where, const LaunchConfig& config, const void* kernel,
           detail::KernelParameters given) override {
    Launch launch{.where = where, .shape = config, .kernel = kernel, .given = std::move(given)};
    check_cuda(cudaGetFuncBySymbol(&launch.function, kernel), where);
    CUlaunchConfig& to = launch.config;
    to.gridDimX = config.grid.x;
    to.gridDimY = config.grid.y;
    to.gridDimZ = config.grid.z;
    to.blockDimX = config.block.x;
    to.blockDimY = config.block.y;
    to.blockDimZ = config.block.z;
    to.sharedMemBytes = static_cast<unsigned>(config.shared_bytes);
    if (config.cluster > 1) {
      CUlaunchAttribute& attribute = launch.attributes[to.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim = {config.cluster, 1, 1};
    }
    if (config.dependent) {
      CUlaunchAttribute& attribute = launch.attributes[to.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attribute.value.programmaticStreamSerializationAllowed = 1;
      graph_fits_ = false;  // it would wait for everything in front of it
    }
    launches_.push_back(std::move(launch));
  }

  void run(Stream stream) const override {
    if (launches_.empty()) return;
    const CurrentDevice current(device_);
    if (!KernelsOneByOne::wanted() && launch_graph(stream)) return;
    for (const Launch& launch : launches_) {
      CUlaunchConfig config = launch.config;
      config.hStream = static_cast<CUstream>(stream);
      config.attrs = const_cast<CUlaunchAttribute*>(launch.attributes.data());  // only read
      if (launch_driver_ == nullptr ||
          launch_driver_(&config, launch.function, launch.given.addresses(), nullptr) != CUDA_SUCCESS)
        // No context in this thread yet, another one than that of the function, or an error: the runtime can
        // make good the first two, and has a word for the third.
        detail::launch_by_runtime(launch.where, launch.shape, stream, launch.kernel, launch.given.addresses());
    }
  }

 private:
  /// False where the kernels have to be launched themselves.
  bool launch_graph(Stream stream) const {
    const std::unique_lock lock(graph_mutex_, std::try_to_lock);  // a graph takes one thread at a time
    if (!lock.owns_lock() || !graph_fits_) return false;
    // Runs of one graph wait for each other, so those of several streams would: not what streams are for. And who runs
    // a plan once needs no graph.
    if (std::exchange(graph_stream_, stream) != stream) return false;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const auto on = static_cast<cudaStream_t>(stream);
    bool done = cudaStreamIsCapturing(on, &status) == cudaSuccess;
    if (done && status != cudaStreamCaptureStatusNone) return false;  // a caller's graph wants the kernels
    if (done && graph_ == nullptr) graph_fits_ = done = make_graph();
    done = done && cudaGraphLaunch(graph_.get(), on) == cudaSuccess;
    if (!done) (void)cudaGetLastError();  // the kernels' own launch meets the same, or does not
    return done;
  }

  bool make_graph() const {
    struct Relaxed {  // another thread may be capturing: nothing here has to do with its streams
      Relaxed() { (void)cudaThreadExchangeStreamCaptureMode(&mode); }
      ~Relaxed() { (void)cudaThreadExchangeStreamCaptureMode(&mode); }
      cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    } const relaxed;
    cudaGraph_t made{};
    if (cudaGraphCreate(&made, 0) != cudaSuccess) return false;
    const std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> graph(made, &cudaGraphDestroy);
    cudaGraphNode_t before{};
    for (const Launch& launch : launches_) {
      cudaKernelNodeParams node{};
      node.func = const_cast<void*>(launch.kernel);
      node.gridDim = launch.shape.grid;
      node.blockDim = launch.shape.block;
      node.sharedMemBytes = static_cast<unsigned>(launch.shape.shared_bytes);
      node.kernelParams = launch.given.addresses();
      cudaGraphNode_t added{};
      if (cudaGraphAddKernelNode(&added, made, &before, before == nullptr ? 0 : 1, &node) != cudaSuccess) return false;
      if (launch.shape.cluster > 1) {
        cudaLaunchAttributeValue value{};
        value.clusterDim.x = launch.shape.cluster;
        value.clusterDim.y = value.clusterDim.z = 1;
        if (cudaGraphKernelNodeSetAttribute(added, cudaLaunchAttributeClusterDimension, &value) != cudaSuccess)
          return false;
      }
      before = added;
    }
    cudaGraphExec_t executable{};
    if (cudaGraphInstantiate(&executable, made, 0) != cudaSuccess) return false;
    graph_.reset(executable);
    return true;
  }

  int device_;
  PFN_cuLaunchKernelEx_v11060 launch_driver_ = driver_launch();
  std::vector<Launch> launches_;

  mutable std::mutex graph_mutex_;
  mutable bool graph_fits_ = true;  // no dependent launches, and nothing has failed
  mutable Stream graph_stream_ =
      const_cast<CudaLaunches*>(this);  // of the last run; at first a value that no stream has
  mutable std::unique_ptr<CUgraphExec_st, decltype(&cudaGraphExecDestroy)> graph_{nullptr, &cudaGraphExecDestroy};
};

thread_local detail::LaunchNotes* notes = nullptr;

}  // namespace

namespace detail {

LaunchNotes* launch_notes() { return notes; }

void launch_by_runtime(std::string_view where, const LaunchConfig& config, Stream stream, const void* kernel,
                       void** parameters) {
  std::array<cudaLaunchAttribute, 2> attributes{};
  unsigned count = 0;
  if (config.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count].val.clusterDim.x = config.cluster;
    attributes[count].val.clusterDim.y = 1;
    attributes[count].val.clusterDim.z = 1;
    ++count;
  }
  if (config.dependent) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count].val.programmaticStreamSerializationAllowed = 1;
    ++count;
  }
  cudaLaunchConfig_t launch{};
  launch.gridDim = config.grid;
  launch.blockDim = config.block;
  launch.dynamicSmemBytes = static_cast<std::size_t>(config.shared_bytes);
  launch.stream = static_cast<cudaStream_t>(stream);
  launch.attrs = attributes.data();
  launch.numAttrs = count;
  check_cuda(cudaLaunchKernelExC(&launch, kernel, parameters), where);
}

}  // namespace detail

std::shared_ptr<const RepeatedLaunches> RepeatedLaunches::of(Device device, const std::function<void()>& launch) {
  if (device.type != DeviceType::cuda) return nullptr;
  const CurrentDevice current(device.index);
  auto launches = std::make_shared<CudaLaunches>(device);
  struct Noting {
    explicit Noting(detail::LaunchNotes* to) { notes = to; }
    ~Noting() { notes = nullptr; }
  } const noting(launches.get());
  launch();
  return launches;
}

}  // namespace tmaops
