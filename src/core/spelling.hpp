// "Did you mean ...?" for names a user typed.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tmaops {

/// The known name with the fewest edits (insert, drop, replace, swap neighbours) from the word, or nothing when even
/// that one differs in more than a third of its letters.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> known);

/// "a, b, c".
std::string joined(std::span<const std::string_view> names, std::string_view separator = ", ");

}  // namespace tmaops
