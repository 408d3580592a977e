#include "io/file_error.hpp"

#include <system_error>

#include "core/display.hpp"

namespace tmaops::io {
std::string display_text(std::string_view text) { return tmaops::display_text(text); }

std::string display(const std::filesystem::path& path) { return display_text(path.native()); }

std::string system_text(int error_number) { return std::generic_category().message(error_number); }

}  // namespace tmaops::io
