#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "commands/commands.hpp"
#include "core/display.hpp"
#include "core/fail.hpp"

namespace tmaops::cli {
namespace {

/// The arguments of this process without --ncu and its value.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> all;
  for (std::string one; std::getline(file, one, '\0');) {
    if (!all.empty() && all.back() == "--ncu")
      all.pop_back();
    else if (!one.starts_with("--ncu="))
      all.push_back(one);
  }
  return all;
}

}  // namespace

void run_under_ncu(const std::string& name, bool force) {
  const std::string report = name.ends_with(".ncu-rep") ? name : name + ".ncu-rep";
  if (!force && std::filesystem::exists(report))
    fail(ErrorCode::output_exists, display(report), "a file", "a new name, or --force");
  // The clocks and the caches stay as they are when bench times, and only the launch that bench marks is profiled.
  std::vector<std::string> words{"ncu",  "--profile-from-start", "off",      "--clock-control",
                                 "none", "--cache-control",      "none",     "--set",
                                 "full", "--force-overwrite",    "--export", report};
  std::vector<std::string> own = own_arguments();
  own.front() = std::filesystem::read_symlink("/proc/self/exe").string();
  words.insert(words.end(), own.begin(), own.end());
  words.emplace_back("--single-run");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  fail(ErrorCode::cannot_read, "--ncu: the program ncu", std::strerror(errno), "Nsight Compute (ncu) on PATH",
       "It is part of the CUDA toolkit (/usr/local/cuda/bin), and NVIDIA's package repositories have it "
       "alone as nsight-compute. `bench --counters` reads counters without it.");
}

}  // namespace tmaops::cli
