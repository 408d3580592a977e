#include "cli/run_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <utility>

#include "bench/peers/peers.hpp"
#include "bench/workloads/wanted_variants.hpp"
#include "bench/workloads/workload.hpp"
#include "cli/commands.hpp"
#include "cli/configurations.hpp"
#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/refusals.hpp"
#include "core/device_info.hpp"
#include "core/display.hpp"
#include "core/spelling.hpp"
#include "io/file_error.hpp"
#include "tmaops/error.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::cli {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};

/// Why a GPU that seems to be there cannot be used; empty where there is none, or no code for one.
std::string unusable_gpu() {
  try {
    device_info(kGpu);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::no_driver && error.code() != ErrorCode::no_cuda_build)
      return std::string(error_page(error.code()).title) + " (" + bench::reason_of(error) + ")";
  }
  return "";
}

/// Throws the one of the five reasons there is not to have a GPU.
void expect_gpu() try { device_info(kGpu); } catch (const Error& error) {
  ErrorDetails details = error.details();
  if (details.mend.empty()) details.mend = error_page(error.code()).mend;
  details.mend += " Or run on the CPU: --device cpu.";
  throw Error(error.code(), details);
}

/// The peers that do the work of no problem of the run.
std::vector<bench::Refusal> peers_without_work(const std::vector<Settings>& on_gpu, const std::vector<Settings>& on_cpu,
                                               const std::vector<std::string>& peers) {
  std::vector<bench::CaseInfo> cases;
  for (const Settings& problem : on_gpu) cases.push_back(bench::make_workload(problem, kGpu)->info());
  for (const Settings& problem : on_cpu) cases.push_back(bench::make_workload(problem, Device{})->info());
  std::vector<bench::Refusal> refused;
  for (const std::string& peer : peers)
    if (std::ranges::none_of(cases, [&](const auto& info) { return bench::Peers::applies(peer, info); }))
      refused.push_back({cases.front(), peer, "it computes none of this run's operators on their device", true, 2});
  return refused;
}

}  // namespace

void add_problem_options(CLI::App& command, ProblemOptions& options) {
  command.add_option("CONFIG", options.config,
                     "Configuration: a file, '-' for stdin, or one that comes with tmaops, for example quick");
  command
      .add_option("-p,--problem", options.problems,
                  "A problem: 'gemm: {mode: [RC, CR], size: [256, 512]}' (may be repeated)")
      ->allow_extra_args(false);
  command.add_option("--operator", options.operators, "Run only this operator's problems (may be repeated)")
      ->type_name("{" + joined(bench::workload_operators(), ",") + "}")
      ->allow_extra_args(false);
  command.add_option("--device", options.device, "Where to run (default: the configuration's, else auto)")
      ->type_name("{auto,cpu,cuda}");
}

void add_run_flags(CLI::App& command, RunFlags& flags) {
  add_problem_options(command, flags);
  command.add_option("--seed", flags.seed, "Seed of the random data");
  command.add_option("--threads", flags.threads, "Threads of the CPU variants and peers");
  command.add_option("--tolerance", flags.tolerance, "Relative error that passes (default: the operator's own)");
  command.add_flag("--all-variants", flags.all_variants, "Run every variant that takes the problem");
}

Settings option_values(std::initializer_list<std::pair<const char*, const std::string*>> values) {
  Settings settings;
  for (const auto& [name, value] : values) {
    std::string flag = "--" + std::string(name);
    std::ranges::replace(flag, '_', '-');
    if (!value->empty()) settings.add({name, *value, {flag}, false});
  }
  return settings;
}

io::RunConfig read_problems(const ProblemOptions& options) {
  const auto operators = bench::workload_operators();
  io::RunConfig config;
  if (!options.config.empty()) config = io::read_config(find_configuration(options.config), operators);
  for (std::size_t i = 0; i < options.problems.size(); ++i) {
    const std::string source = options.problems.size() > 1 ? "-p #" + std::to_string(i + 1) : "-p";
    auto more = io::parse_problems(options.problems[i], source, operators);
    config.problems.insert(config.problems.end(), std::make_move_iterator(more.begin()),
                           std::make_move_iterator(more.end()));
  }
  io::apply(option_values({{"device", &options.device}}), config);
  for (const std::string& name : options.operators) {
    if (std::ranges::find(operators, name) != operators.end()) continue;
    throw Error(ErrorCode::usage, {.where = "--operator",
                                   .got = "'" + display_text(name) + "'",
                                   .needed = "one of " + joined(operators),
                                   .mend = did_you_mean(name, operators)});
  }
  if (!options.operators.empty()) config.operators = options.operators;
  if (!config.operators.empty())
    std::erase_if(config.problems, [&](const Settings& problem) {
      return std::ranges::find(config.operators, problem.section()) == config.operators.end();
    });
  if (config.problems.empty())
    throw Error(ErrorCode::usage, {.where = options.config.empty() ? "command line" : io::display(options.config),
                                   .got = "no problem to run",
                                   .needed = "a configuration with an operator section, or -p 'gemm: {size: 256}'",
                                   .mend = "Try `tmaops bench quick`: it is the configuration of `make run`."});
  return config;
}

io::RunConfig read_run(const RunFlags& flags) {
  io::RunConfig config = read_problems(flags);
  io::apply(option_values({{"seed", &flags.seed}, {"tolerance", &flags.tolerance}}), config);
  config.threads = option_values({{"threads", &flags.threads}}).integer("threads", config.threads, 1, 1024);
  config.all_variants = config.all_variants || flags.all_variants;
  return config;
}

Device resolve_device(const std::string& device, const Settings& problem) {
  if (device == "cuda") {
    expect_gpu();
    return kGpu;
  }
  return device == "auto" && cuda_device_count() > 0 && bench::runs_on(problem, kGpu) ? kGpu : Device{};
}

bench::RunOptions run_options(const io::RunConfig& config) {
  if (config.device == "cuda") expect_gpu();  // before anything is opened or measured
  bench::RunOptions options;
  options.hot = config.temperature != "cold";
  options.cold = config.temperature != "hot";
  options.samples = config.samples;
  options.min_time = config.min_time;
  options.max_time = config.max_time;
  options.seed = config.seed;
  options.tolerance = config.tolerance;
  options.all_variants = config.all_variants;
  options.peers = config.peers;
  set_num_threads(static_cast<int>(config.threads));
  num_threads();  // a bad TMAOPS_NUM_THREADS is reported now
  return options;
}

bench::Report run_problems(const io::RunConfig& config, const bench::RunOptions& options,
                           const bench::Observer& observer) {
  if (config.device == "auto" && observer.note)
    if (const std::string why = unusable_gpu(); !why.empty()) observer.note("no GPU is used: " + why);
  std::vector<Settings> on_gpu, on_cpu;
  for (const Settings& problem : config.problems)
    (resolve_device(config.device, problem).type == DeviceType::cuda ? on_gpu : on_cpu).push_back(problem);
  bench::Report all;
  if (options.time && options.peers_by_name) all.refused = peers_without_work(on_gpu, on_cpu, options.peers);
  if (observer.refused) std::ranges::for_each(all.refused, observer.refused);
  for (const auto& [type, problems] : {std::pair{DeviceType::cuda, &on_gpu}, std::pair{DeviceType::cpu, &on_cpu}}) {
    if (problems->empty() || all.status == bench::Status::partial) continue;
    bench::RunOptions here = options;
    here.device = {type, 0};
    here.counters = options.counters && (type == DeviceType::cuda || on_gpu.empty());
    bench::Report part = bench::run(*problems, here, observer);
    all.status = part.status;
    std::ranges::move(part.rows, std::back_inserter(all.rows));
    std::ranges::move(part.failed, std::back_inserter(all.failed));
    std::ranges::move(part.refused, std::back_inserter(all.refused));
  }
  return all;
}

bench::Observer terminal_observer(Progress& progress, Refusals& refusals) {
  bench::Observer observer;
  observer.progress = [&progress](std::size_t done, std::size_t total, const std::string& what) {
    progress.show(done, total, what);
  };
  observer.refused = [&refusals](const bench::Refusal& refusal) { refusals.tell(refusal); };
  observer.interrupted = &StopOnInterrupt::interrupted;
  return observer;
}

nlohmann::ordered_json config_json(const io::RunConfig& config, const std::string& file) {
  nlohmann::ordered_json json;
  json["file"] = file.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(io::display(file));
  json["device"] = config.device;
  json["temperature"] = config.temperature;
  json["samples"] = config.samples;
  json["min_time"] = config.min_time;
  json["max_time"] = config.max_time;
  json["seed"] = config.seed;
  json["threads"] = config.threads;
  json["tolerance"] = config.tolerance;
  json["variants"] = config.all_variants ? "all" : "auto";
  json["counters"] = config.counters;
  json["peers"] = config.peers;
  json["problems"] = nlohmann::ordered_json::array();
  for (const Settings& problem : config.problems) json["problems"].push_back(problem.to_text());
  return json;
}

}  // namespace tmaops::cli
