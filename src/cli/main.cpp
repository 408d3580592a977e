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
#include "cli/console.hpp"
#include "core/spelling.hpp"
#include "tmaops/error.hpp"
#include "tmaops/version.hpp"

namespace tmaops::cli {
namespace {

void add_commands(CLI::App& app, Globals& globals) {
  add_doctor_command(app, globals);
  add_list_command(app, globals);
  add_bench_command(app, globals);
  add_verify_command(app, globals);
  add_resample_command(app, globals);
  add_tensormap_command(app, globals);
  add_probe_command(app, globals);
  add_explain_command(app, globals);
  add_completion_command(app, globals);
}

/// The subcommand that was chosen, or the program itself.
const CLI::App& chosen(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

/// What a word that the parser does not know may have been meant to be.
std::string advice(const CLI::App& app, const std::string& message) {
  const CLI::App& command = chosen(app);
  std::vector<std::string> owned;
  for (const CLI::App* level : {&app, &command}) {
    for (const CLI::Option* option : level->get_options())
      for (const std::string& name : option->get_lnames()) owned.push_back("--" + name);
  }
  for (const CLI::App* other : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); }))
    owned.push_back(other->get_name());
  const std::vector<std::string_view> known(owned.begin(), owned.end());
  const std::size_t colon = message.rfind(": ");
  std::string word = colon == std::string::npos ? message : message.substr(colon + 2);
  word = word.substr(0, word.find_first_of("= "));
  const bool misspelt = std::ranges::find(known, word) == known.end();
  const std::string hint = misspelt ? did_you_mean(word, known) : "";
  const std::string help = &command == &app ? "`tmaops --help`" : "`tmaops " + command.get_name() + " --help`";
  return hint + (hint.empty() ? "" : " ") + "See " + help + ".";
}

/// A program started with a closed stdin, stdout or stderr (`tmaops bench ... 2>&-`) would get that number for the next
/// file it opens, and write its messages into its own result file.
void open_standard_streams() {
  for (int number = 0; number <= STDERR_FILENO; ++number)
    if (fcntl(number, F_GETFD) == -1) [[maybe_unused]]
      const int opened = open("/dev/null", O_RDWR);  // the lowest number that is free: this one
}

int run(int argc, char** argv) {
  Globals globals;
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
      print_data(text.str());
      return 0;
    }
    throw Error(
        ErrorCode::usage,
        {.where = chosen(app).get_name(), .got = error.what(), .needed = "", .mend = advice(app, error.what())});
  }
  if (!globals.run) {
    print_data(app.help());
    return 0;
  }
  return globals.run();
}

int fail(const Error& error) {
  print_problem(std::string("tmaops: ") + error.what());
  return error.exit_code();
}

}  // namespace
}  // namespace tmaops::cli

int main(int argc, char** argv) {
  using tmaops::Error;
  using tmaops::ErrorCode;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that left is noticed at the write and is no failure
  tmaops::cli::open_standard_streams();
  try {
    return tmaops::cli::run(argc, argv);
  } catch (const Error& error) {
    return tmaops::cli::fail(error);
  } catch (const std::bad_alloc&) {
    return tmaops::cli::fail(Error(ErrorCode::out_of_memory, {.where = "", .got = "", .needed = ""}));
  } catch (const std::exception& error) {
    return tmaops::cli::fail(Error(ErrorCode::internal, {.where = "", .got = error.what(), .needed = ""}));
  }
}
