// UTF-8: decoding, encoding and repair (RFC 3629: no overlong forms, no surrogates).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tmaops {

inline constexpr char32_t kReplacement = U'\ufffd';  // stands for bytes that are not UTF-8

/// Decodes the code point at the start of `text`, which is not empty, and removes it from `text`. Of a byte that starts
/// none nothing is decoded, and that byte is removed.
std::optional<char32_t> take_code_point(std::string_view& text);
/// Appends a code point; kReplacement for a surrogate or a number beyond Unicode.
void append_utf8(std::string& text, char32_t code);

bool is_utf8(std::string_view text);
/// The text with kReplacement for each byte that is not UTF-8.
std::string repaired_utf8(std::string_view text);

}  // namespace tmaops
