// The steps of `tmaops resample`: claim the output, read, plan, resample, select rows, write, summarise.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/interrupt.hpp"
#include "cli/resample.hpp"
#include "cli/resample_modes.hpp"
#include "cli/resample_table.hpp"
#include "cli/resample_targets.hpp"
#include "io/file_error.hpp"
#include "io/output_file.hpp"
#include "io/recording.hpp"
#include "tmaops/error.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::cli {
namespace {

using io::FileFormat;

// A step this much longer than the median one is worth a word when nothing says what to do with gaps.
constexpr std::int64_t kRemarkableStep = 20;

struct Policies {
  ResamplePolicies operation{};
  std::string outside{};
  bool drop_outside = false;
  bool drop_gaps = false;
};

/// An array that nothing reads is a misunderstanding: `--offsets-array` on a text file would join what it should
/// separate.
void refuse_idle_names(const ResampleCommand& command, FileFormat from) {
  const auto refuse = [](const char* option, const std::string& got, const char* needed) {
    throw Error(ErrorCode::usage, {.where = option, .got = got, .needed = needed});
  };
  if (!command.offsets_array.empty() && from != FileFormat::npz)
    refuse("--offsets-array", "a " + std::string(io::to_string(from)) + " recording", "an npz recording");
  if (!command.targets_array.empty() && command.hz) refuse("--targets-array", "--hz", "--times or --like");
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
    throw Error(ErrorCode::usage, {.where = "--outside",
                                   .got = "'" + io::display_text(policies.outside) + "'",
                                   .needed = "hold, nan, extrapolate, error or drop"});
  policies.operation.outside = known->second;
  policies.drop_outside = policies.outside == "drop";
  policies.drop_gaps = to != FileFormat::npz;
  if (!command.duplicates.empty() && command.duplicates != "error" && command.duplicates != "last")
    throw Error(
        ErrorCode::usage,
        {.where = "--duplicates", .got = "'" + io::display_text(command.duplicates) + "'", .needed = "error or last"});
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

FileFormat chosen_format(const std::string& name, const std::filesystem::path& path, const char* option) {
  if (name.empty()) return io::file_format_of(path, option);
  if (const auto format = io::parse_file_format(name); format && *format != FileFormat::npy) return *format;
  throw Error(ErrorCode::usage,
              {.where = option, .got = "'" + io::display_text(name) + "'", .needed = "npz, csv or tum"});
}

/// Fate of every target.
struct Selection {
  std::vector<std::int64_t> kept{};
  std::vector<std::int64_t> offsets{0};  // of the kept ones, per episode
  std::int64_t outside = 0;
  std::int64_t in_gaps = 0;
};

Selection select_rows(const io::Recording& recording, const ResampleTargets& targets, const ResampledTable& table,
                      const Policies& policies) {
  Selection selection;
  for (std::size_t e = 0; e + 1 < targets.offsets.size(); ++e) {
    const auto first = recording.times.begin() + recording.offsets[e];
    const auto end = recording.times.begin() + recording.offsets[e + 1];
    for (std::int64_t t = targets.offsets[e]; t < targets.offsets[e + 1]; ++t) {
      const std::int64_t time = targets.times[static_cast<std::size_t>(t)];
      const bool outside = first == end || time < *first || time > *(end - 1);
      const bool in_gap = !outside && table.valid[static_cast<std::size_t>(t)] == 0;
      selection.outside += outside;
      selection.in_gaps += in_gap;
      if (!(outside && policies.drop_outside) && !(in_gap && policies.drop_gaps)) selection.kept.push_back(t);
    }
    selection.offsets.push_back(static_cast<std::int64_t>(selection.kept.size()));
  }
  return selection;
}

/// The steps between neighbouring samples of an episode.
struct Steps {
  std::int64_t longest = 0, median = 0, wider_than_gap = 0, zero = 0;
};

Steps measure_steps(const io::Recording& recording, std::int64_t max_gap) {
  std::vector<std::int64_t> all;
  for (std::size_t e = 0; e + 1 < recording.offsets.size(); ++e)
    for (std::int64_t row = recording.offsets[e] + 1; row < recording.offsets[e + 1]; ++row) {
      std::int64_t step = 0;
      if (__builtin_sub_overflow(recording.times[static_cast<std::size_t>(row)],
                                 recording.times[static_cast<std::size_t>(row - 1)], &step))
        continue;  // the operator has an error for it
      all.push_back(step);
    }
  if (all.empty()) return {};
  Steps steps;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  steps.median = *middle;
  steps.longest = *std::max_element(all.begin(), all.end());
  steps.wider_than_gap = max_gap == 0 ? 0 : std::count_if(all.begin(), all.end(), [&](auto s) { return s > max_gap; });
  steps.zero = std::count(all.begin(), all.end(), 0);
  return steps;
}

std::string seconds(std::int64_t nanoseconds) {
  return io::time_text(nanoseconds, io::TimeUnit::seconds, io::digits_needed({nanoseconds}, io::TimeUnit::seconds)) +
         " s";
}

void check_something_left(const io::Recording& recording, const ResampleTargets& targets, const Selection& selection,
                          const Policies& policies) {
  const auto count = static_cast<std::int64_t>(targets.times.size());
  const bool fills = policies.outside == "hold" || policies.outside == "extrapolate";
  const auto [first, last] = std::minmax_element(recording.times.begin(), recording.times.end());
  const auto [from, to] = std::minmax_element(targets.times.begin(), targets.times.end());
  if (selection.outside == count && !fills)
    throw Error(ErrorCode::target_outside,
                {.where = recording.where,
                 .got = "all " + std::to_string(count) + " targets, from " + seconds(*from) + " to " + seconds(*to),
                 .needed = "targets within the recording, from " + seconds(*first) + " to " + seconds(*last),
                 .mend = "Check that both files count time from the same start in the same unit (--time-unit)."});
  if (selection.outside + selection.in_gaps == count && !fills)
    throw Error(ErrorCode::bad_parameter, {.where = "--max-gap",
                                           .got = "no target with samples near enough on both sides",
                                           .needed = "a limit above the usual step of the recording"});
}

io::Recording make_output(io::Recording&& recording, const ResampleTargets& targets, const ModePlan& plan,
                          const ResampledTable& table, const Selection& selection, bool with_valid) {
  std::vector<io::Array> columns;
  for (std::size_t c = 0; c < recording.columns.size(); ++c)
    columns.push_back(output_column(recording, c, plan, table, selection.kept));
  io::Recording output = std::move(recording);
  for (std::size_t c = 0; c < columns.size(); ++c) output.columns[c].data = std::move(columns[c]);
  output.times.clear();
  output.lines.clear();
  for (const std::int64_t t : selection.kept) {
    output.times.push_back(targets.times[static_cast<std::size_t>(t)]);
    if (with_valid) output.valid.push_back(table.valid[static_cast<std::size_t>(t)]);
  }
  output.offsets = selection.offsets;
  return output;
}

void print_summary(const ResampleCommand& command, const nlohmann::ordered_json& summary,
                   const std::vector<std::string>& remarks) {
  Globals globals;
  globals.quiet = command.quiet;
  for (const std::string& remark : remarks) print_note(globals, remark);
  // Names of columns are bytes of a file: what is not UTF-8 must not break the JSON.
  if (command.json) print_data(summary.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace

int run_resample(const ResampleCommand& command) {
  const DiscardOnInterrupt interrupts;
  num_threads();  // a bad TMAOPS_NUM_THREADS is an error here and not only for files large enough for threads
  io::ReadOptions read;
  read.format = chosen_format(command.from, command.input, "--from");
  const FileFormat to = chosen_format(command.to, command.output, "--to");
  if (to == FileFormat::npy)
    throw Error(ErrorCode::usage, {.where = io::display(command.output),
                                   .got = "one npy array",
                                   .needed = "a format that holds times and values: npz, csv or tum"});
  read.unit = io::parse_time_unit(command.time_unit);
  read.times_name = command.times_array;
  read.offsets_name = command.offsets_array;
  if (!command.time_unit.empty() && !read.unit)
    throw Error(
        ErrorCode::usage,
        {.where = "--time-unit", .got = "'" + io::display_text(command.time_unit) + "'", .needed = "s, ms, us or ns"});
  refuse_idle_names(command, *read.format);
  Policies policies = make_policies(command, to);

  // The output is claimed before any work, so that a wrong name or a second process is noticed at once.
  io::OutputOptions output_options{.force = command.force, .inputs = {command.input}};
  for (const auto& other : {command.times, command.like})
    if (other) output_options.inputs.push_back(*other);
  io::OutputFile file(command.output, output_options);

  io::Recording recording = io::read_recording(command.input, read);
  const FileFormat from = recording.format;
  if (recording.rows() == 0)
    throw Error(ErrorCode::empty_trajectory,
                {.where = recording.where, .got = "no samples", .needed = "at least one sample"});
  policies.operation.duplicates =
      command.duplicates == "last" || (command.duplicates.empty() && from == FileFormat::tum) ? Duplicates::last
                                                                                              : Duplicates::error;
  io::check_order(recording, policies.operation.duplicates == Duplicates::last);
  const ModePlan plan = plan_modes(recording, command.modes);
  const ResampleTargets targets = make_targets(command, recording);
  const Steps steps = measure_steps(recording, policies.operation.max_gap);
  const ResampledTable table = resample_table(recording, targets, plan, policies.operation);
  const Selection selection = select_rows(recording, targets, table, policies);
  check_something_left(recording, targets, selection, policies);

  const std::int64_t rows_in = recording.rows();
  const auto count = static_cast<std::int64_t>(targets.times.size());
  const auto kept = static_cast<std::int64_t>(selection.kept.size());
  const bool with_valid = policies.operation.max_gap != 0 || policies.operation.outside == Outside::nan;
  io::Recording output = make_output(std::move(recording), targets, plan, table, selection, with_valid);
  if (command.output.extension() == ".tsv") output.delimiter = '\t';
  io::write_recording(file, output, to, command.compress);
  file.commit();

  nlohmann::ordered_json columns = nlohmann::ordered_json::array();
  std::string modes;
  for (const auto& [name, mode] : plan.summary) {
    columns.push_back({{"name", name}, {"mode", mode}});
    modes += (modes.empty() ? "" : ", ") + io::display_text(name) + " " + mode;
  }
  std::vector<std::string> remarks{io::display(command.output) + ": " + std::to_string(kept) + " rows from " +
                                       std::to_string(rows_in) + " samples, " +
                                       std::to_string(output.offsets.size() - 1) +
                                       (output.offsets.size() == 2 ? " episode" : " episodes"),
                                   "  modes: " + modes};
  std::string left_out;
  for (const std::string& name : io::left_out(output, to))
    left_out += (left_out.empty() ? "" : ", ") + io::display_text(name);
  if (!left_out.empty())
    remarks.push_back("  left out, since " + std::string(io::to_string(to)) + " has no place for them: " + left_out);
  if (selection.outside != 0)
    remarks.push_back("  " + std::to_string(selection.outside) + " of " + std::to_string(count) +
                      " targets lie outside the recording: " + policies.outside);
  if (policies.operation.max_gap != 0)
    remarks.push_back("  " + std::to_string(selection.in_gaps) + " of " + std::to_string(count) + " targets lie in " +
                      std::to_string(steps.wider_than_gap) +
                      (steps.wider_than_gap == 1 ? " gap wider than " : " gaps wider than ") +
                      seconds(policies.operation.max_gap) + ": " +
                      (policies.drop_gaps ? "dropped" : "NaN, and 0 in the array 'valid'"));
  if (steps.zero != 0)
    remarks.push_back("  " + std::to_string(steps.zero) + (steps.zero == 1 ? " pair" : " pairs") +
                      " of samples with equal stamps: the later one wins (--duplicates error refuses)");
  if (policies.operation.max_gap == 0 && steps.longest > kRemarkableStep * std::max<std::int64_t>(steps.median, 1))
    remarks.push_back("  the longest step is " + seconds(steps.longest) + ", the median one " + seconds(steps.median) +
                      ": --max-gap SECONDS keeps it from being interpolated across");
  nlohmann::ordered_json summary{
      {"schema", 1},
      {"input", io::display(command.input)},
      {"output", io::display(command.output)},
      {"from", io::to_string(from)},
      {"to", io::to_string(to)},
      {"samples", rows_in},
      {"episodes", output.offsets.size() - 1},
      {"targets", count},
      {"rows", kept},
      {"outside", {{"policy", policies.outside}, {"targets", selection.outside}}},
      {"gaps",
       {{"max_gap_ns", policies.operation.max_gap}, {"count", steps.wider_than_gap}, {"targets", selection.in_gaps}}},
      {"longest_step_ns", steps.longest},
      {"equal_stamps", steps.zero},
      {"columns", columns},
      {"variant", table.variant},
      {"bytes", file.bytes_written()}};
  print_summary(command, summary, remarks);
  return 0;
}

}  // namespace tmaops::cli
