// The subcommands that measure, and what they add to those of the tool.
#pragma once

#include <string>
#include <vector>

#include "offers/commands.hpp"

namespace tmaops::cli {

void add_bench_command(CLI::App& app, Globals& globals);
void add_verify_command(CLI::App& app, Globals& globals);
void add_probe_command(CLI::App& app, Globals& globals);
/// `list -p`.
void add_problems_to_list(CLI::App& app, Globals& globals);
/// `bench --ncu NAME`: ncu takes the place of this process, runs the same command with --single-run instead of --ncu,
/// and writes NAME.ncu-rep. Throws Error output_exists unless `force`, and cannot_read where there is no ncu.
[[noreturn]] void run_under_ncu(const std::string& name, bool force);
/// For `doctor`: the machine, and what bench finds on it.
std::vector<Finding> measuring_findings();

}  // namespace tmaops::cli
