// What the command `tmaops` of the Python package does itself: `dataset`, `report` and `resample --plot`. The package
// takes these from the command line before it starts this program, so here they are refused.
#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "cli/commands.hpp"
#include "core/fail.hpp"

namespace tmaops::cli {

void fail_without_package(const std::string& what) {
  fail(ErrorCode::usage, what, "the program alone", "the Python package tmaops, which runs it",
       "Build the package with `make wheel` and install it with `pip install dist/tmaops-*.whl`. Then call its command "
       "`tmaops`, or `python -m tmaops`, with the subcommand as the first word.");
}

void add_package_commands(CLI::App& app, Globals& globals) {
  for (const auto& [name, text] :
       {std::pair{"dataset", "Resample and inspect whole data sets (Python package)"},
        std::pair{"report", "Draw result files of bench as a page with plots (Python package)"}}) {
    CLI::App* command = app.add_subcommand(name, text);
    command->fallthrough(false)->allow_extras();
    command->footer("This command comes with the Python package tmaops: docs/python.md says how to install it.");
    set_run(*command, globals, [name]() -> int { fail_without_package(name); });
  }
}

}  // namespace tmaops::cli
