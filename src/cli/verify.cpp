// `tmaops verify`: only the check, of every variant that takes the problem.
#include <CLI/CLI.hpp>
#include <memory>

#include "bench/run/runner.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/refusals.hpp"
#include "cli/result_table.hpp"
#include "cli/run_options.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

int run_verify(const Globals& globals, const RunFlags& flags) {
  io::RunConfig config = read_run(flags);
  config.all_variants = true;
  bench::RunOptions run = run_options(config);
  run.time = false;

  Progress progress(globals);
  const StopOnInterrupt guard;
  Refusals refusals(globals, progress);
  const bench::Observer observer = terminal_observer(progress, refusals);
  const bench::Report report = run_problems(config, run, observer);
  refusals.finish();

  if (globals.json)
    print_data(bench::to_text(bench::to_json(report, config_json(config, flags.config))));
  else
    print_data(verify_table(report, use_color(globals, Stream::data), line_width(Stream::data)));
  for (const bench::Row& row : report.failed) print_problem(failure_text(row, config.seed));
  return report.exit_code();
}

}  // namespace

void add_verify_command(CLI::App& app, Globals& globals) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("verify", "Check every variant against the reference");
  add_run_flags(*command, *flags);
  command->callback([&globals, flags] { globals.run = [&globals, flags] { return run_verify(globals, *flags); }; });
}

}  // namespace tmaops::cli
