// Why a thread waits.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>

namespace tmaops::executor {

/// What a thread waits for, in words when somebody asks. Small and without memory of its own: threads wait often.
class Reason {
 public:
  Reason() = default;
  template <class Say>
  Reason(const Say& say) : say_([](const void* kept) { return (*static_cast<const Say*>(kept))(); }) {
    static_assert(sizeof(Say) <= kBytes && std::is_trivially_copyable_v<Say>);
    std::memcpy(kept_, &say, sizeof(Say));
  }
  std::string operator()() const { return say_(kept_); }

 private:
  static constexpr std::size_t kBytes = 64;
  std::string (*say_)(const void*) = nullptr;
  alignas(8) unsigned char kept_[kBytes] = {};
};

}  // namespace tmaops::executor
