// `tmaops doctor`: what is on this machine, what is missing, what the missing part would bring and how to get it. A
// failing check does not stop the others, because this command must work where nothing else does.
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/measure/counters.hpp"
#include "bench/measure/gpu_memory.hpp"
#include "bench/measure/machine.hpp"
#include "bench/measure/nvml.hpp"
#include "bench/peers/python_process.hpp"
#include "bench/run/report.hpp"
#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cli/table.hpp"
#include "core/device_info.hpp"
#include "core/display.hpp"
#include "core/enum_name.hpp"
#include "core/registry.hpp"
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
  constexpr std::string_view names[] = {"ok", "missing", "problem"};
  return enum_name(names, state);
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
  return {"CUDA toolkit", State::ok,
          "built with " TMAOPS_CUDA_VERSION ", kernels for compute capability " + compiled_for()};
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
  const DeviceInfo& device = device_info({DeviceType::cuda, 0});  // throws the reason why there is no GPU
  std::string value =
      fmt::format("{}, compute capability {}.{}, {} SMs, {} GiB", device.name, device.compute_capability / 10,
                  device.compute_capability % 10, device.multiprocessors, device.memory_bytes >> 30);
  if (const double peak = bench::gpu_memory(device.device).peak_gbps(); peak > 0)
    value += fmt::format(", at most {:.0f} GB/s", peak);
  if (cuda_device_count() > 1) value += fmt::format(" (and {} more)", cuda_device_count() - 1);
  if (const Support fit = fits_device("sm80", {}, device); !fit)
    return {"GPU", State::missing, value, "running kernels on it", fit.reason};
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

/// Nsight Compute on PATH, which is not started.
Finding ncu() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/ncu").c_str(), X_OK) == 0) return {"ncu", State::ok, display_text(folder + "/ncu")};
  return {"ncu", State::missing, "not on PATH", "`bench --ncu`: all that NVIDIA's profiler knows of a launch",
          "it is part of the CUDA toolkit; NVIDIA's package repositories have it alone as nsight-compute"};
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
    {"libzip", "reading npz archives", TMAOPS_GET_LIBZIP},
    {"zstd", "recordings compressed as .zst", TMAOPS_GET_ZSTD},
    {"CUTLASS", "the peers cutlass, cute_v1 and cute_v2 of `bench`, for gemm on a GPU", TMAOPS_GET_CUTLASS}};

Finding library(const OptionalLibrary& one) {
  if (one.how.empty()) return {one.name, State::ok, "in"};
  return {one.name, State::missing, "built without", one.brings, std::string(one.how)};
}

/// Imports the packages that the peers need, since an installed package may fail to load. Answers one line with one.
constexpr const char* kImports = R"(
import json, os, platform, sys
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
sys.stdin.readline()
answer = {"python": platform.python_version()}
for name in ("numpy", "torch"):
    try:
        answer[name] = str(__import__(name).__version__)
    except Exception as error:
        answer[name + "_problem"] = str(error) or type(error).__name__
print(json.dumps(answer), flush=True)
)";
constexpr double kImportSeconds = 120;  // enough for torch from a slow disk

/// The interpreter, and the packages that the Python peers of `bench` import.
std::vector<Finding> python() {
  constexpr const char* kAnother = "; TMAOPS_PYTHON names another interpreter";
  const char* variable = std::getenv("TMAOPS_PYTHON");
  const std::string name = variable != nullptr && *variable != '\0' ? variable : "python3";
  nlohmann::json answer;
  try {
    bench::LineProcess process({name, "-c", kImports}, {{"PYTHONDONTWRITEBYTECODE", "1"}}, {});
    answer = process.ask(nlohmann::json::object(), kImportSeconds);
  } catch (const Error& error) {
    const bool named = variable != nullptr && *variable != '\0';
    return {{"Python", named ? State::problem : State::missing, display_text(name) + ": " + bench::reason_of(error),
             "the peers numpy, grid_sample and torch of `bench`", std::string("apt install python3") + kAnother}};
  }
  std::vector<Finding> all{{"Python", State::ok, display_text(name) + " " + answer.value("python", "")}};
  const auto package = [&](const char* title, const std::string& module, const char* brings, const char* how) {
    if (answer.contains(module))
      return all.push_back({title, State::ok, display_text(answer[module].get<std::string>())});
    const std::string why = display_text(answer.value(module + "_problem", "no answer"));
    const bool absent = why == "No module named '" + module + "'";
    all.push_back({title, absent ? State::missing : State::problem, why, brings, std::string(how) + kAnother});
  };
  package("NumPy", "numpy", "every Python peer of `bench`", "apt install python3-numpy");
  package("PyTorch", "torch", "the peers grid_sample, separate_steps, torch_eager and torch_compile of `bench`",
          "pip install torch");
  return all;
}

/// Runs a check. An error that it throws becomes the finding.
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
  for (const OptionalLibrary& one : kLibraries) all.push_back(library(one));
  all.push_back(probe("CUDA toolkit", toolkit));
  all.push_back(probe("NVIDIA driver", driver));
  all.push_back(probe("GPU", gpu));
  all.push_back(probe("NVML", nvml));
  all.push_back(probe("CUPTI", cupti));
  all.push_back(probe("ncu", ncu));
  std::ranges::move(python(), std::back_inserter(all));
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
