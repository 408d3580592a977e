// The subcommands of the tool. Each has a file of its own and one function here that adds it to the parser.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace tmaops::cli {

/// Options that every subcommand takes, before or after its name, and the function of the chosen subcommand.
struct Globals {
  bool json = false;
  bool quiet = false;
  std::string color = "auto";  // auto, always, never
  std::function<int()> run{};  // of the chosen subcommand
};

/// When the whole command line was accepted and has this command, `run` is called, which keeps the command's options in
/// a shared_ptr and returns the exit code. A failure is thrown as tmaops::Error, which has an exit code.
void set_run(auto& command, Globals& globals, const std::function<int()>& run) {
  command.callback([&globals, run] { globals.run = run; });
}

void add_doctor_command(CLI::App& app, Globals& globals);
void add_list_command(CLI::App& app, Globals& globals);
void add_bench_command(CLI::App& app, Globals& globals);
void add_verify_command(CLI::App& app, Globals& globals);
void add_resample_command(CLI::App& app, Globals& globals);
void add_tensormap_command(CLI::App& app, Globals& globals);
void add_wgmma_command(CLI::App& app, Globals& globals);
void add_probe_command(CLI::App& app, Globals& globals);
void add_explain_command(CLI::App& app, Globals& globals);
void add_completion_command(CLI::App& app, Globals& globals);
/// `dataset` and `report`, which the Python package runs (python/tmaops/cli.py). Here they are listed and refused.
void add_package_commands(CLI::App& app, Globals& globals);

/// Throws Error usage: `what` is a command or an option that the Python package runs.
[[noreturn]] void fail_without_package(const std::string& what);

}  // namespace tmaops::cli
