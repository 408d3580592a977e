// The subcommands of the tool. Each has a file of its own and one function here that adds it to the parser.
#pragma once

#include <string>

#include "offers/commands.hpp"

namespace tmaops::cli {

void add_doctor_command(CLI::App& app, Globals& globals);
void add_list_command(CLI::App& app, Globals& globals);
void add_resample_command(CLI::App& app, Globals& globals);
void add_tensormap_command(CLI::App& app, Globals& globals);
void add_wgmma_command(CLI::App& app, Globals& globals);
void add_explain_command(CLI::App& app, Globals& globals);
void add_completion_command(CLI::App& app, Globals& globals);
/// What is brought by a wing that this build is without, and `dataset` and `report`, which the Python package runs
/// (python/tmaops/cli.py). They are listed and refused.
void add_missing_commands(CLI::App& app, Globals& globals);

/// Throws Error usage: `what` is a command or an option that the Python package runs.
[[noreturn]] void fail_without_package(const std::string& what);

}  // namespace tmaops::cli
