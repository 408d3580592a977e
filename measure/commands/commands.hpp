// The subcommands that measure, and what they add to those of the tool.
#pragma once

#include <vector>

#include "offers/commands.hpp"

namespace tmaops::cli {

void add_bench_command(CLI::App& app, Globals& globals);
void add_verify_command(CLI::App& app, Globals& globals);
void add_probe_command(CLI::App& app, Globals& globals);
/// `list -p`.
void add_problems_to_list(CLI::App& app, Globals& globals);
/// For `doctor`: the machine, and what bench finds on it.
std::vector<Finding> measuring_findings();

}  // namespace tmaops::cli
