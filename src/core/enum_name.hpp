// Names of enumerators, for values that may be none of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace tmaops {

/// The name of an enumerator that counts from 0; "?" for a value beyond the names, which a caller in another language
/// can pass.
template <class Names, class Enum>
constexpr std::string_view enum_name(const Names& names, Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < std::size(names) ? names[i] : "?";
}

/// The enumerator of that name; nothing when no one has it.
template <class Enum, class Names>
constexpr std::optional<Enum> parse_enum(const Names& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == std::end(names) ? std::nullopt : std::optional(static_cast<Enum>(found - std::begin(names)));
}

}  // namespace tmaops
