// `tmaops probe`: compares the rules, the load model and the classic mistakes with this machine's driver and GPU.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "bench/measure/machine.hpp"
#include "bench/run/report.hpp"
#include "commands/commands.hpp"
#include "commands/executor_check.hpp"
#include "commands/progress.hpp"
#include "core/device_info.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "core/spelling.hpp"
#include "offers/console.hpp"
#include "offers/interrupt.hpp"
#include "offers/output_file.hpp"
#include "offers/table.hpp"
#include "probe/report.hpp"
#include "tma/driver.hpp"

namespace tmaops::cli {
namespace {

/// Far more than a fault takes: its watchdog ends a wait after 0.2 s.
constexpr std::chrono::seconds kFaultLimit{30};

struct ProbeOptions {
  std::uint64_t seed = 1;
  std::size_t specifications = 100'000;
  std::size_t loads = 5'000;
  bool skip_faults = false;
  std::string output;
  bool force = false;
};

probe::Report run_parts(const ProbeOptions& options, const probe::Observer& observer) {
  // Every fault runs in a new process of this program.
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  probe::Report report{.seed = options.seed};
  tma::load_driver(0);
  report.compute_capability = device_info({DeviceType::cuda, 0}).compute_capability;
  const auto loader = probe::make_gpu_loader();
  // The maps point at real memory, since the driver may check the address.
  const std::uint64_t address =
      loader->memory(std::vector<std::byte>(static_cast<std::size_t>(probe::kLoadMemoryBytes)));
  const probe::AskDriver ask = [](const tma::TensorMapSpec& spec) {
    tma::TensorMap map;
    return tma::encode_unchecked(spec, map);
  };
  report.matrix = probe::run_matrix(address, report.compute_capability, ask);
  report.specifications =
      probe::run_specifications({.seed = options.seed, .count = options.specifications, .address = address},
                                report.compute_capability, ask, observer);
  report.loads = probe::run_loads(options.seed, options.loads, *loader, observer);
  if (!options.skip_faults) report.faults = probe::run_faults(program, kFaultLimit, observer);
  report.complete = !observer.stop();
  return report;
}

Style style_of(std::string_view verdict) {
  if (verdict == "agrees") return Style::good;
  if (verdict == "disagrees") return Style::bad;
  return verdict == "quirk" ? Style::bold : Style::faint;
}

std::string of(int count, int all) { return all == 0 ? "-" : std::to_string(count) + " of " + std::to_string(all); }

std::string matrix_text(const probe::Report& report, bool color) {
  Table table("rule|accepted inside|refused outside|verdict");
  for (const probe::RuleSummary& one : probe::summarise(report.matrix))
    table.add({{std::string(one.rule->id)},
               {of(one.inside_accepted, one.inside)},
               {of(one.outside_refused, one.outside)},
               {std::string(one.verdict()), style_of(one.verdict())}});
  std::string text = table.text(color);
  for (const probe::MatrixRow& row : report.matrix)
    if (row.verdict.agreement == probe::Agreement::disagrees)
      text += "disagrees: " + std::string(row.rule->id) + (row.outside ? " outside" : " inside") + ", the driver " +
              (row.verdict.driver.accepted() ? "accepts" : "refuses") + "\n  tmaops tensormap " +
              row.verdict.spec.text() + "\n";
  return text;
}

std::string specifications_text(const probe::SpecificationRun& run) {
  std::string text = "random specifications: " + std::to_string(run.count) + ", " + std::to_string(run.agreed) +
                     " agree, " + std::to_string(run.disagreed) + " disagree; the driver accepts " +
                     std::to_string(run.accepted) + "\n";
  for (const auto& [id, count] : run.quirks) text += "  quirk " + id + ": " + std::to_string(count) + "\n";
  for (const probe::Verdict& verdict : run.disagreements)
    text += "  the driver " + std::string(verdict.driver.accepted() ? "accepts" : "refuses") + " tmaops tensormap " +
            verdict.spec.text() + "\n";
  return text;
}

std::string loads_text(const probe::LoadRun& run) {
  std::string text = "loads against the model: " + std::to_string(run.exact) + " of " + std::to_string(run.count) +
                     " exact to the bit\n";
  for (const probe::LoadMismatch& one : run.mismatches) {
    text += "  byte " + std::to_string(one.first_byte) + " is " + std::to_string(one.got) + ", not " +
            std::to_string(one.want) + ": tmaops tensormap " + one.load.spec.text() + " --at " +
            joined(one.load.load.coordinates, ",") + " --base " + std::to_string(one.load.load.shared_address) + "\n";
  }
  return text;
}

/// What was found, as tables.
std::string probe_text(const probe::Report& report, bool color) {
  std::string text =
      matrix_text(report, color) + "\n" + specifications_text(report.specifications) + loads_text(report.loads);
  if (report.faults.empty()) return text;
  Table table("fault|symptom|what is wrong");
  for (const probe::FaultRun& run : report.faults)
    table.add({{std::string(run.fault->name)},
               {run.outcome, run.expected ? Style::plain : Style::bad},
               {std::string(run.fault->text), Style::faint}});
  return text + "\n" + table.text(color);
}

int run_probe(const Globals& globals, const ProbeOptions& options) {
  if (has_executor())
    fail(ErrorCode::usage, "probe", "a build with the executor",
         "a GPU and its driver, which are what it asks. `tmaops probe-fault NAME` runs one fault on the executor");
  const StopOnInterrupt guard;
  std::optional<io::OutputFile> file;
  tma::load_driver(0);  // says what is missing before a file is opened
  if (!options.output.empty()) file.emplace(options.output, io::OutputOptions{.force = options.force});

  Progress progress(globals);
  probe::Observer observer;
  observer.progress = [&](std::size_t done, std::size_t total, const std::string& what) {
    progress.show(done, total, what);
  };
  observer.stop = [] { return StopOnInterrupt::interrupted(); };
  const probe::Report report = run_parts(options, observer);
  progress.clear();

  const std::string text = bench::to_text(probe::to_json(report, bench::machine_json()));
  if (file) {
    file->write(text);
    file->commit();
  }
  print_data(globals.json ? text : probe_text(report, use_color(globals, Stream::data)));
  if (file)
    print_note(globals, "results: " + display(options.output) + (report.complete ? "" : " (interrupted: partial)"));
  return report.exit_code();
}

}  // namespace

void add_probe_command(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<ProbeOptions>();
  CLI::App* command = app.add_subcommand("probe", "Put the rules of TMA to this machine's driver and GPU");
  command->add_option("--seed", options->seed, "Seed of everything random [1]")->type_name("N");
  command->add_option("--specs", options->specifications, "Random specifications to put to the driver [100000]")
      ->check(CLI::Range(0, 100'000'000))
      ->type_name("N");
  command->add_option("--loads", options->loads, "Random loads to compare with the model [5000]")
      ->check(CLI::Range(0, 10'000'000))
      ->type_name("N");
  command->add_flag("--skip-faults", options->skip_faults, "Leave out the faults, which take a second each");
  command->add_option("-o,--output", options->output, "Result file (JSON, schema in docs/tma.md)")->type_name("FILE");
  command->add_flag("-f,--force", options->force, "Replace FILE when it exists");
  command->footer("Ends with 0 when all is as documented, 1 when something is not. docs/tma.md says what is compared.");
  set_run(*command, globals, [&globals, options] { return run_probe(globals, *options); });

  // `probe` starts this subcommand for each fault. It is not in the help and the completions.
  auto name = std::make_shared<std::string>();
  CLI::App* fault = app.add_subcommand("probe-fault", "")->group("");
  fault->add_option("NAME", *name)->required();
  set_run(*fault, globals, [name] {
    print_data(fault_text(*name));
    return 0;
  });
}

}  // namespace tmaops::cli
