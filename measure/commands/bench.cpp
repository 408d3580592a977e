// `tmaops bench`: check, then time; a table on stdout and a result file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>

#include "bench/peers/peers.hpp"
#include "bench/run/compare.hpp"
#include "bench/run/runner.hpp"
#include "bench/run/tuning.hpp"
#include "commands/commands.hpp"
#include "commands/progress.hpp"
#include "commands/request.hpp"
#include "commands/result_table.hpp"
#include "config/settings.hpp"
#include "core/device_info.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "offers/console.hpp"
#include "offers/input_file.hpp"
#include "offers/interrupt.hpp"
#include "offers/output_file.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

constexpr const char* kDefaultOutput = "out/results.json";

struct BenchArguments : Arguments {
  std::optional<std::string> output;  // none: kDefaultOutput, which is replaced without asking; "-": stdout
  bool no_output = false;
  bool force = false;
  std::vector<std::string> peers;  // with options.peers_by_name: instead of the configuration's
  std::string compare;
  std::string results;  // to compare instead of a run
  std::string ncu;      // report to write
  std::string fail_if_slower;
  std::string tuning;  // file; empty: gemm's own place
};

Request read_bench_request(const BenchArguments& arguments) {
  Request request = read_request(arguments);
  bench::RunOptions& options = request.options;
  options.counters = options.counters && !options.single_run;
  if (options.peers_by_name) options.peers = arguments.peers;
  if (!options.single_run && !options.implementations.empty())
    fail(ErrorCode::usage, "--implementation", "no --single-run", "--single-run");
  if (!options.single_run) return request;
  if (request.problems.size() != 1)
    fail(ErrorCode::usage, "--single-run", std::to_string(request.problems.size()) + " problems",
         "one problem: name it with -p");
  options.peers.clear();  // but those that are to run
  std::ranges::copy_if(options.implementations, std::back_inserter(options.peers), [](const std::string& name) {
    return std::ranges::find(bench::peer_names(), name) != bench::peer_names().end();
  });
  return request;
}

/// Everything there is to say about the numbers.
std::string tables(const bench::Report& report, bool color, std::size_t width) {
  std::string text = times_table(report, color, width);
  for (const std::string& more : {loads_table(report, color, width), counters_table(report, color, width)})
    if (!more.empty()) text += "\n" + more;
  return text;
}

bool to_stdout(const BenchArguments& arguments) { return arguments.output == "-"; }
std::string output_name(const BenchArguments& arguments) { return arguments.output.value_or(kDefaultOutput); }

/// The result file, opened before the work, so that a bad name costs no time; it appears when all is done. None for
/// stdout, /dev/null and --no-output, and for a single run, which has no times to keep, unless a file is named.
std::optional<io::OutputFile> open_output(const BenchArguments& arguments) try {
  if (arguments.no_output || to_stdout(arguments) || arguments.output == "/dev/null") return {};
  if (arguments.options.single_run && !arguments.output) return {};
  const std::filesystem::path output(output_name(arguments));
  if (!arguments.output) {
    std::error_code status;
    std::filesystem::create_directories(output.parent_path(), status);
    if (status)
      fail(ErrorCode::cannot_write, display(output),
           "folder " + display(output.parent_path()) + " cannot be made: " + status.message(),
           "a folder in which files can be made");
  }
  return std::optional<io::OutputFile>(std::in_place, output,
                                       io::OutputOptions{.force = arguments.force || !arguments.output});
} catch (const Error& error) {
  if (error.code() != ErrorCode::cannot_write) throw;
  ErrorDetails details = error.details();
  details.mend +=
      std::string(details.mend.empty() ? "" : " ") + "Name another file with -o, or do without one: --no-output.";
  throw Error(error.code(), details);
}

/// The table that --tune adds to, with its file open for writing: what is wrong with either costs no time.
class TuningFile {
 public:
  explicit TuningFile(const std::string& given) {
    const std::filesystem::path path(ops::gemm::tuning_path(given));
    if (path.empty()) fail(ErrorCode::usage, "--tune", "no file to keep the choices in", "--tuning FILE");
    std::error_code status;
    if (std::filesystem::exists(path, status)) table_ = ops::gemm::TuningTable::read(path.string());
    if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), status);
    file_.emplace(path, io::OutputOptions{.force = true});
    name_ = display(path);
  }
  void save(const bench::Report& report, const std::string& gpu, const Globals& globals) {
    const auto choices = bench::fastest(report.rows, gpu);
    if (choices.empty()) return;
    for (const auto& choice : choices) table_.set(choice);
    file_->write(table_.text());
    file_->commit();
    print_note(globals, "choices of " + std::to_string(choices.size()) + " cases: " + name_);
  }

 private:
  ops::gemm::TuningTable table_;
  std::optional<io::OutputFile> file_;
  std::string name_;
};

/// 0.05 for "5%" and for "0.05". A bare 5 was hardly meant to be 500 %, nor a bare 1 to be 100 %: Error usage.
double parse_share(const std::string& text) {
  const bool percent = text.ends_with('%');
  const std::string digits = text.substr(0, text.size() - (percent ? 1 : 0));
  const auto value = parse_number(digits);
  if (!value || !(*value >= 0 && *value <= 1e6) || (!percent && *value >= 1))
    fail(ErrorCode::usage, "--fail-if-slower", "'" + display_text(text) + "'", "a share: 5%, or as a part of one 0.05",
         value && *value >= 1 ? "Write " + digits + "% for that many percent." : "");
  return percent ? *value / 100 : *value;
}

/// A result file. Throws Error cannot_read and bad_format.
nlohmann::ordered_json read_results(const std::string& path) {
  const io::Bytes file = io::read_file(path);
  auto document = nlohmann::ordered_json::parse(file.text(), nullptr, false);
  if (document.is_discarded()) fail(ErrorCode::bad_format, display(path), "no JSON", "a result file of `tmaops bench`");
  bench::check_schema(document, display(path));
  return document;
}

/// Prints what changed in times and counters to the stream. Throws Error slower_than_base where that is more than
/// `fail_if_slower` allows, and Error usage where nothing can be compared; without a share nothing fails.
void report_changes(const nlohmann::ordered_json& now, const nlohmann::ordered_json& base, const std::string& base_file,
                    const std::string& fail_if_slower, const Globals& globals, Stream stream) {
  const auto differences = bench::compare(now, base);
  const bool color = use_color(globals, stream);
  std::string table = "\n" + compare_table(differences, color, line_width(stream));
  if (const auto counters = bench::compare_counters(now, base); !counters.empty())
    table += "\n" + compare_counters_table(counters, color, line_width(stream));
  if (stream == Stream::data)
    print_data(table);
  else if (!globals.quiet)
    print_styled(table);
  if (base["machine"] != now["machine"])
    print_note(globals,
               "note: " + display(base_file) + " was measured on another machine or with other settings of it");
  if (fail_if_slower.empty()) return;
  if (std::ranges::none_of(differences, &bench::Difference::counts))
    fail(ErrorCode::usage, "--fail-if-slower",
         "no variant that both this run and " + display(base_file) + " have timed",
         "a base of the same problems, types, device and temperature");
  const auto slower = bench::regressions(differences, parse_share(fail_if_slower));
  if (slower.empty()) return;
  const std::string names = joined(slower, "; ", [](const bench::Difference& one) {
    return one.row.op + " " + one.row.name + " " + one.row.dtype + " " + one.row.implementation;
  });
  fail(ErrorCode::slower_than_base, display(base_file), names, "no variant slower by more than " + fail_if_slower);
}

int run_bench(const Globals& globals, const BenchArguments& arguments) {
  for (const auto& [option, given] :
       {std::pair{"--fail-if-slower", &arguments.fail_if_slower}, {"--results", &arguments.results}})
    if (!given->empty() && arguments.compare.empty()) fail(ErrorCode::usage, option, "no base", "--compare BASE.json");
  if (!arguments.fail_if_slower.empty()) parse_share(arguments.fail_if_slower);
  nlohmann::ordered_json base;
  if (!arguments.compare.empty()) base = read_results(arguments.compare);
  if (!arguments.results.empty()) {
    report_changes(read_results(arguments.results), base, arguments.compare, arguments.fail_if_slower, globals,
                   Stream::data);
    return 0;
  }
  const Request request = read_bench_request(arguments);
  if (!arguments.ncu.empty()) run_under_ncu(arguments.ncu, arguments.force);
  prepare_run(request.options);
  std::optional<TuningFile> tuning;
  if (request.options.tune) {
    if (request.options.device != "cuda")
      fail(ErrorCode::usage, "--tune", "device " + request.options.device, "a GPU: --device cuda");
    tuning.emplace(arguments.tuning);
  } else if (!arguments.tuning.empty()) {
    setenv("TMAOPS_GEMM_TUNING", arguments.tuning.c_str(), 1);
  }

  const StopOnInterrupt guard;
  std::optional<io::OutputFile> file = open_output(arguments);

  Progress progress(globals);
  Refusals refusals(globals, progress);
  bench::Observer observer = terminal_observer(progress, refusals);
  observer.note = [&](const std::string& text) {
    progress.clear();
    print_note(globals, text);
  };
  const bench::Report report = run_problems(request, observer);
  refusals.finish();

  const nlohmann::ordered_json results = bench::to_json(report, config_json(request, arguments.config));
  const std::string text = bench::to_text(results);
  if (file) {
    file->write(text);
    file->commit();
  }
  const bool json = globals.json || to_stdout(arguments);
  const Stream stream = json ? Stream::notes : Stream::data;
  std::string table;
  if (!request.options.single_run)
    table = tables(report, use_color(globals, stream), line_width(stream));
  else if (!report.rows.empty() || !report.failed.empty())
    table = verify_table(report, use_color(globals, stream), line_width(stream));
  print_data(json ? text : table);
  if (to_stdout(arguments) && !globals.quiet) print_styled(table);
  for (const bench::Row& row : report.failed) print_problem(failure_text(row, request.options.seed));
  if (const std::string held = held_clocks_note(report); !held.empty()) print_note(globals, held);
  if (file)
    print_note(globals, "results: " + display(output_name(arguments)) +
                            (report.status == bench::Status::partial ? " (interrupted: partial)" : ""));
  if (tuning) tuning->save(report, device_info({DeviceType::cuda, 0}).name, globals);
  const int code = report.exit_code();
  if ((code == 0 || code == 3) && !arguments.compare.empty())
    report_changes(results, base, arguments.compare, arguments.fail_if_slower, globals, stream);
  return code;
}

}  // namespace

void add_bench_command(CLI::App& app, Globals& globals) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand("bench", "Check and time the operators");
  add_run_arguments(*command, *arguments);
  CLI::Option* output = command->add_option(
      "-o,--output", arguments->output, "Result file (JSON, schema 1), '-' for stdout [out/results.json, replaced]");
  command->add_flag("--no-output", arguments->no_output, "Write no result file")->excludes(output);
  command->add_flag("-f,--force", arguments->force, "Replace the result file when it exists");
  command
      ->add_option_function<std::string>(
          "--peers",
          [arguments](const std::string& names) {
            arguments->options.peers_by_name = true;
            arguments->peers = split_list(names);
            std::erase(arguments->peers, "");
          },
          "Peers to time beside, with commas between; '' for none")
      ->type_name("{" + joined(bench::peer_names(), ",") + "}");
  add_given(*command, *arguments, "temperature", "Inputs in the caches (hot), rotated past them (cold), or both")
      ->type_name("{hot,cold,both}");
  add_given(*command, *arguments, "samples", "Samples of each implementation");
  add_given(*command, *arguments, "min_time", "Seconds that one sample lasts at least");
  add_given(
      *command, *arguments, "max_time",
      "Seconds after which an implementation with " + std::to_string(bench::kFewestSamples) + " samples gets no more");
  command->add_option("--python", arguments->options.python,
                      "Interpreter of the Python peers (default: $TMAOPS_PYTHON, then python3)");
  CLI::Option* compare = command->add_option("--compare", arguments->compare, "Result file to compare with");
  command->add_option("--results", arguments->results,
                      "With --compare: a result file to compare with it, instead of a run");
  command->add_option("--fail-if-slower", arguments->fail_if_slower,
                      "With --compare: exit 1 when a variant is slower by more, for example 5% or 0.05");
  CLI::Option* counters =
      add_given_flag(*command, *arguments, "--counters", "counters", "true",
                     "Read hardware counters (CUPTI) of every row when all is timed, medians of 11 runs; needs a GPU");
  command
      ->add_flag("--single-run", arguments->options.single_run,
                 "Check, then launch once where profilers look (cudaProfilerStart); for ncu and nsys")
      ->excludes(counters)
      ->excludes(compare);
  command
      ->add_option_function<std::string>(
          "--ncu",
          [arguments](const std::string& name) {
            arguments->ncu = name;
            arguments->options.single_run = true;
          },
          "A single run under Nsight Compute, which writes all it knows of the launch to NAME.ncu-rep")
      ->type_name("NAME")
      ->excludes(counters)
      ->excludes(compare);
  command->add_option_function<std::string>(
      "--implementation",
      [arguments](const std::string& names) { arguments->options.implementations = split_list(names); },
      "With --single-run or --ncu: the rows to launch, with commas between, for example tmaops_pdl,cublas [the first]");
  command
      ->add_flag("--tune", arguments->options.tune,
                 "Time every variant and tile of gemm instead, and keep what was fastest for later calls")
      ->excludes(compare)
      ->excludes("--single-run");
  command->add_option("--tuning", arguments->tuning,
                      "gemm's table of measured choices, used or, with --tune, written; 'off' for none "
                      "[$TMAOPS_GEMM_TUNING, then ~/.cache/tmaops/gemm_tuning.yaml]");
  set_run(*command, globals, [&globals, arguments] { return run_bench(globals, *arguments); });
}

}  // namespace tmaops::cli
