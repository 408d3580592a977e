#include "cli/resample_policies.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "io/decimal.hpp"
#include "io/file_error.hpp"
#include "io/input_file.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

using io::FileFormat;

[[noreturn]] void refuse(const std::string& option, const std::string& got, const std::string& needed) {
  throw Error(ErrorCode::usage, {.where = option, .got = got, .needed = needed});
}

FileFormat chosen_format(const std::string& name, const std::filesystem::path& path, const std::string& option) {
  if (name.empty()) {
    if (io::is_standard(path))
      throw Error(ErrorCode::usage, {.where = "-",
                                     .got = option == "--from" ? "standard input" : "standard output",
                                     .needed = "its format: npz, csv, tum or kitti",
                                     .mend = "Name it with " + option + ". A file of that name is ./-"});
    return io::file_format_of(path, option);
  }
  if (const auto format = io::parse_file_format(name); format && *format != FileFormat::npy) return *format;
  refuse(option, "'" + io::display_text(name) + "'", "npz, csv, tum or kitti");
}

}  // namespace

FileFormat input_format(const ResampleCommand& command) {
  if (command.kitti_times && command.from.empty()) return FileFormat::kitti;
  return chosen_format(command.from, command.input, "--from");
}

FileFormat output_format(const ResampleCommand& command) {
  const FileFormat to = chosen_format(command.to, command.output, "--to");
  if (to == FileFormat::npy)
    refuse(io::display(command.output), "one npy array", "a format that holds times and values: npz, csv or tum");
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
  for (const auto& [option, unit] : {std::pair{"--time-unit", &command.time_unit},
                                     {"--times-unit", &command.times_unit},
                                     {"--like-unit", &command.like_unit},
                                     {"--to-unit", &command.to_unit}})
    if (!unit->empty() && !io::parse_time_unit(*unit))
      refuse(option, "'" + io::display_text(*unit) + "'", "s, ms, us or ns");
  const bool fixed = to == FileFormat::tum || to == FileFormat::kitti;
  if (fixed && !command.to_unit.empty() && command.to_unit != "s")
    refuse("--to-unit", command.to_unit + " for a " + std::string(io::to_string(to)) + " trajectory", "s, its unit");
  for (const auto& other : {command.times, command.like, command.kitti_times, command.write_times})
    if (other && io::is_standard(*other))
      refuse("-", "a standard stream for another file than IN or OUT", "a file, or /dev/stdin");
  if (command.json && io::is_standard(command.output))
    refuse("--json", "OUT and the JSON on standard output", "a file as OUT, or no --json");
}

Policies make_policies(const ResampleCommand& command, FileFormat to) {
  Policies policies;
  policies.outside = !command.outside.empty() ? command.outside : to == FileFormat::npz ? "nan" : "drop";
  static constexpr std::array<std::pair<std::string_view, Outside>, 5> kPolicies{{{"hold", Outside::hold},
                                                                                  {"nan", Outside::nan},
                                                                                  {"extrapolate", Outside::extrapolate},
                                                                                  {"error", Outside::error},
                                                                                  {"drop", Outside::nan}}};
  const auto known = std::find_if(kPolicies.begin(), kPolicies.end(),
                                  [&](const auto& policy) { return policy.first == policies.outside; });
  if (known == kPolicies.end())
    refuse("--outside", "'" + io::display_text(policies.outside) + "'", "hold, nan, extrapolate, error or drop");
  policies.operation.outside = known->second;
  policies.drop_outside = policies.outside == "drop";
  policies.drop_gaps = to != FileFormat::npz;
  if (!command.duplicates.empty() && command.duplicates != "error" && command.duplicates != "last")
    refuse("--duplicates", "'" + io::display_text(command.duplicates) + "'", "error or last");
  if (command.max_gap) {
    const bool positive = *command.max_gap > 0;
    if (!positive ||
        io::time_from_f64(*command.max_gap, io::TimeUnit::seconds, policies.operation.max_gap) !=
            io::ParseResult::good ||
        policies.operation.max_gap == 0)
      throw Error(
          ErrorCode::bad_parameter,
          {.where = "--max-gap", .got = io::real_text(*command.max_gap), .needed = "from 1e-9 to 9.2e9 seconds"});
  }
  return policies;
}

}  // namespace tmaops::cli
