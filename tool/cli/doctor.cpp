// `tmaops doctor`: what is on this machine, what is missing, what the missing part would bring and how to get it. A
// failing check does not stop the others, because this command must work where nothing else does.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "core/device_info.hpp"
#include "core/display.hpp"
#include "core/enum_name.hpp"
#include "core/registry.hpp"
#include "offers/console.hpp"
#include "offers/table.hpp"
#include "tmaops/error.hpp"
#include "tmaops/threads.hpp"
#include "tmaops/version.hpp"

namespace tmaops::cli {
namespace {

using State = Finding::State;

std::string_view to_string(State state) {
  constexpr std::string_view names[] = {"ok", "missing", "problem"};
  return enum_name(names, state);
}

Finding threads() {
  const char* variable = std::getenv("TMAOPS_NUM_THREADS");
  const int count = num_threads();
  const int online = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t mask;
  const int allowed = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : online;
  std::string why = "all processors";
  if (variable != nullptr && *variable != '\0')
    why = "TMAOPS_NUM_THREADS";
  else if (count < allowed)
    why = fmt::format("the cgroup's CPU quota; {} processors are allowed", allowed);
  else if (allowed < online)
    why = fmt::format("the affinity mask; {} processors are online", online);
  return {"threads", State::ok, fmt::format("{} ({})", count, why)};
}

Finding toolkit() {
#ifdef TMAOPS_CUDA_VERSION
  return {"CUDA toolkit", State::ok,
          "built with " TMAOPS_CUDA_VERSION ", kernels for compute capability " + compiled_for()};
#else
  return {"CUDA toolkit", State::missing, "built without", "the GPU variants",
          "`CUDA=1 make run` fetches a compiler and builds again"};
#endif
}

Finding gpu() {
  const DeviceInfo& device = device_info({DeviceType::cuda, 0});  // throws the reason why there is no GPU
  std::string value =
      fmt::format("{}, compute capability {}.{}, {} SMs, {} GiB", device.name, device.compute_capability / 10,
                  device.compute_capability % 10, device.multiprocessors, device.memory_bytes >> 30);
  if (cuda_device_count() > 1) value += fmt::format(" (and {} more)", cuda_device_count() - 1);
  if (const Support fit = fits_device("sm80", {}, device); !fit)
    return {"GPU", State::missing, value, "running kernels on it", fit.reason};
  return {"GPU", State::ok, value};
}

/// A library that the build takes where it is installed.
struct OptionalLibrary {
  const char* name;
  const char* brings;
  std::string_view how;  // empty when it is built in
};

constexpr OptionalLibrary kLibraries[] = {
    {"Highway", "explicit vectors chosen at run time: several times the speed of plain loops", TMAOPS_GET_HIGHWAY},
    {"oneDNN", "the fast matrix multiplication on the CPU, bf16 above all", TMAOPS_GET_ONEDNN},
    {"zstd", "recordings compressed as .zst", TMAOPS_GET_ZSTD},
    {"CUTLASS", "the peers cutlass, cute_v1 and cute_v2 of `bench`, for gemm on a GPU", TMAOPS_GET_CUTLASS}};

Finding library(const OptionalLibrary& one) {
  if (one.how.empty()) return {one.name, State::ok, "in"};
  return {one.name, State::missing, "built without", one.brings, std::string(one.how)};
}

std::vector<Finding> examine() {
  std::vector<Finding> all;
  all.push_back({"tmaops", State::ok, fmt::format("{} ({})", version(), revision())});
  all.push_back(finding("threads", threads));
  for (const OptionalLibrary& one : kLibraries) all.push_back(library(one));
  all.push_back(finding("CUDA toolkit", toolkit));
  all.push_back(finding("GPU", gpu));
  for (const Wing& wing : wings()) std::ranges::move(wing.findings(), std::back_inserter(all));
  return all;
}

int doctor(const Globals& globals) {
  const std::vector<Finding> findings = examine();
  const int code =
      std::ranges::any_of(findings, [](const Finding& one) { return one.state == State::problem; }) ? 1 : 0;
  if (globals.json) {
    nlohmann::ordered_json json{
        {"version", version()}, {"revision", revision()}, {"checks", nlohmann::ordered_json::array()}};
    for (const Finding& one : findings)
      json["checks"].push_back({{"name", one.name},
                                {"state", to_string(one.state)},
                                {"value", one.value},
                                {"brings", one.brings},
                                {"how", one.how}});
    print_data(json.dump(2) + "\n");
    return code;
  }
  Table table("part|state|what was found");
  for (const Finding& one : findings) {
    const Style style = one.state == State::ok ? Style::good : one.state == State::problem ? Style::bad : Style::bold;
    table.add({{one.name}, {std::string(to_string(one.state)), style}, {one.value}});
    if (!one.brings.empty()) table.add({{}, {}, {"would bring: " + one.brings}});
    if (!one.how.empty()) table.add({{}, {}, {"how: " + one.how}});
  }
  print_data(table.text(use_color(globals, Stream::data), line_width(Stream::data)));
  return code;
}

}  // namespace

void add_doctor_command(CLI::App& app, Globals& globals) {
  CLI::App* command =
      app.add_subcommand("doctor", "Say what is on this machine and what is missing; exit 1 for a problem");
  set_run(*command, globals, [&globals] { return doctor(globals); });
}

}  // namespace tmaops::cli
