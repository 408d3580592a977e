#include "cli/resample_files.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

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

}  // namespace

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

}  // namespace tmaops::cli
