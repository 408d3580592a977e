#include "bench/workloads/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "core/fail.hpp"

namespace tmaops::bench {
namespace {

constexpr std::size_t kCanaryBytes = 64;
constexpr int kCanary = 0xA5;
/// Tensors from here on ask for huge pages, as NumPy's arrays do, which the tensors of the Python peers are.
constexpr std::size_t kHugeBytes = std::size_t{1} << 22;

std::int64_t number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : -1;  // "max" is no number
}

}  // namespace

Buffer::Buffer(DType dtype, const Layout& layout) : dtype_(dtype), layout_(layout) {
  const auto count = static_cast<std::size_t>(layout.size());
  if (count > std::numeric_limits<std::size_t>::max() / 16)
    fail(ErrorCode::size_overflow, "tensor " + layout.shape_text(), {}, {});
  bytes_ = count * size_of(dtype);
  mapped_ = bytes_ + 2 * kCanaryBytes;
  void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    fail(ErrorCode::out_of_memory, "tensor " + layout.shape_text(), "no room for " + std::to_string(bytes_) + " bytes",
         {});
  base_ = static_cast<std::byte*>(memory);
  if (bytes_ >= kHugeBytes) madvise(base_, mapped_, MADV_HUGEPAGE);  // a wish: a kernel without them changes nothing
  std::memset(base_, kCanary, kCanaryBytes);
  std::memset(base_ + kCanaryBytes + bytes_, kCanary, kCanaryBytes);
}

Buffer::~Buffer() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      mapped_(other.mapped_),
      dtype_(other.dtype_),
      layout_(other.layout_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  std::swap(dtype_, other.dtype_);
  std::swap(layout_, other.layout_);
  return *this;
}

TensorView Buffer::view() const { return {base_ + kCanaryBytes, dtype_, layout_}; }

void Buffer::poison() { std::memset(base_ + kCanaryBytes, 0xFF, bytes_); }

bool Buffer::canaries_intact() const {
  const auto intact = [](const std::byte* bytes) {
    return std::all_of(bytes, bytes + kCanaryBytes, [](std::byte b) { return std::to_integer<int>(b) == kCanary; });
  };
  return intact(base_) && intact(base_ + kCanaryBytes + bytes_);
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
