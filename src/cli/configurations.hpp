// The configurations that come with tmaops, known by name: `tmaops bench quick`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tmaops::cli {

/// Names of the configurations that come with tmaops, without folder and extension.
std::vector<std::string> shipped_configurations();

/// The file that `name` stands for: itself, or, for a plain word that is no file here, the configuration of that name
/// that comes with tmaops. Throws Error cannot_read where there is neither.
std::filesystem::path find_configuration(const std::string& name);

}  // namespace tmaops::cli
