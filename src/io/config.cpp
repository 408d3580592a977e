#include "io/config.hpp"

#include <algorithm>

#include "core/display.hpp"
#include "core/spelling.hpp"

namespace tmaops::io {
namespace {

constexpr std::string_view kRunKeys[] = {"device", "operators", "temperature", "samples",   "min_time", "max_time",
                                         "seed",   "peers",     "threads",     "tolerance", "variants", "counters"};

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
    if (std::ranges::find(kVariantKeys, entry.key) != std::end(kVariantKeys)) {
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

[[noreturn]] void fail_unknown(const YamlEntry& entry, std::span<const std::string_view> known) {
  const std::string key = display_text(entry.key);
  fail_at(ErrorCode::unknown_key, entry.place, key, "'" + key + "'", "one of " + joined(known),
          did_you_mean(entry.key, known));
}

std::vector<std::string> words(const Settings& settings, std::string_view name) {
  std::vector<std::string> found;
  for (const Setting* one : settings.find_all(name)) found.push_back(one->value);
  return found;
}

}  // namespace

RunConfig parse_config(const YamlNode& document, std::span<const std::string_view> operators) {
  if (document.kind != YamlNode::Kind::map)
    fail_at(ErrorCode::wrong_type, document.place, "", document.describe(),
            "a mapping with an operator, for example gemm");
  RunConfig config;
  Settings run;
  for (const YamlEntry& entry : document.entries) {
    if (std::ranges::find(operators, entry.key) != operators.end()) {
      add_section(entry, config.problems);
    } else if (std::ranges::find(kRunKeys, entry.key) != std::end(kRunKeys)) {
      const bool takes_list = entry.key == "operators" || entry.key == "peers";
      if (entry.key == "peers" && entry.value.kind == YamlNode::Kind::list && entry.value.items.empty()) continue;
      if (entry.value.kind != YamlNode::Kind::scalar && !takes_list) fail_type(entry, "one value");
      for (const YamlNode* value : scalars(entry)) run.add(setting(entry, *value));
    } else {
      std::vector<std::string_view> known(std::begin(kRunKeys), std::end(kRunKeys));
      known.insert(known.end(), operators.begin(), operators.end());
      fail_unknown(entry, known);
    }
  }

  apply(run, config);
  config.threads = run.integer("threads", config.threads, 0, 1024);
  config.all_variants = run.choice("variants", "auto", {"auto", "all"}) == 1;
  config.counters = run.boolean("counters", false);
  config.peers = words(run, "peers");
  config.operators = words(run, "operators");
  for (const Setting* one : run.find_all("operators"))
    if (std::ranges::find(operators, one->value) == operators.end())
      run.fail(ErrorCode::bad_value, *one, "one of " + joined(operators));
  return config;
}

void apply(const Settings& given, RunConfig& config) {
  // Other names of a GPU, which as spellings are nearer to 'cpu'.
  if (const Setting* device = given.find("device"))
    for (const std::string_view other : {"gpu", "GPU", "cuda:", "nvidia"})
      if (device->value.starts_with(other))
        given.fail(ErrorCode::bad_value, *device, "one of auto, cpu, cuda", "Did you mean 'cuda'?");
  config.device = given.word("device", config.device, {"auto", "cpu", "cuda"});
  config.temperature = given.word("temperature", config.temperature, {"hot", "cold", "both"});
  config.samples = given.integer("samples", config.samples, 5, 10000);
  config.min_time = given.number("min_time", config.min_time, 0, 10);
  config.max_time = given.number("max_time", config.max_time, 0, 3600);
  config.seed = static_cast<std::uint64_t>(given.integer("seed", static_cast<std::int64_t>(config.seed), 0, INT64_MAX));
  config.tolerance = given.number("tolerance", config.tolerance, 0, 1);
}

RunConfig read_config(const std::filesystem::path& path, std::span<const std::string_view> operators) {
  return parse_config(read_yaml_file(path), operators);
}

std::vector<Settings> parse_problems(const std::string& text, const std::string& source,
                                     std::span<const std::string_view> operators) {
  const YamlNode document = parse_yaml(text, source);
  if (document.kind != YamlNode::Kind::map)
    fail_at(ErrorCode::wrong_type, document.place, "", document.describe(),
            "an operator and its problem: 'gemm: {size: 256}'");
  std::vector<Settings> problems;
  for (const YamlEntry& entry : document.entries) {
    if (std::ranges::find(operators, entry.key) == operators.end()) fail_unknown(entry, operators);
    add_section(entry, problems);
  }
  return problems;
}

}  // namespace tmaops::io
