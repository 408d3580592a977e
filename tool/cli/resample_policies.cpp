
#include "cli/resample_files.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"
#include "offers/input_file.hpp"

namespace tmaops::cli {
namespace {

using io::FileFormat;

[[noreturn]] void refuse(const std::string& option, const std::string& got, const std::string& needed) {
  fail(ErrorCode::usage, option, got, needed);
}

FileFormat chosen_format(const std::string& name, const std::filesystem::path& path, const std::string& option) {
  const auto named = io::parse_file_format(name);
  return named ? *named : io::file_format_of(path, option);
}

}  // namespace

FileFormat input_format(const ResampleCommand& command) {
  if (command.kitti_times && command.from.empty()) return FileFormat::kitti;
  return chosen_format(command.from, command.input, "--from");
}

FileFormat output_format(const ResampleCommand& command) {
  const FileFormat to = chosen_format(command.to, command.output, "--to");
  if (to == FileFormat::npy)
    refuse(display(command.output), "one npy array", "a format that holds times and values: npz, csv or tum");
  return to;
}

void check_options(const ResampleCommand& command, FileFormat from, FileFormat to) {
  // An option without effect is an error: with `--offsets-array` on a text file the user expects episodes.
  const std::string format(io::to_string(from));
  if (!command.offsets_array.empty() && from != FileFormat::npz)
    refuse("--offsets-array", "a " + format + " recording", "an npz recording");
  if (!command.targets_array.empty() && command.hz) refuse("--targets-array", "--hz", "--times or --like");
  if (!command.times_unit.empty() && !command.times) refuse("--times-unit", "no --times", "--times FILE");
  if (!command.like_unit.empty() && !command.like) refuse("--like-unit", "no --like", "--like FILE");
  if (command.kitti_times && from != FileFormat::kitti)
    refuse("--kitti-times", "a " + format + " recording", "a KITTI trajectory (--from kitti)");
  if (command.write_times && to != FileFormat::kitti)
    refuse("--write-times", "a " + std::string(io::to_string(to)) + " output",
           "--to kitti, which has no place for times");
  const bool fixed = to == FileFormat::tum || to == FileFormat::kitti;
  if (fixed && !command.to_unit.empty() && command.to_unit != "s")
    refuse("--to-unit", command.to_unit + " for a " + std::string(io::to_string(to)) + " trajectory", "s, its unit");
  for (const auto& other : {command.times, command.like, command.kitti_times, command.write_times})
    if (other && io::is_standard(*other))
      refuse("-", "a standard stream for another file than IN or OUT", "a file, or /dev/stdin");
  if (command.json && io::is_standard(command.output))
    refuse("--json", "OUT and the JSON on standard output", "a file as OUT, or no --json");
}

recording::Defaults defaults_of(FileFormat from, FileFormat to) {
  const bool archive = to == FileFormat::npz;
  return {archive ? "nan" : "drop", from == FileFormat::tum, !archive};
}

}  // namespace tmaops::cli
