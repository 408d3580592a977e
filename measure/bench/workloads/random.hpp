// Seeded random data: the same for a seed on any machine with any number of threads.
#pragma once

#include <cstdint>

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// splitmix64 (Steele, Lea, Flood 2014): small, fast, and any 64-bit seed is a good one.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// A generator for one part of the data: parts do not depend on each other's length.
  Random(std::uint64_t seed, std::uint64_t part) : state_(seed ^ (part * 0x9e3779b97f4a7c15ULL)) { state_ = next(); }

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// In [0, 1), 53 random bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Standard normal (Box and Muller 1958).
  double normal();
  /// In [0, count).
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(uniform() * static_cast<double>(count)); }

 private:
  std::uint64_t state_;
  double spare_ = 0;
  bool has_spare_ = false;
};

/// Fills a dense tensor of floating-point elements with N(0, 1).
void fill_normal(const TensorView& tensor, std::uint64_t seed);

}  // namespace tmaops::bench
