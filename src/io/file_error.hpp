// Text for messages about files: paths as they can be shown, and what the system said.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tmaops::io {

/// A path for messages and JSON: valid UTF-8 as it is, control bytes and bytes that are not UTF-8 as \xNN; a path of
/// more than 300 bytes is shortened in the middle. File names are bytes to the system, so any byte may be in one.
std::string display(const std::filesystem::path& path);
/// The same for any text that came out of a file.
std::string display_text(std::string_view text);

/// What errno means, in English whatever the locale: "No space left on device".
std::string system_text(int error_number);

}  // namespace tmaops::io
