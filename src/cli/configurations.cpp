#include "cli/configurations.hpp"

#include <algorithm>

#include "core/spelling.hpp"
#include "io/file_error.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

/// Beside the sources, or where an installed program has it.
std::filesystem::path shipped_folder() {
  std::error_code status;
  if (std::filesystem::is_directory(TMAOPS_CONFIG_FOLDER, status)) return TMAOPS_CONFIG_FOLDER;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", status);
  return program.parent_path().parent_path() / "share" / "tmaops" / "configs";
}

}  // namespace

std::vector<std::string> shipped_configurations() {
  std::vector<std::string> names;
  std::error_code status;
  for (const auto& entry : std::filesystem::directory_iterator(shipped_folder(), status))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

std::filesystem::path find_configuration(const std::string& name) {
  std::error_code status;
  if (name.find_first_of("/.") != std::string::npos || name == "-" || std::filesystem::exists(name, status))
    return name;
  const std::vector<std::string> shipped = shipped_configurations();
  if (std::ranges::find(shipped, name) != shipped.end()) return shipped_folder() / (name + ".yaml");
  const std::vector<std::string_view> names(shipped.begin(), shipped.end());
  throw Error(ErrorCode::cannot_read,
              {.where = io::display(name),
               .got = "no such file",
               .needed = "a configuration file, or the name of one that comes with tmaops: " + joined(names),
               .mend = did_you_mean(name, names)});
}

}  // namespace tmaops::cli
