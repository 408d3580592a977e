#include "config/config.hpp"

#include <algorithm>

#include "core/display.hpp"
#include "core/spelling.hpp"

namespace tmaops::io {
namespace {

bool among(std::span<const std::string_view> keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

[[noreturn]] void fail_type(const YamlEntry& entry, const std::string& needed) {
  fail_at(ErrorCode::wrong_type, entry.value.place, display_text(entry.key), entry.value.describe(), needed);
}

Setting setting(const YamlEntry& entry, const YamlNode& value) {
  return {entry.key, value.scalar, value.place, value.quoted, entry.place};
}

/// The scalars of a value: itself, or those of a list.
std::vector<const YamlNode*> scalars(const YamlEntry& entry) {
  std::vector<const YamlNode*> found;
  if (entry.value.kind == YamlNode::Kind::scalar) found.push_back(&entry.value);
  if (entry.value.kind == YamlNode::Kind::list) {
    for (const YamlNode& item : entry.value.items) {
      if (item.kind != YamlNode::Kind::scalar)
        fail_at(ErrorCode::wrong_type, item.place, display_text(entry.key), item.describe(),
                "a word or a number in the list");
      found.push_back(&item);
    }
    if (found.empty()) fail_type(entry, "at least one value in the list");
  }
  if (found.empty()) fail_type(entry, "a value or a list of values");
  return found;
}

/// One section of an operator, expanded: the last key varies fastest.
void expand(const std::string& op, const YamlNode& section, std::vector<Settings>& problems) {
  if (section.kind != YamlNode::Kind::map)
    fail_at(ErrorCode::wrong_type, section.place, op, section.describe(), "a mapping such as {size: [256, 512]}");
  std::vector<Settings> expanded{Settings(op, section.place)};
  for (const YamlEntry& entry : section.entries) {
    const auto values = scalars(entry);
    if (among(kVariantKeys, entry.key)) {
      for (Settings& problem : expanded)
        for (const YamlNode* value : values) problem.add(setting(entry, *value));
      continue;
    }
    if (values.size() * expanded.size() > kMostProblems)
      fail_at(ErrorCode::bad_value, entry.place, op,
              "a product of more than " + std::to_string(kMostProblems) + " problems", "fewer values");
    std::vector<Settings> next;
    next.reserve(values.size() * expanded.size());
    for (const Settings& problem : expanded)
      for (const YamlNode* value : values) next.emplace_back(problem).add(setting(entry, *value));
    expanded = std::move(next);
  }
  problems.insert(problems.end(), std::make_move_iterator(expanded.begin()), std::make_move_iterator(expanded.end()));
}

/// A section is a mapping, or a list of mappings.
void add_section(const YamlEntry& entry, std::vector<Settings>& problems) {
  if (entry.value.kind != YamlNode::Kind::list) return expand(entry.key, entry.value, problems);
  for (const YamlNode& item : entry.value.items) expand(entry.key, item, problems);
}

}  // namespace

Configuration parse_configuration(const YamlNode& document, const KnownKeys& known) {
  if (document.kind != YamlNode::Kind::map)
    fail_at(ErrorCode::wrong_type, document.place, "", document.describe(),
            "a mapping with an operator, for example gemm");
  Configuration configuration;
  for (const YamlEntry& entry : document.entries) {
    if (among(known.operators, entry.key)) {
      add_section(entry, configuration.problems);
    } else if (among(known.options, entry.key)) {
      const bool takes_list = among(known.lists, entry.key);
      if (takes_list && entry.value.kind == YamlNode::Kind::list && entry.value.items.empty()) continue;
      if (entry.value.kind != YamlNode::Kind::scalar && !takes_list) fail_type(entry, "one value");
      for (const YamlNode* value : scalars(entry)) configuration.options.add(setting(entry, *value));
    } else {
      std::vector<std::string_view> keys(known.options.begin(), known.options.end());
      keys.insert(keys.end(), known.operators.begin(), known.operators.end());
      const std::string key = display_text(entry.key);
      fail_at(ErrorCode::unknown_key, entry.place, key, "'" + key + "'", "one of " + joined(keys),
              did_you_mean(entry.key, keys));
    }
  }
  return configuration;
}

Configuration read_configuration(const std::filesystem::path& path, const KnownKeys& known) {
  return parse_configuration(read_yaml_file(path), known);
}

std::vector<Settings> parse_problems(const std::string& text, const std::string& source,
                                     std::span<const std::string_view> operators) {
  const YamlNode document = parse_yaml(text, source);
  if (document.kind != YamlNode::Kind::map)
    fail_at(ErrorCode::wrong_type, document.place, "", document.describe(),
            "an operator and its problem: 'gemm: {size: 256}'");
  return parse_configuration(document, {.options = {}, .lists = {}, .operators = operators}).problems;
}

}  // namespace tmaops::io
