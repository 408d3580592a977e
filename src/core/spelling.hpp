// Suggestions for names that a user misspelled.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tmaops {

/// "Did you mean 'gemm'?": the known name with the fewest edits (insert, drop, replace, swap neighbours) from the word.
/// Empty when even that one differs in more than a third of its letters.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

/// "a, b, c".
std::string joined(std::span<const std::string_view> names, std::string_view separator = ", ");

}  // namespace tmaops
