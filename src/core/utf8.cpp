#include "core/utf8.hpp"

namespace tmaops {

std::optional<char32_t> take_code_point(std::string_view& text) {
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
  return good ? std::optional(code) : std::nullopt;
}

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) code = kReplacement;
  static constexpr char32_t kLeads[] = {0, 0xc0, 0xe0, 0xf0};
  const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes behind the first
  put(kLeads[more] | (code >> (6 * more)));
  for (int i = more; i-- > 0;) put(0x80 | ((code >> (6 * i)) & 0x3f));
}

bool is_utf8(std::string_view text) {
  while (!text.empty())
    if (!take_code_point(text)) return false;
  return true;
}

std::string repaired_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string repaired;
  while (!text.empty()) append_utf8(repaired, take_code_point(text).value_or(kReplacement));
  return repaired;
}

}  // namespace tmaops
