#include "cli/resample.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <set>

#include "cli/commands.hpp"

namespace tmaops::cli {

void add_resample_command(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<ResampleCommand>();
  CLI::App* command = app.add_subcommand("resample", "Bring a recorded trajectory onto other times");
  const std::set<std::string> formats{"npz", "csv", "tum", "kitti"}, units{"s", "ms", "us", "ns"};
  const auto add = [command](const char* name, auto& value, const char* type, const std::string& help) {
    return command->add_option(name, value, help)->type_name(type);
  };
  command
      ->add_option("IN", options->input,
                   "Recording: .npz, .csv, .tsv, or a TUM trajectory (.tum, .txt), also .gz; - is standard input")
      ->required();
  add("-o,--output", options->output, "OUT", "File to write; its extension names the format; - is standard output")
      ->required();
  CLI::Option_group* targets = command->add_option_group("Targets", "the times to resample to, one of");
  targets->add_option("--hz", options->hz, "This many samples per second, from the first timestamp to the last");
  targets->add_option("--times", options->times, "The times in FILE: npy, npz, csv, or text with one per line")
      ->type_name("FILE");
  targets->add_option("--like", options->like, "The times of another recording")->type_name("FILE");
  targets->require_option(1);
  add("--start", options->start, "TIME", "First target: seconds of the recording's clock, or an ISO 8601 time");
  add("--end", options->end, "TIME", "Last target");
  command->add_flag("--align", options->align, "--hz: the grid begins at a multiple of its period");
  add("--snap", options->snap, "SECONDS", "A target this near a sample takes the sample's values in every mode [0]");
  add("--columns", options->columns, "LIST",
      "Only these columns, in this order: a list with commas of COLUMN and NEW=COLUMN; * is all others");
  add("--mode", options->modes, "SPEC",
      "COLUMNS=MODE: linear, previous, next, nearest, cubic, slerp or angle for these columns, or over the interval of "
      "a target mean, sum, min, max, any, count or lowpass; or just MODE for all columns of real numbers. May be given "
      "several times, the last one wins")
      ->allow_extra_args(false);
  add("--max-gap", options->max_gap, "SECONDS", "No interpolation between samples further apart than SECONDS");
  add("--outside", options->outside, "POLICY",
      "Targets outside the recording: hold, nan, extrapolate, error, drop [npz: nan, text: drop]")
      ->check(CLI::IsMember({"hold", "nan", "extrapolate", "error", "drop"}));
  add("--duplicates", options->duplicates, "POLICY",
      "Samples with equal timestamps: error, or the last one wins [tum: last, else: error]")
      ->check(CLI::IsMember({"error", "last"}));
  add("--offset", options->offset, "SECONDS", "Add this to the times of IN, whose clock is behind [0]");
  add("--skip-lines", options->skip_lines, "N", "Text: leave out N lines above the header [0]")
      ->check(CLI::NonNegativeNumber);
  add("--group", options->group, "COLUMN", "Rows of each value of this column are an episode");
  command->add_flag("--sort", options->sort, "Sort the rows by time, within each episode");
  add("--from", options->from, "FORMAT", "Format of IN, when its extension does not say: npz, csv, tum, kitti")
      ->check(CLI::IsMember(formats));
  add("--to", options->to, "FORMAT", "Format of OUT")->check(CLI::IsMember(formats));
  add("--kitti-times", options->kitti_times, "FILE", "Timestamps of a KITTI trajectory, one per line");
  add("--write-times", options->write_times, "FILE",
      "--to kitti: the timestamps of OUT, one per line, to another file");
  add("--time-unit", options->time_unit, "UNIT",
      "Unit of the times in IN, and in FILE where nothing there says it [text and floats: s, integers in npz: ns]")
      ->check(CLI::IsMember(units));
  add("--times-unit", options->times_unit, "UNIT", "Unit of the times in the file of --times")
      ->check(CLI::IsMember(units));
  add("--like-unit", options->like_unit, "UNIT", "Unit of the times in the file of --like")
      ->check(CLI::IsMember(units));
  add("--to-unit", options->to_unit, "UNIT", "Unit of the times in OUT [as in IN]")->check(CLI::IsMember(units));
  add("--times-array", options->times_array, "NAME", "Name of the time array or column in IN");
  add("--targets-array", options->targets_array, "NAME", "Name of the time array or column in FILE");
  add("--offsets-array", options->offsets_array, "NAME", "npz: name of the array of episode offsets");
  add("--plot", options->plot, "PAGE", "Draw the recording before and after, with its gaps, as HTML (Python package)");
  add("--plot-data", options->plot_data, "FOLDER", "What the Python package draws")->group("");  // not listed
  command->add_flag("--trust-sizes", options->trust_sizes, "No limit on how far compressed data may expand");
  command->add_flag("--compress", options->compress, "npz: deflate the arrays");
  command->add_flag("-f,--force", options->force, "Replace OUT when it exists");
  command->add_flag("--strict", options->strict, "A warning is an error: exit code 2, nothing written");
  command->footer(
      "Example: tmaops resample groundtruth.txt -o at30hz.txt --hz 30 --max-gap 1\n"
      "Defaults: real numbers linear, quaternions (qx qy qz qw, orientation.x, eef_quat) slerp, rewards sum, flags of "
      "an\n"
      "episode's end any, other integers, booleans and text previous. docs/resample_command.md has it all.");
  set_run(*command, globals, [&globals, options] {
    options->json = globals.json;
    options->quiet = globals.quiet;
    return run_resample(*options);
  });
}

}  // namespace tmaops::cli
