// The file format of configurations: options of a run, and the problems to run.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.hpp"
#include "config/yaml.hpp"

namespace tmaops::io {

/// The top-level keys that a configuration may have: options, those of them that take a list, and operators.
struct KnownKeys {
  std::span<const std::string_view> options;
  std::span<const std::string_view> lists;
  std::span<const std::string_view> operators;
};

struct Configuration {
  Settings options;                // as they were written
  std::vector<Settings> problems;  // of the operators' sections, their lists expanded to products
};

/// Throws Error cannot_read, and yaml_syntax to bad_value.
Configuration read_configuration(const std::filesystem::path& path, const KnownKeys& known);
/// The same from a parsed document.
Configuration parse_configuration(const YamlNode& document, const KnownKeys& known);

/// Problems of the option `-p 'gemm: {mode: [RC, CR], size: 256}'`; `source` names the option in messages.
std::vector<Settings> parse_problems(const std::string& text, const std::string& source,
                                     std::span<const std::string_view> operators);

/// Keys whose list is one value of the problem, not a choice to expand.
inline constexpr std::string_view kVariantKeys[] = {"variant", "version", "impl"};
/// Most problems one section may expand to.
inline constexpr std::size_t kMostProblems = 10000;

}  // namespace tmaops::io
