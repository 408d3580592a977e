#include "core/display.hpp"

#include "core/utf8.hpp"

namespace tmaops {
namespace {

constexpr std::size_t kLongest = 300;  // bytes

// Bytes of the character at the start of text; 0 for a byte that is not UTF-8, and for a control character: U+0000 to
// U+001F, U+007F to U+009F.
std::size_t printable_length(std::string_view text) {
  std::string_view rest = text;
  const auto code = take_code_point(rest);
  if (!code || *code < 0x20 || (*code >= 0x7f && *code <= 0x9f)) return 0;
  return text.size() - rest.size();
}

std::string escaped(std::string_view text, bool keep_lines) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    std::size_t length = keep_lines && text[0] == '\n' ? 1 : printable_length(text);
    if (length != 0) {
      shown += text.substr(0, length);
    } else {
      length = 1;
      const auto byte = static_cast<unsigned char>(text[0]);
      shown += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    text.remove_prefix(length);
  }
  return shown;
}

}  // namespace

std::string display_text(std::string_view text) {
  if (text.size() <= kLongest) return escaped(text, false);
  return escaped(text.substr(0, kLongest / 2), false) + "[... " + std::to_string(text.size() - kLongest) +
         " bytes ...]" + escaped(text.substr(text.size() - kLongest / 2), false);
}

std::string display(const std::filesystem::path& path) { return display_text(path.native()); }

std::string display_lines(std::string_view text) { return escaped(text, true); }

}  // namespace tmaops
