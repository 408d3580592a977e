// What the program offers to the wings that bring subcommands, and what a wing brings.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace tmaops::cli {

/// Options that every subcommand takes, before or after its name, and the function of the chosen subcommand.
struct Globals {
  bool json = false;
  bool quiet = false;
  std::string color = "auto";  // auto, always, never
  std::function<int()> run{};  // of the chosen subcommand
};

/// When the whole command line was accepted and has this command, `run` is called, which keeps the command's options in
/// a shared_ptr and returns the exit code. A failure is thrown as tmaops::Error, which has an exit code.
void set_run(auto& command, Globals& globals, const std::function<int()>& run) {
  command.callback([&globals, run] {
    if (!globals.run) globals.run = run;
  });
}

/// A line of `tmaops doctor`.
struct Finding {
  enum class State { ok, missing, problem };
  std::string name;
  State state = State::ok;
  std::string value;
  std::string brings{};  // what the missing part would bring
  std::string how{};     // how to get it, or how to mend the problem
};
/// What `look` finds. An error that it throws becomes the finding.
Finding finding(const std::string& name, const std::function<Finding()>& look);

/// What a wing brings to the program: tmaops::<wing>::wing() makes it. The build lists the wings that are there.
struct Wing {
  /// Adds its subcommands, and options to those of the tool.
  void (*add_commands)(CLI::App&, Globals&);
  std::vector<Finding> (*findings)();
  /// The values of the positional argument of its command `name`, for completions.
  std::vector<std::string> (*words)(std::string_view name);
};
std::span<const Wing> wings();

}  // namespace tmaops::cli
