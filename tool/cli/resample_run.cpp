// The steps of `tmaops resample`: check the options, claim the output, read, resample, write, summarise.

#include "cli/commands.hpp"
#include "cli/resample_files.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "io/recording.hpp"
#include "offers/console.hpp"
#include "offers/input_file.hpp"
#include "offers/interrupt.hpp"
#include "offers/output_file.hpp"
#include "tmaops/error.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::cli {
namespace {

using io::FileFormat;

[[noreturn]] void refuse_option(const std::string& option, const std::string& got, const std::string& needed) {
  fail(ErrorCode::usage, option, got, needed);
}

FileFormat chosen_format(const std::string& name, const std::filesystem::path& path, const std::string& option) {
  const auto named = io::parse_file_format(name);
  return named ? *named : io::file_format_of(path, option);
}

/// The formats that the options or extensions name. The parser has checked the words of all options. Throws Error
/// usage.
FileFormat input_format(const ResampleCommand& command) {
  if (command.kitti_times && command.from.empty()) return FileFormat::kitti;
  return chosen_format(command.from, command.input, "--from");
}

FileFormat output_format(const ResampleCommand& command) {
  const FileFormat to = chosen_format(command.to, command.output, "--to");
  if (to == FileFormat::npy)
    refuse_option(display(command.output), "one npy array", "a format that holds times and values: npz, csv or tum");
  return to;
}

/// Refuses options without effect. Throws Error usage.
void check_options(const ResampleCommand& command, FileFormat from, FileFormat to) {
  // An option without effect is an error: with `--offsets-array` on a text file the user expects episodes.
  const std::string format(io::to_string(from));
  if (!command.offsets_array.empty() && from != FileFormat::npz)
    refuse_option("--offsets-array", "a " + format + " recording", "an npz recording");
  if (!command.targets_array.empty() && command.hz) refuse_option("--targets-array", "--hz", "--times or --like");
  if (!command.times_unit.empty() && !command.times) refuse_option("--times-unit", "no --times", "--times FILE");
  if (!command.like_unit.empty() && !command.like) refuse_option("--like-unit", "no --like", "--like FILE");
  if (command.kitti_times && from != FileFormat::kitti)
    refuse_option("--kitti-times", "a " + format + " recording", "a KITTI trajectory (--from kitti)");
  if (command.write_times && to != FileFormat::kitti)
    refuse_option("--write-times", "a " + std::string(io::to_string(to)) + " output",
                  "--to kitti, which has no place for times");
  const bool fixed = to == FileFormat::tum || to == FileFormat::kitti;
  if (fixed && !command.to_unit.empty() && command.to_unit != "s")
    refuse_option("--to-unit", command.to_unit + " for a " + std::string(io::to_string(to)) + " trajectory",
                  "s, its unit");
  for (const auto& other : {command.times, command.like, command.kitti_times, command.write_times})
    if (other && io::is_standard(*other))
      refuse_option("-", "a standard stream for another file than IN or OUT", "a file, or /dev/stdin");
  if (command.json && io::is_standard(command.output))
    refuse_option("--json", "OUT and the JSON on standard output", "a file as OUT, or no --json");
}

/// What holds between these formats where no option says it.
recording::Defaults defaults_of(FileFormat from, FileFormat to) {
  const bool archive = to == FileFormat::npz;
  return {archive ? "nan" : "drop", from == FileFormat::tum, !archive};
}

/// The file of --times or --like. Its unit is the one of --times-unit or --like-unit; else the one that the file itself
/// states; else that of --time-unit.
io::Recording read_target_file(const ResampleCommand& command, const std::filesystem::path& path) {
  const std::string unit_option = command.times ? "--times-unit" : "--like-unit";
  io::ReadOptions options;
  options.unit = io::parse_time_unit(command.times ? command.times_unit : command.like_unit);
  options.format_option = "an extension";
  options.times_name = command.targets_array;
  options.times_option = "--targets-array";
  options.trust_sizes = command.trust_sizes;
  try {
    io::Recording file = io::read_times_only(path, options);
    if (command.like && io::file_format_of(path, options.format_option) == io::FileFormat::tum && !options.unit) {
      file.time.choice = io::TimeChoice::format;
      file.time.unit_source = io::UnitSource::format;  // a trajectory is in seconds
    }
    if (options.unit || command.time_unit.empty() || file.time.unit_source < io::UnitSource::step) return file;
    options.unit = io::parse_time_unit(command.time_unit);
    return io::read_times_only(path, options);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::empty_trajectory)
      fail(ErrorCode::bad_parameter, display(path), "no target times", "at least one target");
    if (error.code() != ErrorCode::time_overflow) throw;
    ErrorDetails details = error.details();
    details.mend = "Name the unit of this file with " + unit_option + ".";
    throw Error(error.code(), details);
  }
}

/// The targets of --times or --like; nothing with --hz. Throws what reading the file throws.
std::optional<recording::GivenTargets> read_targets(const ResampleCommand& command) {
  if (!command.times && !command.like) return {};
  const std::filesystem::path& path = command.times ? *command.times : *command.like;
  const io::Recording file = read_target_file(command, path);
  recording::GivenTargets given{.times = file.times,
                                .option = command.times ? "--times" : "--like",
                                .unit_option = command.times ? "--times-unit" : "--like-unit",
                                .where = display(path)};
  given.time = file.time;
  const bool own_unit = !command.times_unit.empty() || !command.like_unit.empty();
  given.text = given.where + ", " +
               summarise_times(file, {}).text("--targets-array", own_unit ? given.unit_option : "--time-unit");
  for (const recording::Note& warning : file.warnings)
    given.warnings.push_back({warning.id, given.where + ": " + warning.text});
  return given;
}

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
