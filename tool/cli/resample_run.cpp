// The steps of `tmaops resample`: claim the output, read, resample, write, summarise.

#include "cli/commands.hpp"
#include "cli/resample_files.hpp"
#include "core/fail.hpp"
#include "io/recording.hpp"
#include "offers/console.hpp"
#include "offers/interrupt.hpp"
#include "offers/output_file.hpp"
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
          .trust_sizes = command.trust_sizes,
          .skip_lines = command.skip_lines};
}

}  // namespace

void resample_file(const ResampleCommand& command, ResampleReport& report) {
  if (command.plot) fail_without_package("resample --plot");
  num_threads();  // reports a bad TMAOPS_NUM_THREADS for files of every size
  const FileFormat from = input_format(command), to = output_format(command);
  check_options(command, from, to);
  const recording::Defaults defaults = defaults_of(from, to);
  make_policies(command, defaults);
  parse_window(command);

  // The output is opened before any work, so that a wrong name or a second process is reported at once.
  io::OutputOptions output_options{.force = command.force, .inputs = {command.input}};
  for (const auto& other : {command.times, command.like, command.kitti_times})
    if (other) output_options.inputs.push_back(*other);
  io::OutputFile file(command.output, output_options);
  std::optional<io::OutputFile> times_file;
  if (command.write_times) times_file.emplace(*command.write_times, output_options);

  io::Recording recording = io::read_recording(command.input, read_options(command, from));
  const std::optional<recording::GivenTargets> given = read_targets(command);
  const Run run = resample_recording(recording, command, defaults, given ? &*given : nullptr, report.warnings);
  if (!command.columns.empty()) recording.named = true;  // the chosen columns have names, whatever the file had
  if (command.plot_data) write_plot_data(*command.plot_data, recording, run);
  replace_rows(recording, run.targets, run.rules.plan, run.table, run.selection, run.with_valid);
  RunFacts facts{from, to, run, given ? given->text : ""};
  if (to == FileFormat::tum || to == FileFormat::kitti) facts.pose = name_pose(recording, run.rules.input.roles);
  facts.left_out = io::left_out(recording, to);
  check_strict(command, report.warnings);
  io::write_recording(file, recording, to,
                      {.deflate = command.compress,
                       .to_unit = io::parse_time_unit(command.to_unit),
                       .trust_sizes = command.trust_sizes});
  if (times_file) {
    io::write_kitti_times(*times_file, recording);
    times_file->commit();
    std::erase(facts.left_out, recording.time.name);
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
    for (const recording::Note& warning : report.warnings) print_problem("warning: " + warning.text);
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
