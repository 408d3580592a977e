// The ceiling of everything that only moves data: a copy on all threads.
#include <algorithm>
#include <cstring>

#include "bench/peers/peers.hpp"
#include "bench/workloads/buffer.hpp"
#include "bench/workloads/random.hpp"
#include "core/parallel.hpp"

namespace tmaops::bench {
namespace {

/// Bytes one thread copies at a time: large enough for memcpy's own fast path, small enough to share out evenly.
constexpr std::int64_t kChunk = std::int64_t{1} << 18;

class Copy : public InProcess {
 public:
  Copy(const Workload& workload, Timer& timer) : InProcess("copy", Kind::ceiling, "", timer) {
    // Each byte of the floor is read once or written once; a copy of half as many bytes does both.
    const auto floats = static_cast<std::int64_t>(workload.info().floor_bytes / 2 / 4) + 1;
    bytes_ = floats * 4;
    for (int set = 0; set < workload.sets(); ++set) {
      from_.emplace_back(DType::f32, Layout::contiguous({floats}));
      to_.emplace_back(DType::f32, Layout::contiguous({floats}));
      fill_normal(from_.back().view(), static_cast<std::uint64_t>(set));
      to_.back().poison();
      calls_.push_back([bytes = bytes_, source = static_cast<const std::byte*>(from_.back().view().data),
                        target = static_cast<std::byte*>(to_.back().view().data)](Stream) {
        parallel_for(bytes, std::min(kChunk, bytes / 2 + 1), [&](std::int64_t begin, std::int64_t end) {
          std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
        });
      });
    }
  }

  Comparison verify(Workload&, int set, double) override {
    const auto i = static_cast<std::size_t>(set);
    to_.at(i).poison();
    timer_.run(calls_.at(i));
    const bool same = std::memcmp(from_[i].view().data, to_[i].view().data, static_cast<std::size_t>(bytes_)) == 0 &&
                      to_[i].canaries_intact();
    return {.ok = same, .problem = same ? "" : "the copy differs from its source"};
  }

 private:
  std::int64_t bytes_ = 0;
  std::vector<Buffer> from_;
  std::vector<Buffer> to_;
};

}  // namespace

std::unique_ptr<Implementation> make_copy(const Workload& workload, Timer& timer) {
  return std::make_unique<Copy>(workload, timer);
}

}  // namespace tmaops::bench
