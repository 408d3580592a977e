#include "core/display.hpp"

#include <system_error>

namespace tmaops {
namespace {

constexpr std::size_t kLongest = 300;  // bytes

// Length of the UTF-8 sequence at the start of text (RFC 3629: no overlong forms, no surrogates); 0 when it is not one,
// or a control character: U+0000 to U+001F, U+007F to U+009F.
std::size_t printable_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead < 0x20 || lead == 0x7f ? 0 : 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf0 && byte(1) < 0x90) ||
      (lead == 0xf4 && byte(1) > 0x8f))
    return 0;
  return lead == 0xc2 && byte(1) < 0xa0 ? 0 : length;
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

std::string system_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace tmaops
