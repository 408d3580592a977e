// Names of enumerators, for values that may be none of them.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace tmaops {

/// The name of an enumerator that counts from 0; "?" for a value beyond the names, which a caller in another language
/// can pass.
template <class Names, class Enum>
constexpr std::string_view enum_name(const Names& names, Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < std::size(names) ? names[i] : "?";
}

}  // namespace tmaops
