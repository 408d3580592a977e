// Kernels that a program of one's own launches (device/launch.cuh): what they break goes to stderr.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "executor/findings.hpp"
#include "executor/interface.hpp"
#include "executor/state.hpp"

namespace tmaops::executor {
namespace {

[[noreturn]] void refuse(const char* variable, const char* got, const char* needed) {
  std::fprintf(stderr, "%s: got '%s', needed %s\n", variable, got, needed);
  std::exit(2);
}

Options options_of_environment() {
  Options options;
  if (const char* schedule = std::getenv("TMAOPS_EXECUTOR_SCHEDULE")) {
    bool known = false;
    for (const Schedule each : kSchedules)
      if (to_string(each) == schedule) {
        options.schedule = each;
        known = true;
      }
    if (!known) refuse("TMAOPS_EXECUTOR_SCHEDULE", schedule, "random, eager, lazy or starving");
  }
  if (const char* seed = std::getenv("TMAOPS_EXECUTOR_SEED")) {
    char* end = nullptr;
    options.seed = std::strtoull(seed, &end, 10);
    if (*seed < '0' || *seed > '9' || *end != '\0') refuse("TMAOPS_EXECUTOR_SEED", seed, "a whole number");
  }
  return options;
}

}  // namespace

bool run_program_kernel(const ProgramLaunch& how, void (*call)(const void* kernel, void** parameters),
                        const void* kernel, void** parameters) {
  [[maybe_unused]] static const bool once = [] {
    set_options(options_of_environment());
    return true;
  }();
  const LaunchShape shape{.grid = {how.grid[0], how.grid[1], how.grid[2]},
                          .block = {how.block[0], how.block[1], how.block[2]},
                          .shared_bytes = static_cast<int>(how.shared_bytes),
                          .cluster = how.cluster};
  run(program_invocation_short_name, shape, [=] { call(kernel, parameters); });
  const std::vector<Finding> findings = take_findings();
  for (const Finding& finding : findings) std::fprintf(stderr, "%s\n", to_text(finding).c_str());
  return findings.empty();
}

}  // namespace tmaops::executor
