// Makes text from users, files and systems safe to print in messages.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tmaops {

/// Valid UTF-8 as it is; control characters (which a terminal might obey) and bytes that are not UTF-8 as \xNN. A text
/// of more than 300 bytes is shortened in the middle.
std::string display_text(std::string_view text);
/// The same for a path. File names may hold any byte.
std::string display(const std::filesystem::path& path);

/// The same for whole messages of several lines: nothing is shortened, and line ends stay.
std::string display_lines(std::string_view text);

}  // namespace tmaops
