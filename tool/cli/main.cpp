// The program: adds the subcommands to the parser, runs the chosen one, turns every failure into its exit code.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/parser_words.hpp"
#include "core/display.hpp"
#include "offers/console.hpp"
#include "tmaops/error.hpp"
#include "tmaops/version.hpp"

namespace tmaops::cli {
namespace {

void add_commands(CLI::App& app, Globals& globals) {
  add_doctor_command(app, globals);
  add_list_command(app, globals);
#ifndef TMAOPS_EXECUTOR
  add_resample_command(app, globals);
#endif
  add_tensormap_command(app, globals);
  add_wgmma_command(app, globals);
  for (const Wing& wing : wings()) wing.add_commands(app, globals);
  add_explain_command(app, globals);
  add_completion_command(app, globals);
  add_missing_commands(app, globals);
}

/// The words that the parser did not take, in their order on the command line.
std::vector<std::string> not_taken(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> left = app.remaining(true);
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const auto found = std::ranges::find(left, argv[i]);
    if (found == left.end()) continue;
    words.emplace_back(argv[i]);
    left.erase(found);
  }
  return words;
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::vector<std::string> words = not_taken(app, argc, argv);
  std::string got = display_text(error.what());
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !words.empty()) {
    got = words.size() == 1 ? "a word that is not known here:" : "words that are not known here:";
    for (const std::string& word : words) got += " " + display_text(word);
  }
  const auto commands = app.get_subcommands();
  return {ErrorCode::usage,
          {.where = (commands.empty() ? &app : commands.front())->get_name(),
           .got = got,
           .needed = "",
           .mend = advice(app, words, error.what())}};
}

/// Opens /dev/null for a closed stdin, stdout or stderr (`tmaops bench ... 2>&-`). Otherwise the next file that is
/// opened would get that number, and messages would go into a result file.
void open_standard_streams() {
  for (int number = 0; number <= STDERR_FILENO; ++number)
    if (fcntl(number, F_GETFD) == -1) [[maybe_unused]]
      const int opened = open("/dev/null", O_RDWR);  // gets the lowest free number, which is this one
}

int run(int argc, char** argv, Globals& globals) {
  CLI::App app{"GEMM, multi-scale deformable attention and trajectory resampling: run, check and time them.", "tmaops"};
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.set_version_flag("--version", "tmaops " + std::string(version()) + " (" + std::string(revision()) + ")",
                       "Print version and git revision");
  app.add_flag("--json", globals.json, "Print data as JSON");
  app.add_flag("-q,--quiet", globals.quiet, "Print only data and failures");
  app.add_option("--color", globals.color, "Colour: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN");
  app.footer(
      "Exit codes: 0 done, 1 a check failed, 2 bad usage or input, 3 finished in part, 4 device not there,\n"
      "5 out of memory, 130 interrupted. `tmaops explain E012` explains an error.");
  add_commands(app, globals);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(error, text, text);
      print_data(wrapped(text.str(), line_width(Stream::data)));
      return 0;
    }
    throw usage_error(app, error, argc, argv);
  }
  if (!globals.run) {
    print_data(wrapped(app.help(), line_width(Stream::data)));
    return 0;
  }
  return globals.run();
}

/// The message of an error: its first line is its number and title, the others begin with a word and a colon.
int fail(const Error& error, const Globals& globals) {
  const bool color = use_color(globals, Stream::notes);
  const std::string text = display_lines(error.what());
  const std::size_t title = std::min(text.size(), error.number().size() + 1 + error_page(error.code()).title.size());
  print_styled("tmaops: " + styled(text.substr(0, title), Style::bad, color) + text.substr(title) + "\n");
  return error.exit_code();
}

}  // namespace
}  // namespace tmaops::cli

int main(int argc, char** argv) {
  using tmaops::Error;
  using tmaops::ErrorCode;
  std::signal(SIGPIPE, SIG_IGN);  // print_data() notices a reader that has ended
  tmaops::cli::open_standard_streams();
  tmaops::cli::Globals globals;
  try {
    return tmaops::cli::run(argc, argv, globals);
  } catch (const Error& error) {
    return tmaops::cli::fail(error, globals);
  } catch (const std::bad_alloc&) {
    return tmaops::cli::fail(Error(ErrorCode::out_of_memory, {.where = "", .got = "", .needed = ""}), globals);
  } catch (const std::exception& error) {
    return tmaops::cli::fail(Error(ErrorCode::internal, {.where = "", .got = error.what(), .needed = ""}), globals);
  }
}
