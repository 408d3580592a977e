// Who launches a kernel.
#pragma once

#include <climits>
#include <string_view>

namespace tmaops {

/// What an error of a launch names as its place, and the most dynamic shared memory a block may ask for. Each cuda
/// variant has its own, `kSite` in its namespace, made from its line in variants.def ("<op>: <variant>", smem(...)).
struct LaunchSite {
  std::string_view where;
  int smem = INT_MAX;  // bytes
  /// A kernel that belongs to no variant has a name alone. NOLINTNEXTLINE(google-explicit-constructor)
  constexpr LaunchSite(const char* place, int most_shared_bytes = INT_MAX) : where(place), smem(most_shared_bytes) {}
};

}  // namespace tmaops
