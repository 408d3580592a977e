// Text for messages about files: paths, text from files, and errors of the system.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tmaops::io {

/// A path for messages and JSON. Valid UTF-8 stays, control bytes and bytes that are not UTF-8 become \xNN. A path of
/// more than 300 bytes is shortened in the middle. File names may hold any byte.
std::string display(const std::filesystem::path& path);
/// The same for any text that came out of a file.
std::string display_text(std::string_view text);

/// What errno means, in English whatever the locale: "No space left on device".
std::string system_text(int error_number);

}  // namespace tmaops::io
