// `tmaops completion SHELL`: a script by which the shell asks `tmaops complete -- WORD...`, which is not in the help,
// what the last word may become. The answer comes from the parser, so that it always has every command, option, value,
// error number and operator.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/cuda_results.hpp"
#include "cli/parser_words.hpp"
#include "executor/rules.hpp"
#include "offers/console.hpp"
#include "tmaops/error.hpp"
#include "tmaops/registry.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::cli {
namespace {

/// The values of a command's positional argument; empty where it is a file or free text.
std::vector<std::string> arguments_of(const std::string& command) {
  std::vector<std::string> words;
  if (command == "completion") words = {"bash", "zsh", "fish"};
  if (command == "list")
    for (const std::string_view name : operators()) words.emplace_back(name);
  if (command == "explain") {
    for (const ErrorPage& page : error_catalogue())
      words.insert(words.end(), {std::string(page.number), std::string(page.name)});
    for (const tma::Rule& rule : tma::rules()) words.emplace_back(rule.id);
    for (const executor::RulePage& rule : executor::kRules) words.emplace_back(rule.id);
    for (const CudaResult& result : cuda_results())
      for (const std::string_view name : {result.driver, result.runtime})
        if (!name.empty()) words.emplace_back(name);
  }
  for (const Wing& wing : wings())
    for (std::string& word : wing.words(command)) words.push_back(std::move(word));
  return words;
}

/// What the last word may become, a line each: the word, a tab and what it is. Nothing where files complete.
std::string candidates(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty()) return "";
  if (words.back() == "=") words.back().clear();
  std::erase(words, "=");  // bash makes three words of --outside=ho
  std::string current = words.back();
  words.pop_back();
  std::string before;  // what stands in the same word
  if (const std::size_t equals = current.find('='); current.starts_with("--") && equals != std::string::npos) {
    words.push_back(current.substr(0, equals));
    before = current.substr(0, equals + 1);
    current.erase(0, equals + 1);
  }
  const CLI::App* command = &app;
  const CLI::Option* open = nullptr;  // whose value comes next
  for (const std::string& word : words) {
    if (std::exchange(open, nullptr) != nullptr) continue;
    for (const CLI::Option* option : options_of({command, &app}))
      if (const auto names = names_of(*option); takes_value(*option) && std::ranges::find(names, word) != names.end())
        open = option;
    for (const CLI::App* known : shown_commands(app))
      if (command == &app && known->get_name() == word) command = known;
  }
  std::string lines;
  const auto offer = [&](const std::string& word, const std::string& what) {
    if (word.starts_with(current)) lines += before + word + "\t" + what + "\n";
  };
  if (open != nullptr) {
    for (const std::string& value : values_of(*open)) offer(value, "");
  } else if (current.starts_with('-')) {
    for (const CLI::Option* option : options_of({command, &app}))
      for (const std::string& name : option->get_lnames()) offer("--" + name, option->get_description());
  } else if (command == &app) {
    for (const CLI::App* known : shown_commands(app)) offer(known->get_name(), known->get_description());
  } else {
    for (const std::string& word : arguments_of(command->get_name())) offer(word, "");
  }
  return lines;
}

constexpr std::string_view kBash = R"~(# tmaops completion; in ~/.bashrc: eval "$(tmaops completion bash)"
_tmaops() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
}
complete -o default -F _tmaops tmaops
)~";
constexpr std::string_view kZsh = R"~(# tmaops completion; in ~/.zshrc: eval "$(tmaops completion zsh)"
autoload -U +X bashcompinit && bashcompinit
)~";
constexpr std::string_view kFish =
    R"~(# tmaops completion; tmaops completion fish > ~/.config/fish/completions/tmaops.fish
function __tmaops_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -e words[1]
  tmaops complete -- $words "$current" 2>/dev/null
end
complete -c tmaops -a '(__tmaops_complete)'
)~";

}  // namespace

void add_completion_command(CLI::App& app, Globals& globals) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  set_run(*command, globals, [shell] {
    print_data(*shell == "fish" ? std::string(kFish) : std::string(*shell == "zsh" ? kZsh : "") + std::string(kBash));
    return 0;
  });

  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* complete = app.add_subcommand("complete", "")->group("");
  complete->add_option("WORDS", *words);
  set_run(*complete, globals, [&app, words] {
    print_data(candidates(app, *words));
    return 0;
  });
}

}  // namespace tmaops::cli
