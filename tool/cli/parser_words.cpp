#include "cli/parser_words.hpp"

#include <CLI/CLI.hpp>

#include "core/spelling.hpp"

namespace tmaops::cli {
namespace {

std::string hint(const std::string& word, const std::vector<std::string>& known) {
  if (std::ranges::find(known, word) != known.end()) return "";
  return did_you_mean(word, std::vector<std::string_view>(known.begin(), known.end()));
}

/// Of "--color: alwyas not in {always,auto}" the hint about the value.
std::string hint_about_value(const std::string& message) {
  const std::size_t brace = message.find(" not in {");
  const std::size_t colon = message.rfind(": ", brace);
  if (brace == std::string::npos || colon == std::string::npos) return "";
  const std::size_t begin = brace + std::string_view(" not in {").size();
  return hint(message.substr(colon + 2, brace - colon - 2),
              split_list(message.substr(begin, message.find('}', begin) - begin)));
}

}  // namespace

std::vector<const CLI::Option*> options_of(std::initializer_list<const CLI::App*> commands) {
  std::vector<const CLI::Option*> once;
  const auto add = [&](const CLI::App* app) {
    for (const CLI::Option* option : app->get_options())
      if (const auto names = names_of(*option);
          !option->get_group().empty() && !names.empty() &&
          std::ranges::none_of(once, [&](const CLI::Option* other) { return names_of(*other) == names; }))
        once.push_back(option);
  };
  for (const CLI::App* command : commands) {
    add(command);
    std::ranges::for_each(command->get_subcommands([](const CLI::App* each) { return each->get_name().empty(); }), add);
  }
  return once;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}', begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return split_list(type.substr(begin + 1, end - begin - 1));
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands(
      [](const CLI::App* command) { return !command->get_name().empty() && !command->get_group().empty(); });
}

std::string advice(const CLI::App& app, const std::vector<std::string>& not_taken, const std::string& message) {
  const auto chosen = app.get_subcommands();
  std::vector<std::string> options;
  std::vector<std::string> commands;
  for (const CLI::Option* option : options_of({&app, chosen.empty() ? &app : chosen.front()}))
    std::ranges::copy(names_of(*option), std::back_inserter(options));
  if (chosen.empty())
    for (const CLI::App* command : shown_commands(app)) commands.push_back(command->get_name());

  std::string text = hint_about_value(message);
  for (const std::string& word : not_taken) {
    if (!text.empty()) break;
    const bool option = word.starts_with("--");
    text = hint(option ? word.substr(0, word.find('=')) : word, option ? options : commands);
  }
  const std::string help = chosen.empty() ? "`tmaops --help`" : "`tmaops " + chosen.front()->get_name() + " --help`";
  return text + (text.empty() ? "" : " ") + "See " + help + ".";
}

}  // namespace tmaops::cli
