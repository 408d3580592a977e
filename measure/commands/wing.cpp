// What this wing brings to the program.
#include <CLI/CLI.hpp>

#include "commands/commands.hpp"
#include "commands/request.hpp"

namespace tmaops::measure {
namespace {

void add_commands(CLI::App& app, cli::Globals& globals) {
  cli::add_bench_command(app, globals);
  cli::add_verify_command(app, globals);
  cli::add_probe_command(app, globals);
  cli::add_problems_to_list(app, globals);
}

std::vector<std::string> words(std::string_view command) {
  return command == "bench" || command == "verify" ? cli::shipped_configurations() : std::vector<std::string>{};
}

}  // namespace

cli::Wing wing();
cli::Wing wing() { return {&add_commands, &cli::measuring_findings, &words}; }

}  // namespace tmaops::measure
