#include "cli/resample.hpp"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"

namespace tmaops::cli {

void add_resample_command(CLI::App& app, Globals& globals) {
  auto options = std::make_shared<ResampleCommand>();
  CLI::App* command = app.add_subcommand("resample", "Bring a recorded trajectory onto other times");
  command->add_option("IN", options->input, "Recording: .npz, .csv, .tsv, or a TUM trajectory (.tum, .txt)")
      ->required();
  command->add_option("-o,--output", options->output, "File to write; its extension names the format")
      ->required()
      ->type_name("OUT");
  CLI::Option_group* targets = command->add_option_group("Targets", "the times to resample to, one of");
  targets->add_option("--hz", options->hz, "This many samples per second, from the first stamp to the last");
  targets->add_option("--times", options->times, "The times in FILE: npy, npz, csv, or text with one stamp per line")
      ->type_name("FILE");
  targets->add_option("--like", options->like, "The times of another recording")->type_name("FILE");
  targets->require_option(1);
  command
      ->add_option("--mode", options->modes,
                   "COLUMNS=MODE: linear, previous, next, nearest, cubic or slerp for these columns; or just MODE "
                   "for all columns of real numbers. May be given several times, the last one wins")
      ->allow_extra_args(false)
      ->type_name("SPEC");
  command->add_option("--max-gap", options->max_gap, "No interpolation between samples further apart than SECONDS")
      ->type_name("SECONDS");
  command
      ->add_option("--outside", options->outside,
                   "Targets outside the recording: hold, nan, extrapolate, error, drop [npz: nan, text: drop]")
      ->check(CLI::IsMember({"hold", "nan", "extrapolate", "error", "drop"}))
      ->type_name("POLICY");
  command
      ->add_option("--duplicates", options->duplicates,
                   "Samples with equal stamps: error, or the last one wins [tum: last, else: error]")
      ->check(CLI::IsMember({"error", "last"}))
      ->type_name("POLICY");
  command->add_option("--from", options->from, "Format of IN, when its extension does not say: npz, csv, tum")
      ->check(CLI::IsMember({"npz", "csv", "tum"}))
      ->type_name("FORMAT");
  command->add_option("--to", options->to, "Format of OUT")
      ->check(CLI::IsMember({"npz", "csv", "tum"}))
      ->type_name("FORMAT");
  command
      ->add_option("--time-unit", options->time_unit,
                   "Unit of all times read [text and floats: s, integers in npz: ns]")
      ->check(CLI::IsMember({"s", "ms", "us", "ns"}))
      ->type_name("UNIT");
  command->add_option("--times-array", options->times_array, "Name of the time array or column in IN")
      ->type_name("NAME");
  command->add_option("--targets-array", options->targets_array, "Name of the time array or column in FILE")
      ->type_name("NAME");
  command->add_option("--offsets-array", options->offsets_array, "npz: name of the array of episode offsets")
      ->type_name("NAME");
  command->add_flag("--compress", options->compress, "npz: deflate the arrays");
  command->add_flag("-f,--force", options->force, "Replace OUT when it exists");
  command->footer(
      "Example: tmaops resample groundtruth.txt -o at30hz.txt --hz 30 --max-gap 1\n"
      "Defaults: real numbers linear, quaternions (qx qy qz qw) slerp, integers, booleans and text previous.\n"
      "docs/resample_command.md has it all.");
  command->callback([&globals, options] {
    globals.run = [&globals, options] {
      options->json = globals.json;
      options->quiet = globals.quiet;
      return run_resample(*options);
    };
  });
}

}  // namespace tmaops::cli
