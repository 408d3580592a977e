// A kernel that does one tile load and copies the shared memory around it back.

#include "core/cuda_launch.hpp"
#include "device/fence.cuh"
#include "device/shared_memory.cuh"
#include "device/tensor_copy.cuh"
#include "probe/loads.hpp"
#include "tma/tile.hpp"

namespace tmaops::probe {
namespace {

constexpr int kLoadThreads = 256;
constexpr int kWindowChunks = static_cast<int>(kLoadWindowBytes / 16);

struct Window {
  uint4 chunk[kWindowChunks];
};
struct Coordinates {
  std::int32_t at[5];
};

template <int rank>
__global__ void __launch_bounds__(kLoadThreads)
    window_kernel(const __grid_constant__ tma::TensorMap map, const Coordinates coordinates, std::uint32_t destination,
                  std::uint32_t bytes, uint4* to) {
  auto& barrier = device::block_shared<device::Barrier>();
  auto& window = device::dynamic_shared<Window>();
  constexpr unsigned poison = 0x01010101U * std::to_integer<unsigned>(kLoadPoison);
  for (int i = static_cast<int>(threadIdx.x); i < kWindowChunks; i += kLoadThreads)
    window.chunk[i] = make_uint4(poison, poison, poison, poison);
  if (threadIdx.x == 0) {
    device::init_barrier(barrier, 1);
    device::fence_barrier_init();
  }
  device::fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    std::int32_t at[rank];
    for (int d = 0; d < rank; ++d) at[d] = coordinates.at[d];
    device::arrive_expect_bytes(barrier, bytes);
    device::tensor_load(reinterpret_cast<unsigned char*>(&window) + destination, &map, at, barrier);
  }
  device::wait(barrier, 0, {"a random load"});
  for (int i = static_cast<int>(threadIdx.x); i < kWindowChunks; i += kLoadThreads) to[i] = window.chunk[i];
}

/// Device memory that is freed with its owner.
class Memory {
 public:
  explicit Memory(std::size_t bytes) { check_cuda(cudaMalloc(&data_, bytes), "probe"); }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

class GpuLoader : public Loader {
 public:
  std::uint64_t memory(const std::vector<std::byte>& memory) override {
    check_cuda(cudaMemcpy(tensor_.get(), memory.data(), memory.size(), cudaMemcpyHostToDevice), "probe: upload");
    return reinterpret_cast<std::uintptr_t>(tensor_.get());
  }
  std::vector<std::byte> window(const tma::TensorMapSpec& spec, const tma::TileLoad& load) override {
    const tma::TensorMap map = tma::encode(spec);
    const auto bytes = static_cast<std::uint32_t>(tma::transaction_bytes(spec));
    Coordinates at{};
    for (std::size_t d = 0; d < load.coordinates.size(); ++d) at.at[d] = static_cast<int>(load.coordinates[d]);
    const LaunchShape config{.grid = 1, .block = kLoadThreads, .shared_bytes = sizeof(Window)};
    auto* to = static_cast<uint4*>(window_.get());
    const auto launch = [&]<int rank>() {
      launch_kernel<window_kernel<rank>>("probe: a load", config, nullptr, map, at, load.shared_address, bytes, to);
    };
    switch (spec.rank()) {
      case 1:
        launch.operator()<1>();
        break;
      case 2:
        launch.operator()<2>();
        break;
      case 3:
        launch.operator()<3>();
        break;
      case 4:
        launch.operator()<4>();
        break;
      default:
        launch.operator()<5>();
    }
    std::vector<std::byte> window(sizeof(Window));
    check_cuda(cudaMemcpy(window.data(), to, sizeof(Window), cudaMemcpyDeviceToHost), "probe: " + spec.text());
    return window;
  }

 private:
  Memory tensor_{static_cast<std::size_t>(kLoadMemoryBytes)};
  Memory window_{sizeof(Window)};
};

}  // namespace

std::unique_ptr<Loader> make_gpu_loader() {
  tma::load_driver(0);
  return std::make_unique<GpuLoader>();
}

}  // namespace tmaops::probe
