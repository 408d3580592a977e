// The size of the processor's caches.
#pragma once

#include <cstdint>

namespace tmaops::detail {

/// Bytes of the largest cache that the first processor reads through; 0 where the system does not tell. (Not sysconf:
/// glibc 2.36 multiplies the last level by the number of its threads on AMD's processors.)
std::int64_t last_level_cache_bytes();

/// While it lives, last_level_cache_bytes() answers something else: for tests of what depends on it.
class PretendedCache {
 public:
  explicit PretendedCache(std::int64_t bytes);
  ~PretendedCache();
  PretendedCache(const PretendedCache&) = delete;
  PretendedCache& operator=(const PretendedCache&) = delete;
};

}  // namespace tmaops::detail
