// Kernels that a program of one's own launches (device/launch.cuh): what they break goes to stderr.
#include <cerrno>
#include <cstdio>
#include <string>

#include "executor/findings.hpp"
#include "executor/interface.hpp"
#include "executor/state.hpp"

namespace tmaops::executor {

bool run_program_kernel(const ProgramLaunch& how, void (*call)(const void* kernel, void** parameters),
                        const void* kernel, void** parameters) {
  const LaunchShape shape{.grid = {how.grid[0], how.grid[1], how.grid[2]},
                          .block = {how.block[0], how.block[1], how.block[2]},
                          .shared_bytes = static_cast<int>(how.shared_bytes),
                          .cluster = how.cluster,
                          .dependent = how.dependent};
  know_steps_of_host();
  run(program_invocation_short_name, shape, [=] { call(kernel, parameters); }, TMAOPS_PLACE);
  const std::vector<Finding> findings = take_findings();
  for (const Finding& finding : findings) std::fprintf(stderr, "%s\n", to_text(finding).c_str());
  return findings.empty();
}

}  // namespace tmaops::executor
