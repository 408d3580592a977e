#include "bench/workloads/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "bench/workloads/gpu_bytes.hpp"
#include "core/fail.hpp"
#include "core/parallel.hpp"

namespace tmaops::bench {
namespace {

constexpr int kCanary = 0xA5;
/// Tensors from here on ask for huge pages, as NumPy's arrays do, which the tensors of the Python peers are.
constexpr std::size_t kHugeBytes = std::size_t{1} << 22;

std::int64_t number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : -1;  // "max" is no number
}

std::size_t canary_bytes(bool on_gpu) { return on_gpu ? 256 : 64; }

std::byte* map_memory(std::size_t bytes, const std::string& what) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail(ErrorCode::out_of_memory, what, "no room for " + std::to_string(bytes) + " bytes", {});
  if (bytes >= kHugeBytes) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: a kernel without them changes nothing
  return static_cast<std::byte*>(memory);
}

void fill_bytes(bool on_gpu, std::byte* memory, int byte, std::size_t bytes) {
  if (on_gpu)
    fill_on_gpu(memory, byte, bytes);
  else
    std::memset(memory, byte, bytes);
}

void read_bytes(bool on_gpu, void* to, const void* from, std::size_t bytes) {
  if (on_gpu)
    copy_from_gpu(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

}  // namespace

Buffer::Buffer(DType dtype, const Layout& layout, Device device) {
  const std::string what = "tensor " + layout.shape_text();
  const auto count = static_cast<std::size_t>(layout.size());
  if (count > std::numeric_limits<std::size_t>::max() / 16) fail(ErrorCode::size_overflow, what, {}, {});
  bytes_ = count * size_of(dtype);
  const bool on_gpu = device.type == DeviceType::cuda;
  const std::size_t canary = canary_bytes(on_gpu);
  const std::size_t all = bytes_ + 2 * canary;
  if (on_gpu)
    base_ = {allocate_on_gpu(all, device, what), free_on_gpu};
  else
    base_ = {map_memory(all, what), [all](std::byte* memory) { munmap(memory, all); }};
  view_ = TensorView(base_.get() + canary, dtype, layout, device);
  fill_bytes(on_gpu, base_.get(), kCanary, canary);
  fill_bytes(on_gpu, base_.get() + canary + bytes_, kCanary, canary);
}

void Buffer::upload(const void* from) const {
  if (on_gpu()) return copy_to_gpu(view_.data, from, bytes_);
  parallel_for(static_cast<std::int64_t>(bytes_), 1 << 20, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<std::byte*>(view_.data) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<std::size_t>(end - begin));
  });
}

void Buffer::download(void* to) const { read_bytes(on_gpu(), to, view_.data, bytes_); }

void Buffer::poison() const { fill_bytes(on_gpu(), static_cast<std::byte*>(view_.data), 0xFF, bytes_); }

bool Buffer::canaries_intact() const {
  const std::size_t canary = canary_bytes(on_gpu());
  std::vector<unsigned char> bytes(2 * canary);
  read_bytes(on_gpu(), bytes.data(), base_.get(), canary);
  read_bytes(on_gpu(), bytes.data() + canary, base_.get() + canary + bytes_, canary);
  return std::ranges::all_of(bytes, [](unsigned char byte) { return byte == kCanary; });
}

std::int64_t available_memory() {
  std::int64_t available = 0;
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::string unit;
  for (std::int64_t kib = 0; file >> key >> kib; std::getline(file, unit))
    if (key == "MemAvailable:") available = kib * 1024;
  const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const std::int64_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit >= 0 && used >= 0) available = std::min(available, std::max<std::int64_t>(0, limit - used));
  return available;
}

}  // namespace tmaops::bench
