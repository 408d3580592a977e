// `tmaops completion SHELL`: a script made from the parser itself, so that it cannot fall behind.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/console.hpp"

namespace tmaops::cli {
namespace {

struct CompletionOptions {
  std::string shell;
};

/// The subcommands that --help shows.
std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string long_options(const CLI::App& command, const CLI::App& app) {
  std::string words;
  for (const CLI::App* level : {&command, &app}) {
    for (const CLI::Option* option : level->get_options())
      for (const std::string& name : option->get_lnames()) words += " --" + name;
    if (&command == &app) break;
  }
  return words;
}

/// bash, and zsh through its bash emulation.
std::string bash_script(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : shown_commands(app)) {
    commands += " " + command->get_name();
    std::string words = long_options(*command, app);
    if (command->get_name() == "completion") words += " bash zsh fish";
    cases += "    " + command->get_name() + ") words=\"" + words.substr(1) + "\" ;;\n";
  }
  return "# tmaops completion; in ~/.bashrc: eval \"$(tmaops completion bash)\"\n"
         "_tmaops() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" command=\"\" word words\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case \"$word\" in -*) ;; *) command=\"$word\"; break ;; esac\n"
         "  done\n"
         "  case \"$command\" in\n" +
         cases + "    *) words=\"" + commands.substr(1) + long_options(app, app) +
         "\" ;;\n"
         "  esac\n"
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
    for (const CLI::Option* option : level.get_options())
      for (const std::string& name : option->get_lnames())
        text += "complete -c tmaops" + condition + " -l " + name + " -d " + fish_text(option->get_description()) + "\n";
  };
  add_options(app, "");
  for (const CLI::App* command : shown_commands(app)) {
    const std::string& name = command->get_name();
    text += "complete -c tmaops -n __fish_use_subcommand -a " + name + " -d " + fish_text(command->get_description()) +
            "\n";
    add_options(*command, " -n '__fish_seen_subcommand_from " + name + "'");
  }
  return text + "complete -c tmaops -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n";
}

}  // namespace

void add_completion_command(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<CompletionOptions>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->add_option("SHELL", options->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, &globals, options] {
    globals.run = [&app, options] {
      print_data(options->shell == "bash"  ? bash_script(app)
                 : options->shell == "zsh" ? zsh_script(app)
                                           : fish_script(app));
      return 0;
    };
  });
}

}  // namespace tmaops::cli
