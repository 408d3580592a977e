// The kernels of the faults. A load brings the tile of 64 rows of 64 16-bit numbers at (8, 3) of a tensor of 128 x 256
// whose elements are 1, 2, 3 and so on. A store writes such a tile.

#include "core/cuda_launch.hpp"
#include "core/device_info.hpp"
#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/shared_memory.cuh"
#include "device/tensor_copy.cuh"
#include "device/warp.cuh"
#include "probe/faults.hpp"
#include "tmaops/error.hpp"

static_assert(TMAOPS_WATCHDOG == 1, "the build compiles this file with the watchdog");

namespace tmaops::probe {
namespace {

constexpr int kThreads = 128;
constexpr int kWidth = 128, kHeight = 256;
constexpr int kColumns = 64, kRows = 64, kElements = kColumns * kRows;
constexpr int kX = 8, kY = 3;
constexpr std::uint32_t kBytes = kElements * 2;
constexpr std::uint16_t kPoison = 0xAAAA;

enum class FaultId {
#define TMAOPS_FAULT(name, expected, text) name,
#include "probe/faults.def"
#undef TMAOPS_FAULT
};

struct Shared {
  alignas(1024) std::uint16_t tile[2 * kElements];
  device::Barrier barrier;
};

/// Waits ten microseconds, in which every load arrives.
__device__ void linger() {
  const std::int64_t start = device::cycles();
  while (device::cycles() - start < 20'000) {
  }
}

/// Waits without the watchdog first, because reading its clock takes longer than a load.
__device__ void wait_promptly(device::Barrier& barrier, std::uint32_t parity, const device::WaitSite& site) {
  for (int attempt = 0; attempt < 1000; ++attempt)
    if (device::test_wait(barrier, parity)) return;
  device::wait(barrier, parity, site);
}

/// What the issuing thread does, with its fault.
template <FaultId fault>
__device__ void issue(Shared& shared, const void* map, int row) {
  const std::uint32_t expected = fault == FaultId::expect_too_much     ? kBytes + 16
                                 : fault == FaultId::expect_too_little ? kBytes / 2
                                                                       : kBytes;
  if constexpr (fault == FaultId::expect_missing)
    device::arrive(shared.barrier);
  else
    device::arrive_expect_bytes(shared.barrier, expected);
  const bool reversed = fault == FaultId::coordinates_outermost_first;
  const std::int32_t x = fault == FaultId::coordinate_misaligned ? kX + 3 : kX;
  const std::int32_t at[2] = {reversed ? (row + 7) / 8 * 8 : x, reversed ? x : row};
  device::tensor_load(shared.tile + (fault == FaultId::destination_misaligned ? 32 : 0), map, at, shared.barrier);
}

template <FaultId fault>
__global__ void load_kernel(const __grid_constant__ tma::TensorMap map, std::uint16_t* to) {
  auto& shared = device::block_shared<Shared>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 2 * kElements; i += kThreads) shared.tile[i] = kPoison;
  if (thread == 0) device::init_barrier(shared.barrier, fault == FaultId::arrival_missing ? 2 : 1);
  if constexpr (fault != FaultId::init_fence_missing) {
    if (thread == 0) device::fence_barrier_init();
    device::fence_async_shared();
  }
  __syncthreads();
  if constexpr (fault == FaultId::parity_not_flipped) {  // loads another tile first
    if (thread == 0) issue<fault>(shared, &map, kY + kRows);
    wait_promptly(shared.barrier, 0, {"the first tile"});
    __syncthreads();
  }
  if (thread == 0) issue<fault>(shared, &map, kY);
  wait_promptly(shared.barrier, fault == FaultId::parity_early ? 1 : 0, {"the tile"});
  if constexpr (fault == FaultId::parity_flipped_twice) device::wait(shared.barrier, 1, {"the tile after the last"});
  if constexpr (fault == FaultId::release_missing) {  // the reading threads are late
    if (thread == 0) issue<fault>(shared, &map, kY + kRows);
    linger();
  }
  // Reads from the end, which arrives last.
  for (int i = kElements - 1 - thread; i >= 0; i -= kThreads) to[i] = shared.tile[i];
  if constexpr (fault == FaultId::release_missing) device::wait(shared.barrier, 1, {"the second tile"});
  // The load must end before another block gets this shared memory.
  __syncthreads();
  linger();
}

/// Every block stores its own rows of a tensor of 64 columns.
template <FaultId fault>
__global__ void store_kernel(const __grid_constant__ tma::TensorMap map) {
  auto& tile = device::block_shared<std::uint16_t[kElements], 1024>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kElements; i += kThreads) tile[i] = kPoison;
  device::fence_async_shared();
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x) * kElements;
  for (int i = thread; i < kElements; i += kThreads) tile[i] = static_cast<std::uint16_t>(first + i + 1);
  if constexpr (fault != FaultId::store_fence_missing) device::fence_async_shared();
  __syncthreads();
  if (thread == 0) {
    device::tensor_store(&map, {0, static_cast<int>(blockIdx.x) * kRows}, tile);
    device::commit_stores();
    if constexpr (fault != FaultId::store_not_waited_for) device::wait_stores_read();
  }
  if constexpr (fault == FaultId::store_not_waited_for) {
    __syncthreads();
    for (int i = kElements - 1 - thread; i >= 0; i -= kThreads) tile[i] = kPoison;
  }
}

__device__ void load_through(const void* map, std::uint16_t* to) {
  auto& shared = device::block_shared<Shared>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kElements; i += kThreads) shared.tile[i] = kPoison;
  if (thread == 0) {
    device::init_barrier(shared.barrier, 1);
    device::fence_barrier_init();
  }
  device::fence_async_shared();
  __syncthreads();
  if (thread == 0) issue<FaultId::none>(shared, map, kY);
  device::wait(shared.barrier, 0, {"the tile"});
  for (int i = thread; i < kElements; i += kThreads) to[i] = shared.tile[i];
}
__global__ void copied_map_kernel(tma::TensorMap map, std::uint16_t* to) { load_through(&map, to); }
__global__ void global_map_kernel(const tma::TensorMap* map, std::uint16_t* to) { load_through(map, to); }

/// Numbers of 16 bits in device memory.
class Numbers {
 public:
  explicit Numbers(std::size_t count) : count_(count) {
    check_cuda(cudaMalloc(&data_, count * 2), "probe");
    check_cuda(cudaMemset(data_, 0xAA, count * 2), "probe");
  }
  ~Numbers() { cudaFree(data_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  /// first, first + 1, ...
  void count_from(int first) {
    std::vector<std::uint16_t> values(count_);
    for (std::size_t i = 0; i < count_; ++i) values[i] = static_cast<std::uint16_t>(first + static_cast<int>(i));
    check_cuda(cudaMemcpy(data_, values.data(), count_ * 2, cudaMemcpyHostToDevice), "probe");
  }
  std::vector<std::uint16_t> values() const {
    std::vector<std::uint16_t> values(count_);
    check_cuda(cudaMemcpy(values.data(), data_, count_ * 2, cudaMemcpyDeviceToHost), "probe");
    return values;
  }
  std::uint16_t* get() const { return data_; }

 private:
  std::size_t count_;
  std::uint16_t* data_ = nullptr;
};

tma::TensorMap map_of(const Numbers& numbers, std::int64_t width, std::int64_t height) {
  tma::TensorMapSpec spec = tma::tiled_spec(tma::ElementType::u16, {width, height}, {kColumns, kRows});
  spec.address = reinterpret_cast<std::uintptr_t>(numbers.get());
  return tma::encode(spec);
}

/// Element i of the tile at (kX, kY) of a tensor whose elements are first, first + 1, ...
std::uint16_t tile_value(std::size_t i, int first) {
  const int index = static_cast<int>(i);
  return static_cast<std::uint16_t>(first + (kY + index / kColumns) * kWidth + kX + index % kColumns);
}

struct Tally {
  std::size_t wrong = 0, poison = 0, all = 0;
  void add(std::uint16_t got, std::uint16_t want) {
    ++all;
    wrong += got != want ? 1 : 0;
    poison += got != want && got == kPoison ? 1 : 0;
  }
  std::string text() const {
    const std::string of = " of " + std::to_string(all) + " elements";
    if (wrong == 0) return "right: all" + of;
    return "wrong: " + std::to_string(wrong) + of +
           (poison > 0 ? ", " + std::to_string(poison) + " not yet written" : "");
  }
};

/// Empty when the kernel ended well.
std::string launch_error() {
  const cudaError_t status = cudaDeviceSynchronize();
  return status == cudaSuccess ? "" : std::string("error ") + cudaGetErrorName(status);
}

std::string judge_tile(const Numbers& out) {
  Tally tally;
  const auto got = out.values();
  for (std::size_t i = 0; i < kElements; ++i) tally.add(got[i], tile_value(i, 1));
  return tally.text();
}

template <void (*kernel)(tma::TensorMap, std::uint16_t*)>
std::string run_load() {
  Numbers tensor(kWidth * kHeight), out(kElements);
  tensor.count_from(1);
  launch_kernel<kernel>("probe", {.grid = 1, .block = kThreads}, nullptr, map_of(tensor, kWidth, kHeight), out.get());
  const std::string error = launch_error();
  return error.empty() ? judge_tile(out) : error;
}

template <FaultId fault>
std::string run_store() {
  const auto blocks =
      static_cast<unsigned>(16 * cuda_device_info({DeviceType::cuda, 0}).multiprocessors);  // a race shows
  Numbers out(std::size_t{blocks} * kElements);
  launch_kernel<store_kernel<fault>>("probe", {.grid = blocks, .block = kThreads}, nullptr,
                                     map_of(out, kColumns, std::int64_t{blocks} * kRows));
  if (const std::string error = launch_error(); !error.empty()) return error;
  Tally tally;
  const auto got = out.values();
  for (std::size_t i = 0; i < got.size(); ++i) tally.add(got[i], static_cast<std::uint16_t>(i + 1));
  return tally.text();
}

/// A tile of 64 columns goes to a tensor of 60, whose rows lie 64 columns apart. Nothing may be written between them.
std::string run_clipped_store() {
  constexpr int width = kColumns - 4;
  Numbers out(kElements);
  tma::TensorMapSpec spec = tma::tiled_spec(tma::ElementType::u16, {width, kRows}, {kColumns, kRows});
  spec.strides = {kColumns * 2};
  spec.address = reinterpret_cast<std::uintptr_t>(out.get());
  launch_kernel<store_kernel<FaultId::store_inner_16>>("probe", {.grid = 1, .block = kThreads}, nullptr,
                                                       tma::encode(spec));
  if (const std::string error = launch_error(); !error.empty()) return error;
  Tally tally;
  const auto got = out.values();
  for (std::size_t i = 0; i < kElements; ++i)
    tally.add(got[i], i % kColumns < width ? static_cast<std::uint16_t>(i + 1) : kPoison);
  return tally.text();
}

/// The map at one address describes two tensors in turn.
std::string run_rewritten_map() {
  constexpr int rounds = 200;
  Numbers first(kWidth * kHeight), second(kWidth * kHeight), out(kElements), memory(sizeof(tma::TensorMap) / 2);
  first.count_from(1);
  second.count_from(30001);
  const tma::TensorMap maps[] = {map_of(first, kWidth, kHeight), map_of(second, kWidth, kHeight)};
  Tally tally;
  for (int round = 0; round < rounds; ++round) {
    check_cuda(cudaMemcpyAsync(memory.get(), &maps[round % 2], sizeof(tma::TensorMap), cudaMemcpyHostToDevice),
               "probe");
    launch_kernel<global_map_kernel>("probe", {.grid = 1, .block = kThreads}, nullptr,
                                     reinterpret_cast<const tma::TensorMap*>(memory.get()), out.get());
    if (const std::string error = launch_error(); !error.empty()) return error;
    const auto got = out.values();
    for (std::size_t i = 0; i < kElements; ++i) tally.add(got[i], tile_value(i, round % 2 == 0 ? 1 : 30001));
  }
  return tally.text();
}

template <FaultId fault>
std::string run() {
  if constexpr (fault == FaultId::store_fence_missing || fault == FaultId::store_not_waited_for)
    return run_store<fault>();
  else if constexpr (fault == FaultId::store_inner_16)
    return run_clipped_store();
  else if constexpr (fault == FaultId::map_not_grid_constant)
    return run_load<copied_map_kernel>();
  else if constexpr (fault == FaultId::map_rewritten)
    return run_rewritten_map();
  else
    return run_load<load_kernel<fault>>();
}

}  // namespace

std::string run_fault(std::string_view name) {
#define TMAOPS_FAULT(fault, expected, text) \
  if (name == #fault) {                     \
    tma::load_driver(0);                    \
    return run<FaultId::fault>();           \
  }
#include "probe/faults.def"
#undef TMAOPS_FAULT
  throw Error(ErrorCode::usage,
              {.where = "probe-fault", .got = "'" + std::string(name) + "'", .needed = "a fault of faults.def"});
}

}  // namespace tmaops::probe
