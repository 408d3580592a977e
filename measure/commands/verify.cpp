// `tmaops verify`: only the check, of every variant that takes the problem.
#include <CLI/CLI.hpp>
#include <memory>

#include "bench/run/runner.hpp"
#include "commands/commands.hpp"
#include "commands/executor_check.hpp"
#include "commands/progress.hpp"
#include "commands/request.hpp"
#include "commands/result_table.hpp"
#include "offers/console.hpp"
#include "offers/interrupt.hpp"

namespace tmaops::cli {
namespace {

int run_verify(const Globals& globals, const Arguments& arguments, const ExecutorArguments& executor) {
  Request request = read_request(arguments);
  if (request.options.device == "executor" || (has_executor() && request.options.device != "cpu"))
    return verify_on_executor(globals, arguments, executor);
  request.options.all_variants = true;
  request.options.time = false;
  prepare_run(request.options);

  Progress progress(globals);
  const StopOnInterrupt guard;
  Refusals refusals(globals, progress);
  const bench::Observer observer = terminal_observer(progress, refusals);
  const bench::Report report = run_problems(request, observer);
  refusals.finish();

  if (globals.json)
    print_data(bench::to_text(bench::to_json(report, config_json(request, arguments.config))));
  else
    print_data(verify_table(report, use_color(globals, Stream::data), line_width(Stream::data)));
  for (const bench::Row& row : report.failed) print_problem(failure_text(row, request.options.seed));
  return report.exit_code();
}

}  // namespace

void add_verify_command(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<Arguments>();
  auto executor = std::make_shared<ExecutorArguments>();
  CLI::App* command = app.add_subcommand("verify", "Check every variant against the reference");
  add_run_arguments(*command, *arguments);
  add_executor_arguments(*command, *executor);
  set_run(*command, globals, [&globals, arguments, executor] { return run_verify(globals, *arguments, *executor); });
}

}  // namespace tmaops::cli
