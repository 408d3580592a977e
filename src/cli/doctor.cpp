// `tmaops doctor`: what is on this machine, what is missing, what that would bring and how to get it. Every probe
// stands alone and none can stop the others: this command must work where nothing else does.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/counters.hpp"
#include "bench/machine.hpp"
#include "bench/nvml.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/table.hpp"
#include "core/device_info.hpp"
#include "tmaops/error.hpp"
#include "tmaops/threads.hpp"
#include "tmaops/version.hpp"

namespace tmaops::cli {
namespace {

enum class State { ok, missing, problem };

struct Finding {
  std::string name;
  State state = State::ok;
  std::string value;
  std::string brings{};  // what the missing part would bring
  std::string how{};     // how to get it, or how to mend the problem
};

std::string_view to_string(State state) {
  switch (state) {
    case State::ok:
      return "ok";
    case State::missing:
      return "missing";
    case State::problem:
      break;
  }
  return "problem";
}

Finding threads() {
  const char* variable = std::getenv("TMAOPS_NUM_THREADS");
  const int count = num_threads();
  const int online = bench::machine().processors;
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
  return {"CUDA toolkit", State::ok, "built with " TMAOPS_CUDA_VERSION};
#else
  return {"CUDA toolkit", State::missing, "built without", "the GPU variants",
          "`CUDA=1 make run` fetches a compiler and builds again"};
#endif
}

Finding driver() {
  const std::string& version = bench::machine().driver;
  if (!version.empty()) return {"NVIDIA driver", State::ok, version};
  return {"NVIDIA driver", State::missing, "not loaded", "running on a GPU",
          "install NVIDIA's driver, 570 or newer (CUDA 12.8), where there is a GPU"};
}

Finding gpu() {
  const DeviceInfo& device = device_info({DeviceType::cuda, 0});  // throws which of the five reasons there is not to
  std::string value =
      fmt::format("{}, compute capability {}.{}, {} SMs, {} GiB", device.name, device.compute_capability / 10,
                  device.compute_capability % 10, device.multiprocessors, device.memory_bytes >> 30);
  if (cuda_device_count() > 1) value += fmt::format(" (and {} more)", cuda_device_count() - 1);
  return {"GPU", State::ok, value};
}

Finding nvml() {
  const bench::Nvml library("");
  if (library.problem().empty()) return {"NVML", State::ok, library.version()};
  return {"NVML", State::missing, library.problem(), "what held the SM clock down in a row of `bench`",
          "install NVIDIA's driver, which has libnvidia-ml.so.1, where there is a GPU"};
}

Finding cupti() {
  const bench::CountersState state = bench::counters_state();
  if (state.problem.empty()) return {"CUPTI", State::ok, state.found};
  return {"CUPTI", state.found.empty() ? State::missing : State::problem, state.problem,
          "hardware counters of every row: `bench --counters`", state.mend};
}

Finding highway() {
#ifdef TMAOPS_HAVE_HIGHWAY
  return {"Highway", State::ok, "in"};
#else
  return {"Highway", State::missing, "built without",
          "explicit vectors chosen at run time: several times the speed of plain loops", TMAOPS_HOW_HIGHWAY};
#endif
}

Finding onednn() {
#ifdef TMAOPS_HAVE_ONEDNN
  return {"oneDNN", State::ok, "in"};
#else
  return {"oneDNN", State::missing, "built without", "the fast matrix multiplication on the CPU, bf16 above all",
          TMAOPS_HOW_ONEDNN};
#endif
}

Finding cutlass() {
#ifdef TMAOPS_HAVE_CUTLASS
  return {"CUTLASS", State::ok, "in"};
#else
  return {"CUTLASS", State::missing, "built without", "the peer cutlass of `bench`, for gemm on a GPU",
          TMAOPS_HOW_CUTLASS};
#endif
}

Finding python() {
  const char* variable = std::getenv("TMAOPS_PYTHON");
  const std::string name = variable != nullptr && *variable != '\0' ? variable : "python3";
  std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  bool found = name.find('/') != std::string::npos && access(name.c_str(), X_OK) == 0;
  for (std::size_t at = 0; !found && at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    found = access((path.substr(at, end - at) + "/" + name).c_str(), X_OK) == 0;
    at = end + 1;
  }
  if (found) return {"Python", State::ok, name + " (peers of `bench`: needs numpy, torch)"};
  return {"Python", State::missing, name + " not found", "the peers numpy, grid_sample and torch of `bench`",
          "apt install python3-numpy, pip install torch; TMAOPS_PYTHON names another interpreter"};
}

/// Runs a probe; what it throws is the finding.
Finding probe(const std::string& name, const std::function<Finding()>& look) {
  try {
    return look();
  } catch (const Error& error) {
    const bool absent = error.exit_code() == 4;
    return {name, absent ? State::missing : State::problem,
            fmt::format("{} {}{}", error.number(), error_page(error.code()).title,
                        error.details().got.empty() ? "" : ": " + error.details().got),
            absent ? "running on a GPU" : "",
            error.details().mend.empty() ? std::string(error_page(error.code()).mend) : error.details().mend};
  } catch (const std::exception& error) {
    return {name, State::problem, error.what()};
  }
}

std::vector<Finding> examine() {
  const bench::Machine& machine = bench::machine();
  std::vector<Finding> all;
  all.push_back({"tmaops", State::ok, fmt::format("{} ({})", version(), revision())});
  all.push_back({"compiler", State::ok, machine.compiler});
  all.push_back({"system", State::ok, machine.os});
  all.push_back({"CPU", State::ok, fmt::format("{}, {} processors", machine.cpu, machine.processors)});
  all.push_back({"SIMD", State::ok, machine.simd});
  all.push_back(probe("threads", threads));
  all.push_back(
      {"memory", State::ok, fmt::format("{:.1f} GiB", static_cast<double>(machine.memory_bytes) / (1 << 30))});
  all.push_back(probe("Highway", highway));
  all.push_back(probe("oneDNN", onednn));
  all.push_back(probe("CUDA toolkit", toolkit));
  all.push_back(probe("NVIDIA driver", driver));
  all.push_back(probe("GPU", gpu));
  all.push_back(probe("NVML", nvml));
  all.push_back(probe("CUPTI", cupti));
  all.push_back(probe("CUTLASS", cutlass));
  all.push_back(probe("Python", python));
  return all;
}

int doctor(const Globals& globals) {
  const std::vector<Finding> findings = examine();
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
    return 0;
  }
  Table table({{"part"}, {"state"}, {"what was found"}});
  for (const Finding& one : findings) {
    const Style style = one.state == State::ok ? Style::good : one.state == State::problem ? Style::bad : Style::bold;
    table.add({{one.name}, {std::string(to_string(one.state)), style}, {one.value}});
    if (!one.brings.empty()) table.add({{}, {}, {"would bring: " + one.brings}});
    if (!one.how.empty()) table.add({{}, {}, {"how: " + one.how}});
  }
  print_data(table.text(use_color(globals, Stream::data)));
  return 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, Globals& globals) {
  CLI::App* command = app.add_subcommand("doctor", "Say what is on this machine and what is missing");
  command->callback([&globals] { globals.run = [&globals] { return doctor(globals); }; });
}

}  // namespace tmaops::cli
