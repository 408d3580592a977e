// `tmaops verify --device executor`: the GPU's kernels on the CPU, under several seeds and schedules, with what they
// break in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "commands/request.hpp"

namespace tmaops::cli {

struct Globals;

/// What verify takes for the executor alone.
struct ExecutorArguments {
  std::int64_t seeds = 1;
  std::string schedule = "all";  // or one of executor::kSchedules
  bool strict = false;
  bool global_races = false;
  std::string findings{};  // file
  std::string replay{};    // SEED:SCHEDULE:LAUNCH of a finding
};
void add_executor_arguments(CLI::App& command, ExecutorArguments& arguments);

/// Runs the problems once for every seed and schedule and prints what was found. Returns the exit code.
int verify_on_executor(const Globals& globals, const Arguments& arguments, const ExecutorArguments& executor);

/// Whether this program has the executor in place of a GPU.
bool has_executor();
/// What a fault of probe breaks under every schedule, and its outcome under the last one. Without an executor the
/// outcome alone.
std::string fault_text(std::string_view fault);

}  // namespace tmaops::cli
