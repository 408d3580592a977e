// A strict reading of YAML: every value keeps its place, duplicate keys are errors.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.hpp"
#include "tmaops/error.hpp"

namespace tmaops::io {

struct YamlEntry;

/// A value of a YAML document. A scalar keeps its text, whose meaning depends on the key.
struct YamlNode {
  enum class Kind { empty, scalar, list, map };
  Kind kind = Kind::empty;
  Place place{};
  std::string scalar{};
  bool quoted = false;
  std::vector<YamlNode> items{};     // of a list
  std::vector<YamlEntry> entries{};  // of a map, in the order of the file

  const YamlEntry* find(std::string_view key) const;
  /// "a list", "a mapping", "'abc'", "nothing".
  std::string describe() const;
};

struct YamlEntry {
  std::string key;
  Place place{};  // of the key
  YamlNode value{};
};

/// Parses one document. `source` names it in places, for example by the file name. Throws Error yaml_syntax,
/// duplicate_key, wrong_type (a key that is not a scalar). Anchors, aliases and tags are refused: a short
/// configuration needs none, and aliases can make a small file expand without end.
YamlNode parse_yaml(const std::string& text, const std::string& source);

/// The same of a file of at most 1 MiB. Throws the errors of read_file as well.
YamlNode read_yaml_file(const std::filesystem::path& path);

/// Throws Error about a node.
[[noreturn]] void fail_at(ErrorCode code, const Place& place, const std::string& what, std::string got,
                          std::string needed, std::string mend = {});

}  // namespace tmaops::io
