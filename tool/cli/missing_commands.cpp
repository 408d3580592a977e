// Commands that are not this build's: those of a wing that it is without, and what the command `tmaops` of the Python
// package does itself (`dataset`, `report` and `resample --plot`), which takes it from the command line before it
// starts this program.
#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <utility>

#include "cli/commands.hpp"
#include "core/fail.hpp"

namespace tmaops::cli {
namespace {

/// Lists a command whose words are not read, unless it is there.
void add_missing(CLI::App& app, Globals& globals, const char* name, const char* text, const char* footer,
                 const std::function<int()>& refuse) {
  const auto is_it = [name](const CLI::App* one) { return one->get_name() == name; };
  if (!std::as_const(app).get_subcommands(is_it).empty()) return;
  CLI::App* command = app.add_subcommand(name, text);
  command->fallthrough(false)->allow_extras();
  command->footer(footer);
  set_run(*command, globals, refuse);
}

}  // namespace

void fail_without_package(const std::string& what) {
  fail(ErrorCode::usage, what, "the program alone", "the Python package tmaops, which runs it",
       "Build the package with `make wheel` and install it with `pip install dist/tmaops-*.whl`. Then call its command "
       "`tmaops`, or `python -m tmaops`, with the subcommand as the first word.");
}

void add_missing_commands(CLI::App& app, Globals& globals) {
  for (const char* name : {"bench", "verify", "probe"})
    add_missing(app, globals, name, "Not in this build", "This command comes with the folder measure/ of the sources.",
                [name]() -> int {
                  fail(ErrorCode::usage, name, "a build without it", "a build of sources with the folder measure/");
                });
  for (const auto& [name, text] :
       {std::pair{"dataset", "Resample and inspect whole data sets (Python package)"},
        std::pair{"report", "Draw result files of bench as a page with plots (Python package)"}})
    add_missing(app, globals, name, text,
                "This command comes with the Python package tmaops: docs/python.md says how to install it.",
                [name = name]() -> int { fail_without_package(name); });
}

}  // namespace tmaops::cli
