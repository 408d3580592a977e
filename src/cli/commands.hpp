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
  /// Set by the chosen subcommand's callback and called when the whole command line was accepted. Returns the exit
  /// code. A failure is thrown as tmaops::Error, which has an exit code.
  std::function<int()> run{};
};

/// The pattern: options live in a shared_ptr that the callback keeps.
///   auto options = std::make_shared<Options>();
///   CLI::App* command = app.add_subcommand("explain", "...");
///   command->add_option("code", options->code, "...");
///   command->callback([&globals, options] { globals.run = [&globals, options] { return explain(globals, *options); };
///   });
void add_doctor_command(CLI::App& app, Globals& globals);
void add_list_command(CLI::App& app, Globals& globals);
void add_bench_command(CLI::App& app, Globals& globals);
void add_verify_command(CLI::App& app, Globals& globals);
void add_resample_command(CLI::App& app, Globals& globals);
void add_tensormap_command(CLI::App& app, Globals& globals);
void add_probe_command(CLI::App& app, Globals& globals);
void add_explain_command(CLI::App& app, Globals& globals);
void add_completion_command(CLI::App& app, Globals& globals);
/// `dataset` and `report`, which the Python package runs (python/tmaops/cli.py). Here they are listed and refused.
void add_package_commands(CLI::App& app, Globals& globals);

/// Throws Error usage: `what` is a command or an option that the Python package runs.
[[noreturn]] void fail_without_package(const std::string& what);

}  // namespace tmaops::cli
