// Gives threads parts of a range so that each works on neighbouring indices.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace tmaops {

/// Hands out [0, count) once, to `parts` takers that may run at the same time. Each goes through a range of its own in
/// order. One that is done takes over the later half of what another has left. So a taker's next index mostly lies
/// beside its last one and uses the same memory, which the chunks of parallel_for would not give it.
class Shares {
 public:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    explicit operator bool() const { return begin < end; }
  };

  /// A taker takes one index at a time, or one of `slices` parts of what it has left if that is more. An atomic
  /// operation waits for loads under way, which is too slow for short work at each index.
  Shares(std::int64_t count, int parts, std::int64_t slices = kMostBlocks)
      : count_(count), block_(count / kMostBlocks + 1), slices_(slices), left_(static_cast<std::size_t>(parts)) {
    const std::int64_t blocks = (count + block_ - 1) / block_;
    for (std::int64_t p = 0; p < parts; ++p)
      left_[static_cast<std::size_t>(p)].store(packed(blocks * p / parts, blocks * (p + 1) / parts));
  }

  /// What taker `part` does next; empty when there is nothing left to take.
  Range next(int part) {
    auto& own = left_[static_cast<std::size_t>(part)];
    for (;;) {
      const auto split = [&](const Range& left) {
        return left.begin + std::max<std::int64_t>((left.end - left.begin) / slices_, 1);
      };
      if (const Range some = take(own, split, true)) return {some.begin * block_, std::min(some.end * block_, count_)};
      Range more;
      for (std::size_t i = 1; i < left_.size() && !more; ++i)
        more = take(
            left_[(static_cast<std::size_t>(part) + i) % left_.size()],
            [](const Range& left) { return left.begin + (left.end - left.begin) / 2; }, false);
      if (!more) return {};
      own.store(packed(more.begin, more.end));  // it was empty: nobody else changes it
    }
  }

 private:
  static constexpr std::int64_t kMostBlocks = (1LL << 31) - 1;
  static std::uint64_t packed(std::int64_t begin, std::int64_t end) {
    return static_cast<std::uint64_t>(begin) << 32U | static_cast<std::uint64_t>(end);
  }

  /// Splits what is left at split(left) and takes the former or the latter part; empty when nothing is left.
  template <class Split>
  static Range take(std::atomic<std::uint64_t>& share, const Split& split, bool former) {
    std::uint64_t seen = share.load();
    for (;;) {
      const Range left{static_cast<std::int64_t>(seen >> 32U), static_cast<std::int64_t>(seen & 0xffffffffU)};
      if (!left) return {};
      const std::int64_t at = split(left);
      const std::uint64_t rest = former ? packed(at, left.end) : packed(left.begin, at);
      if (share.compare_exchange_weak(seen, rest)) return former ? Range{left.begin, at} : Range{at, left.end};
    }
  }

  std::int64_t count_;
  std::int64_t block_;  // indices that are taken together: more than one only of more than 2^31
  std::int64_t slices_;
  std::vector<std::atomic<std::uint64_t>> left_;
};

}  // namespace tmaops
