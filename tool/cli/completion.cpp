// `tmaops completion SHELL`: a completion script made from the parser, so that it always has every command, option,
// value, error number and operator.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/cuda_results.hpp"
#include "cli/parser_words.hpp"
#include "core/spelling.hpp"
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

std::string long_options(const CLI::App& command, const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of({&command, &app}))
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return joined(names, " ");
}

/// A case of the script for every option that takes a value. It lists the values, or is empty where files complete.
std::string bash_values(const CLI::App& command, const CLI::App& app) {
  std::string cases;
  for (const CLI::Option* option : options_of({&command, &app})) {
    if (!takes_value(*option)) continue;
    const std::string before = "'" + (&command == &app ? "" : command.get_name()) + " ";
    const std::string names =
        joined(names_of(*option), "|", [&](const std::string& name) { return before + name + "'"; });
    cases += "    " + names + ") words=\"" + joined(values_of(*option), " ") + "\"; value=1 ;;\n";
  }
  return cases;
}

/// The script for bash, and for zsh through its bash emulation. bash splits "--outside=ho" into three words; the second
/// is "=".
std::string bash_script(const CLI::App& app) {
  std::vector<std::string> commands;
  std::string cases;
  std::string values = bash_values(app, app);
  std::vector<std::string> with_value;  // options before the command whose value is no command
  for (const CLI::Option* option : options_of({&app}))
    if (takes_value(*option)) std::ranges::copy(names_of(*option), std::back_inserter(with_value));
  for (const CLI::App* command : shown_commands(app)) {
    const std::string name = command->get_name();
    commands.push_back(name);
    const std::string arguments = joined(arguments_of(name), " ");
    cases += "    " + name + ") words=\"" + long_options(*command, app) + "\"; arguments=\"" + arguments + "\" ;;\n";
    values += bash_values(*command, app);
  }
  return "# tmaops completion; in ~/.bashrc: eval \"$(tmaops completion bash)\"\n"
         "_tmaops() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" command=\"\"\n"
         "  local word words=\"\" arguments=\"\" value=\"\" skip=\"\"\n"
         "  if [ \"$current\" = = ]; then current=\"\"\n"
         "  elif [ \"$previous\" = = ]; then previous=\"${COMP_WORDS[COMP_CWORD-2]}\"; fi\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    if [ -n \"$skip\" ]; then skip=\"\"; continue; fi\n"
         "    case \"$word\" in " +
         joined(with_value, "|") +
         ") skip=1 ;; -*) ;; *) command=\"$word\"; break ;; esac\n"
         "  done\n"
         "  case \"$command $previous\" in\n" +
         values +
         "  esac\n"
         "  [ -n \"$value\" ] || case \"$command\" in\n" +
         cases + "    *) words=\"" + long_options(app, app) + "\"; arguments=\"" + joined(commands, " ") +
         "\" ;;\n"
         "  esac\n"
         "  case \"$current\" in -*) ;; *) [ -n \"$value\" ] || words=\"$arguments\" ;; esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -o default -F _tmaops tmaops\n";
}

std::string zsh_script(const CLI::App& app) {
  return "# tmaops completion; in ~/.zshrc: eval \"$(tmaops completion zsh)\"\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_script(app);
}

std::string fish_text(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return "'" + text + "'";
}

std::string fish_script(const CLI::App& app) {
  std::string text = "# tmaops completion; tmaops completion fish > ~/.config/fish/completions/tmaops.fish\n";
  const auto add_options = [&](const CLI::App& level, const std::string& condition) {
    for (const CLI::Option* option : options_of({&level})) {
      if (&level != &app && option->get_lnames() == std::vector<std::string>{"help"}) continue;  // the program's
      text += "complete -c tmaops" + condition;
      for (const std::string& name : option->get_lnames()) text += " -l " + name;
      for (const std::string& name : option->get_snames()) text += " -s " + name;
      const std::vector<std::string> values = values_of(*option);
      if (!values.empty()) text += " -x -a " + fish_text(joined(values, " "));
      if (values.empty() && takes_value(*option)) text += " -r";
      text += " -d " + fish_text(option->get_description()) + "\n";
    }
  };
  add_options(app, "");
  for (const CLI::App* command : shown_commands(app)) {
    const std::string& name = command->get_name();
    text += "complete -c tmaops -n __fish_use_subcommand -a " + name + " -d " + fish_text(command->get_description()) +
            "\n";
    const std::string condition = " -n '__fish_seen_subcommand_from " + name + "'";
    add_options(*command, condition);
    if (const auto words = arguments_of(name); !words.empty())
      text += "complete -c tmaops" + condition + " -a " + fish_text(joined(words, " ")) + "\n";
  }
  return text;
}

}  // namespace

void add_completion_command(CLI::App& app, Globals& globals) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  set_run(*command, globals, [&app, shell] {
    print_data(*shell == "bash" ? bash_script(app) : *shell == "zsh" ? zsh_script(app) : fish_script(app));
    return 0;
  });
}

}  // namespace tmaops::cli
