// `tmaops bench`: check, then time; a table on stdout and a result file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "bench/compare.hpp"
#include "bench/runner.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/result_table.hpp"
#include "cli/run_options.hpp"
#include "io/file_error.hpp"
#include "io/output_file.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

constexpr const char* kDefaultOutput = "out/results.json";

struct Options : RunFlags {
  std::string output;  // empty: kDefaultOutput, which is replaced without asking
  bool force = false;
  std::string peers;  // comma-separated; replaces the configuration's
  bool peers_given = false;
  std::string temperature;
  std::string samples;
  std::string min_time;
  std::string max_time;
  std::string python;
  std::string compare;
  std::string fail_if_slower;
};

/// "5%" or "0.05".
double parse_share(const std::string& text) {
  const bool percent = text.ends_with('%');
  const auto value = parse_number(std::string_view(text).substr(0, text.size() - (percent ? 1 : 0)));
  if (!value || !(*value >= 0 && *value <= 1e6))
    throw Error(ErrorCode::usage,
                {.where = "--fail-if-slower", .got = "'" + text + "'", .needed = "a share, for example 5%"});
  return percent ? *value / 100 : *value;
}

nlohmann::ordered_json read_results(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code status;
  if (!file || std::filesystem::is_directory(path, status))
    throw Error(ErrorCode::cannot_read, {.where = path, .got = "", .needed = "a result file of `tmaops bench`"});
  auto document = nlohmann::ordered_json::parse(file, nullptr, false);
  if (document.is_discarded())
    throw Error(ErrorCode::bad_format, {.where = path, .got = "no JSON", .needed = "a result file of `tmaops bench`"});
  bench::check_schema(document, path);
  return document;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

io::RunConfig read_config(const Options& options) {
  io::RunConfig config = read_run(options);
  Settings values;
  for (const auto& [name, value] :
       {std::pair{"temperature", &options.temperature}, std::pair{"samples", &options.samples},
        std::pair{"min_time", &options.min_time}, std::pair{"max_time", &options.max_time}}) {
    std::string flag = "--" + std::string(name);
    std::ranges::replace(flag, '_', '-');
    if (!value->empty()) values.add({name, *value, {flag}, false});
  }
  constexpr std::string_view temperatures[] = {"hot", "cold", "both"};
  config.temperature = temperatures[values.choice("temperature", config.temperature, {"hot", "cold", "both"})];
  config.samples = values.integer("samples", config.samples, 5, 10000);
  config.min_time = values.number("min_time", config.min_time, 0, 10);
  config.max_time = values.number("max_time", config.max_time, 0, 3600);
  if (options.peers_given) config.peers = split(options.peers);
  return config;
}

/// Prints what changed; the exit code.
int report_changes(const bench::Report& report, const nlohmann::ordered_json& base, const Options& options,
                   const Globals& globals) {
  const auto differences = bench::compare(report, base);
  if (globals.json)
    print_note(globals, compare_table(differences, use_color(globals, Stream::notes)));
  else
    print_data("\n" + compare_table(differences, use_color(globals, Stream::data)));
  if (base["machine"] != bench::machine_json())
    print_note(globals, "note: " + options.compare + " was measured on another machine or with other settings of it");
  if (options.fail_if_slower.empty()) return 0;
  const auto slower = bench::regressions(differences, parse_share(options.fail_if_slower));
  if (slower.empty()) return 0;
  std::string names;
  for (const bench::Difference& one : slower)
    names += (names.empty() ? "" : "; ") + one.op + " " + one.name + " " + one.dtype + " " + one.implementation;
  throw Error(
      ErrorCode::slower_than_base,
      {.where = options.compare, .got = names, .needed = "no variant slower by more than " + options.fail_if_slower});
}

int run_bench(const Globals& globals, const Options& options) {
  const io::RunConfig config = read_config(options);
  if (!options.fail_if_slower.empty()) {
    parse_share(options.fail_if_slower);
    if (options.compare.empty())
      throw Error(ErrorCode::usage, {.where = "--fail-if-slower", .got = "no base", .needed = "--compare BASE.json"});
  }
  nlohmann::ordered_json base;
  if (!options.compare.empty()) base = read_results(options.compare);
  bench::RunOptions run = run_options(config);
  run.python = options.python;

  const StopOnInterrupt guard;
  // The file is opened before the work, so that a bad name costs no time; it appears when all is done.
  const std::filesystem::path output(options.output.empty() ? kDefaultOutput : options.output);
  if (options.output.empty()) {
    std::error_code status;
    std::filesystem::create_directories(output.parent_path(), status);
  }
  io::OutputFile file(output, {.force = options.force || options.output.empty()});

  Progress progress(globals);
  bench::Observer observer = terminal_observer(globals, progress);
  observer.note = [&](const std::string& text) {
    progress.clear();
    print_note(globals, text);
  };
  const bench::Report report = bench::run(config.problems, run, observer);
  progress.clear();

  const nlohmann::ordered_json document = bench::to_json(report, config_json(config, options.config));
  const std::string text = document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  file.write(text);
  file.commit();
  print_data(globals.json ? text : times_table(report, use_color(globals, Stream::data)));
  for (const bench::Row& row : report.failed) print_problem(failure_text(row, config.seed));
  print_note(globals, "results: " + io::display(output) +
                          (report.status == bench::Status::partial ? " (interrupted: partial)" : ""));
  const int code = report.exit_code();
  if (code == 0 && !options.compare.empty()) return report_changes(report, base, options, globals);
  return code;
}

}  // namespace

void add_bench_command(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bench", "Check and time the operators");
  add_run_flags(*command, *options);
  command->add_option("-o,--output", options->output, "Result file (JSON, schema 1) [out/results.json, replaced]");
  command->add_flag("-f,--force", options->force, "Replace the result file when it exists");
  const CLI::Option* peers =
      command->add_option("--peers", options->peers, "Peers to time beside, with commas between; '' for none");
  command->add_option("--temperature", options->temperature,
                      "Inputs in the caches (hot), rotated past them (cold), or both");
  command->add_option("--samples", options->samples, "Samples of each implementation");
  command->add_option("--min-time", options->min_time, "Seconds that one sample lasts at least");
  command->add_option("--max-time", options->max_time,
                      "Seconds after which an implementation with 5 samples gets no more");
  command->add_option("--python", options->python,
                      "Interpreter of the Python peers (default: $TMAOPS_PYTHON, then python3)");
  command->add_option("--compare", options->compare, "Result file to compare with");
  command->add_option("--fail-if-slower", options->fail_if_slower,
                      "With --compare: exit 1 when a variant is slower by more, for example 5%");
  command->callback([&globals, options, peers] {
    options->peers_given = peers->count() > 0;
    globals.run = [&globals, options] { return run_bench(globals, *options); };
  });
}

}  // namespace tmaops::cli
