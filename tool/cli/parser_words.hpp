// The words that the parser knows, for completions and for hints about misspelt words.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tmaops::cli {

/// Options of commands and of their option groups, each once, without positional arguments.
std::vector<const CLI::Option*> options_of(std::initializer_list<const CLI::App*> commands);
/// "--output" and "-o" of an option.
std::vector<std::string> names_of(const CLI::Option& option);
/// The values that the type name of an option lists between braces; empty when it lists none.
std::vector<std::string> values_of(const CLI::Option& option);
bool takes_value(const CLI::Option& option);
/// The subcommands that --help shows.
std::vector<const CLI::App*> shown_commands(const CLI::App& app);

/// A hint about the words that the parser did not take, and the help to read.
std::string advice(const CLI::App& app, const std::vector<std::string>& not_taken, const std::string& message);

}  // namespace tmaops::cli
