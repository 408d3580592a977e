// What a user spells: lists of names, suggestions for misspelt ones, and numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tmaops {

/// "Did you mean 'gemm'?": the known name with the fewest edits (insert, drop, replace, swap neighbours) from the word.
/// Empty when even that one differs in more than a third of its letters.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

/// The whole text as a number; nothing when it is none. Independent of the locale.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

/// A to Z as a to z, whatever the locale.
std::string lower_case(std::string_view text);

/// The parts of a list with commas, or another separator.
std::vector<std::string> split_list(std::string_view text, char separator = ',');

/// "a, b, c": the items, numbers or text, or what `text` makes of each.
template <class Items, class Text = std::identity>
std::string joined(const Items& items, std::string_view separator = ", ", const Text& text = {}) {
  std::string all;
  for (const auto& item : items) {
    if (!all.empty()) all += separator;
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(std::invoke(text, item))>>)
      all += std::to_string(std::invoke(text, item));
    else
      all += std::invoke(text, item);
  }
  return all;
}

}  // namespace tmaops
