// Drawing the parts of a random problem.
#pragma once

#include <random>
#include <type_traits>

namespace tmaops::test {

/// pick(1, 2, 2): one of the values, here 2 twice as often as 1. The generator must outlive it.
inline auto picker(std::mt19937_64& random) {
  return [&random](auto... choices) {
    const std::common_type_t<decltype(choices)...> all[] = {choices...};
    return all[random() % sizeof...(choices)];
  };
}

/// chance(3): true one time in three. The generator must outlive it.
inline auto chances(std::mt19937_64& random) {
  return [&random](unsigned one_in) { return random() % one_in == 0; };
}

}  // namespace tmaops::test
