#include "commands/request.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <utility>

#include "bench/peers/peers.hpp"
#include "bench/workloads/wanted_variants.hpp"
#include "bench/workloads/workload.hpp"
#include "commands/executor_check.hpp"
#include "commands/progress.hpp"
#include "config/config.hpp"
#include "core/device_info.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "offers/interrupt.hpp"
#include "tmaops/error.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::cli {
namespace {

constexpr Device kGpu{DeviceType::cuda, 0};

/// Beside the sources, or where an installed program has it.
std::filesystem::path shipped_folder() {
  std::error_code status;
  if (std::filesystem::is_directory(TMAOPS_CONFIG_FOLDER, status)) return TMAOPS_CONFIG_FOLDER;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", status);
  return program.parent_path().parent_path() / "share" / "tmaops" / "configs";
}

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

std::vector<std::string> shipped_configurations() {
  std::vector<std::string> names;
  std::error_code status;
  for (const auto& entry : std::filesystem::directory_iterator(shipped_folder(), status))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

std::filesystem::path find_configuration(const std::string& name) {
  std::error_code status;
  if (name.find_first_of("/.") != std::string::npos || name == "-" || std::filesystem::exists(name, status))
    return name;
  const std::vector<std::string> shipped = shipped_configurations();
  if (std::ranges::find(shipped, name) != shipped.end()) return shipped_folder() / (name + ".yaml");
  const std::vector<std::string_view> names(shipped.begin(), shipped.end());
  fail(ErrorCode::cannot_read, display(name), "no such file",
       "a configuration file, or the name of one that comes with tmaops: " + joined(names), did_you_mean(name, names));
}

CLI::Option* add_given(CLI::App& command, Arguments& arguments, const std::string& key, const std::string& help) {
  std::string flag = "--" + key;
  std::ranges::replace(flag, '_', '-');
  return command.add_option_function<std::string>(
      flag, [&arguments, key, flag](const std::string& text) { arguments.given.add({key, text, {flag}}); }, help);
}

CLI::Option* add_given_flag(CLI::App& command, Arguments& arguments, const std::string& flag, const std::string& key,
                            const std::string& value, const std::string& help) {
  return command.add_flag_callback(
      flag, [&arguments, flag, key, value] { arguments.given.add({key, value, {flag}}); }, help);
}

void add_run_arguments(CLI::App& command, Arguments& arguments) {
  command.add_option("CONFIG", arguments.config,
                     "Configuration: a file, '-' for stdin, or one that comes with tmaops, for example quick");
  command
      .add_option("-p,--problem", arguments.problems,
                  "A problem: 'gemm: {mode: [RC, CR], size: [256, 512]}' (may be repeated)")
      ->allow_extra_args(false);
  command
      .add_option_function<std::vector<std::string>>(
          "--operator",
          [&arguments](const std::vector<std::string>& names) {
            for (const std::string& name : names) arguments.given.add({"operators", name, {"--operator"}});
          },
          "Run only this operator's problems (may be repeated)")
      ->type_name("{" + joined(bench::workload_operators(), ",") + "}")
      ->allow_extra_args(false);
  add_given(command, arguments, "device", "Where to run (default: the configuration's, else auto)")
      ->type_name("{auto,cpu,cuda,executor}");
  add_given(command, arguments, "seed", "Seed of the random data");
  add_given(command, arguments, "threads", "Threads of the CPU variants and peers");
  add_given(command, arguments, "tolerance", "Relative error that passes (default: the operator's own)");
  add_given(command, arguments, "check_time",
            "Seconds that the reference of a case may take; what takes longer is compared in part");
  add_given_flag(command, arguments, "--all-variants", "variants", "all", "Run every variant that takes the problem");
  add_given_flag(command, arguments, "--no-dependent-launch", "dependent_launch", "false",
                 "On a GPU no second row of every variant, with dependent launch");
}

Request read_request(const Arguments& arguments) {
  const io::KnownKeys known{bench::option_keys(), bench::option_list_keys(), bench::workload_operators()};
  Request request{.options = arguments.options, .problems = {}};
  if (!arguments.config.empty()) {
    io::Configuration file = io::read_configuration(find_configuration(arguments.config), known);
    bench::apply(file.options, request.options);
    request.problems = std::move(file.problems);
  }
  for (std::size_t i = 0; i < arguments.problems.size(); ++i) {
    const std::string source = arguments.problems.size() > 1 ? "-p #" + std::to_string(i + 1) : "-p";
    std::ranges::move(io::parse_problems(arguments.problems[i], source, known.operators),
                      std::back_inserter(request.problems));
  }
  bench::apply(arguments.given, request.options);
  if (const auto& wanted = request.options.operators; !wanted.empty())
    std::erase_if(request.problems, [&](const Settings& problem) {
      return std::ranges::find(wanted, problem.section()) == wanted.end();
    });
  if (request.problems.empty())
    fail(ErrorCode::usage, arguments.config.empty() ? "command line" : display(arguments.config), "no problem to run",
         "a configuration with an operator section, or -p 'gemm: {size: 256}'",
         "Try `tmaops bench quick`: it is the configuration of `make run`.");
  return request;
}

Device resolve_device(const std::string& device, const Settings& problem) {
  if (device == "executor") return bench::runs_on(problem, kGpu) ? kGpu : Device{};
  if (device == "cuda") {
    expect_gpu();
    return kGpu;
  }
  return device == "auto" && cuda_device_count() > 0 && bench::runs_on(problem, kGpu) ? kGpu : Device{};
}

void prepare_run(const bench::RunOptions& options) {
  if (options.time && (options.device == "executor" || (has_executor() && options.device != "cpu")))
    fail(ErrorCode::usage, "--device " + options.device, "a run that measures on the executor",
         "`tmaops verify --device executor`: it checks kernels, and its times say nothing about a GPU");
  if (options.device == "cuda") expect_gpu();
  set_num_threads(static_cast<int>(options.threads));
  num_threads();  // a bad TMAOPS_NUM_THREADS is reported now
}

bench::Report run_problems(const Request& request, const bench::Observer& observer) {
  const bench::RunOptions& options = request.options;
  if (options.device == "auto" && observer.note)
    if (const std::string why = unusable_gpu(); !why.empty()) observer.note("no GPU is used: " + why);
  std::vector<Settings> on_gpu, on_cpu;
  for (const Settings& problem : request.problems)
    (resolve_device(options.device, problem).type == DeviceType::cuda ? on_gpu : on_cpu).push_back(problem);
  bench::Report all;
  if (options.time && options.peers_by_name) all.refused = peers_without_work(on_gpu, on_cpu, options.peers);
  if (observer.refused) std::ranges::for_each(all.refused, observer.refused);
  for (const auto& [type, problems] : {std::pair{DeviceType::cuda, &on_gpu}, std::pair{DeviceType::cpu, &on_cpu}}) {
    if (problems->empty() || all.status == bench::Status::partial) continue;
    bench::RunOptions here = options;
    here.counters = options.counters && (type == DeviceType::cuda || on_gpu.empty());
    bench::Report part = bench::run(*problems, {type, 0}, here, observer);
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

nlohmann::ordered_json config_json(const Request& request, const std::string& file) {
  nlohmann::ordered_json json;
  json["file"] = file.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(display(file));
  json.update(bench::to_json(request.options));
  json["problems"] = nlohmann::ordered_json::array();
  for (const Settings& problem : request.problems) json["problems"].push_back(problem.to_text());
  return json;
}

}  // namespace tmaops::cli
