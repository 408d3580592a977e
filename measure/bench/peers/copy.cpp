// The ceiling of everything that only moves data: a copy.
#include <algorithm>
#include <cstring>
#include <limits>

#include "bench/peers/peers.hpp"
#include "bench/workloads/buffer.hpp"
#include "bench/workloads/random.hpp"
#include "core/parallel.hpp"

namespace tmaops::bench {
namespace {

/// Chunks that one thread copies at a time: enough for memcpy's own fast path, few enough to share out evenly.
constexpr std::int64_t kChunksAtOnce = std::int64_t{1} << 14;

void copy_on_threads(void* to, const void* from, std::int64_t chunks, Stream) {
  parallel_for(chunks, std::min(kChunksAtOnce, chunks / 2 + 1), [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin * 16, static_cast<const std::byte*>(from) + begin * 16,
                static_cast<std::size_t>(end - begin) * 16);
  });
}
constexpr CopyWay kWaysOnCpu[] = {copy_on_threads};

/// Its calls() are those of the first way, a kernel: cudaMemcpyAsync launches none that could be counted.
class Copy : public InProcess {
 public:
  Copy(const Workload& workload, Timer& timer) : InProcess("copy", Kind::ceiling, "", timer) {
    const Device device = workload.info().device;
    // Each byte of the floor is read once or written once; a copy of half as many bytes does both.
    const std::int64_t chunks = static_cast<std::int64_t>(workload.info().floor_bytes / 2 / 16) + 1;
    const Layout layout = Layout::contiguous({chunks * 4});
    random_ = Buffer(DType::f32, layout);
    fill_normal(random_.view(), 1);
    const auto copies = device.type == DeviceType::cuda ? ways_to_copy_on_gpu() : std::span<const CopyWay>(kWaysOnCpu);
    ways_.resize(copies.size());
    for (int set = 0; set < workload.sets(); ++set) {
      const Buffer& from = from_.emplace_back(DType::f32, layout, device);
      const Buffer& to = to_.emplace_back(DType::f32, layout, device);
      from.upload(random_.view().data);
      to.poison();
      for (std::size_t way = 0; way < copies.size(); ++way)
        ways_[way].push_back([copy = copies[way], chunks, to = to.view().data, from = from.view().data](Stream stream) {
          copy(to, from, chunks, stream);
        });
    }
    calls_ = ways_.front();
  }

  Comparison verify(Workload&, int set, double) override {
    const auto i = static_cast<std::size_t>(set);
    const Buffer got(DType::f32, random_.view());
    bool same = true;
    for (const std::vector<Call>& way : ways_) {
      to_.at(i).poison();
      timer_.run(way.at(i));
      to_[i].download(got.view().data);
      same = same && std::memcmp(got.view().data, random_.view().data, got.bytes()) == 0 && to_[i].canaries_intact();
    }
    return {.ok = same, .problem = same ? "" : "the copy differs from its source"};
  }
  double seconds(std::int64_t first, std::int64_t count) override {
    double least = std::numeric_limits<double>::infinity();
    for (const std::vector<Call>& way : ways_) least = std::min(least, timer_.seconds(way, first, count));
    return least;
  }

 private:
  Buffer random_;
  std::vector<Buffer> from_;
  std::vector<Buffer> to_;
  std::vector<std::vector<Call>> ways_;  // a call on each set
};

}  // namespace

std::unique_ptr<Implementation> make_copy(const Workload& workload, Timer& timer) {
  return std::make_unique<Copy>(workload, timer);
}

}  // namespace tmaops::bench
