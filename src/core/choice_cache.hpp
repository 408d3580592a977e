// The choices of earlier calls, so that a call like one of them need not ask every variant again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/device_info.hpp"

namespace tmaops {

/// What a choice depends on beside the problem and the device.
struct Wanted {
  std::string_view name{};      // of a variant; empty: any
  const void* table = nullptr;  // of measured choices
};

/// At most kSets * kWays choices. A choice that is not there is made, and takes the place of the oldest of its set.
/// Any thread may use it: one that finds its set in use makes its choice itself, so nobody waits, and a process that
/// was forked meanwhile goes on.
template <class Choice, class Problem>
class ChoiceCache {
 public:
  static constexpr std::size_t kSets = 64;
  static constexpr std::size_t kWays = 4;

  /// The choice that select() makes for these, which equal ones are known by. hash_of(problem) tells most problems
  /// apart.
  template <class Select>
  Choice get(const Problem& problem, const DeviceInfo& device, const Wanted& wanted, const Select& select) {
    Set& set = sets_[hash_of(problem) % kSets];
    {
      const std::unique_lock lock(set.mutex, std::try_to_lock);
      if (!lock.owns_lock()) return select();
      for (const std::optional<Entry>& entry : set.entries)
        if (entry && entry->problem == problem && entry->device == device && entry->name == wanted.name &&
            entry->table == wanted.table)
          return entry->choice;
    }
    Choice choice = select();  // which may throw
    if (const std::unique_lock lock(set.mutex, std::try_to_lock); lock.owns_lock()) {
      set.entries[set.oldest].emplace(Entry{problem, device, std::string(wanted.name), wanted.table, choice});
      set.oldest = (set.oldest + 1) % kWays;
    }
    return choice;
  }

  std::size_t size() const {
    std::size_t count = 0;
    for (const Set& set : sets_) {
      const std::scoped_lock lock(set.mutex);
      for (const auto& entry : set.entries) count += entry.has_value() ? 1 : 0;
    }
    return count;
  }

 private:
  struct Entry {
    Problem problem;
    DeviceInfo device;
    std::string name;
    const void* table;
    Choice choice;
  };
  struct Set {
    mutable std::mutex mutex;
    std::array<std::optional<Entry>, kWays> entries;
    std::size_t oldest = 0;
  };

  std::array<Set, kSets> sets_;
};

/// The same with the one cache of an operator. It is never freed: threads may still be at work when the process ends.
template <class Choice, class Problem, class Select>
Choice remembered(const Problem& problem, const DeviceInfo& device, const Wanted& wanted, const Select& select) {
  static auto& cache = *new ChoiceCache<Choice, Problem>;
  return cache.get(problem, device, wanted, select);
}

/// A hash of some numbers.
template <class... Number>
constexpr std::size_t hash_numbers(Number... numbers) {
  std::uint64_t hash = 0;
  ((hash = (hash ^ static_cast<std::uint64_t>(numbers)) * 0x9E3779B97F4A7C15U, hash ^= hash >> 32), ...);
  return static_cast<std::size_t>(hash);
}

}  // namespace tmaops
