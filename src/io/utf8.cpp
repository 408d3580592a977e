#include "io/utf8.hpp"

namespace tmaops::io {

char32_t take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  char32_t code = length == 1 ? lead : lead & (0x7fU >> length);
  bool good = length != 0 && lead <= 0xf4 && text.size() >= length;
  for (std::size_t i = 1; good && i < length; ++i) {
    good = (byte(i) & 0xc0) == 0x80;
    code = (code << 6) | (byte(i) & 0x3fU);
  }
  static constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  good = good && code >= kSmallest[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  text.remove_prefix(good ? length : 1);
  return good ? code : kReplacement;
}

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) code = kReplacement;
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) take_code_point(text);
  return count;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t before = text.size();
    // A bad byte takes one byte of the text, U+FFFD itself takes three.
    if (take_code_point(text) == kReplacement && before - text.size() == 1) return false;
  }
  return true;
}

std::string repaired_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string repaired;
  while (!text.empty()) append_utf8(repaired, take_code_point(text));
  return repaired;
}

}  // namespace tmaops::io
