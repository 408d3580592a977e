// The steps of `tmaops resample`: claim the output, read, plan, resample, select rows, write, summarise.

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "cli/resample_steps.hpp"
#include "core/fail.hpp"
#include "io/output_file.hpp"
#include "io/recording.hpp"
#include "tmaops/error.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::cli {
namespace {

using io::FileFormat;

io::ReadOptions read_options(const ResampleCommand& command, FileFormat from) {
  return {.format = from,
          .unit = io::parse_time_unit(command.time_unit),
          .times_name = command.times_array,
          .offsets_name = command.offsets_array,
          .kitti_times = command.kitti_times,
          .trust_sizes = command.trust_sizes};
}

}  // namespace

void resample_file(const ResampleCommand& command, ResampleReport& report) {
  if (command.plot) fail_without_package("resample --plot");
  num_threads();  // reports a bad TMAOPS_NUM_THREADS for files of every size
  const FileFormat from = input_format(command), to = output_format(command);
  check_options(command, from, to);
  Policies policies = make_policies(command, to);
  const TargetWindow window = parse_window(command);

  // The output is opened before any work, so that a wrong name or a second process is reported at once.
  io::OutputOptions output_options{.force = command.force, .inputs = {command.input}};
  for (const auto& other : {command.times, command.like, command.kitti_times})
    if (other) output_options.inputs.push_back(*other);
  io::OutputFile file(command.output, output_options);
  std::optional<io::OutputFile> times_file;
  if (command.write_times) times_file.emplace(*command.write_times, output_options);

  ResampleInput input = read_input(command, read_options(command, from));
  io::Recording& recording = input.recording;
  warn_of_recording(recording, report.warnings);
  const bool last_wins = command.duplicates.empty() ? from == FileFormat::tum : command.duplicates == "last";
  policies.duplicates = last_wins ? Duplicates::last : Duplicates::error;
  io::check_order(recording, last_wins);
  const ModePlan plan = plan_modes(recording, input.roles, command.modes, command.columns.empty());
  report.warnings.insert(report.warnings.end(), plan.warnings.begin(), plan.warnings.end());
  const ResampleTargets targets = make_targets(command, window, recording);
  const Steps steps = measure_steps(recording, policies.max_gap);
  const TimeSummary time = summarise_times(recording, steps);
  warn_of_targets(command, recording, targets, steps, window, report.warnings);
  const ResampledTable table = resample_table(recording, targets, plan, policies, input.missing);
  const Selection selection = select_rows(recording, targets, table, policies);
  check_something_left(command, recording, targets, table, selection, policies);

  if (command.plot_data) write_plot_data(*command.plot_data, recording, targets, plan, table);
  const bool with_valid = policies.max_gap != 0 || policies.outside_mode == Outside::nan || input.has_mask;
  io::Recording output = make_output(std::move(recording), targets, plan, table, selection, with_valid);
  RunFacts facts{from, to, policies, input, plan, targets, table, selection, steps, time};
  if (to == FileFormat::tum || to == FileFormat::kitti) facts.pose = name_pose(output, input.roles);
  facts.left_out = io::left_out(output, to);
  if (const std::size_t count = report.warnings.size(); command.strict && count != 0)
    fail(ErrorCode::warnings_refused, "--strict", std::to_string(count) + (count == 1 ? " warning" : " warnings"),
         "none");
  io::write_recording(file, output, to,
                      {.deflate = command.compress,
                       .to_unit = io::parse_time_unit(command.to_unit),
                       .trust_sizes = command.trust_sizes});
  if (times_file) {
    io::write_kitti_times(*times_file, output);
    times_file->commit();
    std::erase(facts.left_out, output.time.name);
  }
  file.commit();

  facts.bytes = file.bytes_written();
  write_report(command, facts, report);
  if (command.plot_data) io::write_file(*command.plot_data / "summary.json", report.json);
}

int run_resample(const ResampleCommand& command) {
  const DiscardOnInterrupt interrupts;
  Globals globals;
  globals.quiet = command.quiet;
  ResampleReport report;
  const auto print_warnings = [&] {
    for (const std::string& warning : report.warnings) print_problem("warning: " + warning);
  };
  try {
    resample_file(command, report);
  } catch (const Error&) {
    print_warnings();  // often the reason
    throw;
  }
  for (const std::string& line : report.lines) print_note(globals, line);
  print_warnings();
  if (command.json) print_data(report.json);
  return 0;
}

}  // namespace tmaops::cli
