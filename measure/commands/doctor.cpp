// What `tmaops doctor` says of the machine and of what bench measures with.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
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
#include "commands/commands.hpp"
#include "core/device_info.hpp"
#include "core/display.hpp"
#include "tmaops/error.hpp"

namespace tmaops::cli {
namespace {

using State = Finding::State;

Finding driver() {
  const std::string& version = bench::machine().driver;
  if (!version.empty()) return {"NVIDIA driver", State::ok, version};
  return {"NVIDIA driver", State::missing, "not loaded", "running on a GPU",
          "install NVIDIA's driver, 570 or newer (CUDA 12.8), where there is a GPU"};
}

Finding bandwidth() {
  const double peak = bench::gpu_memory(device_info({DeviceType::cuda, 0}).device).peak_gbps();
  if (peak > 0) return {"GPU memory", State::ok, fmt::format("at most {:.0f} GB/s", peak)};
  return {"GPU memory", State::missing, "its driver tells no clock of it", "rates as a part of the peak"};
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

}  // namespace

std::vector<Finding> measuring_findings() {
  const bench::Machine& machine = bench::machine();
  std::vector<Finding> all;
  all.push_back({"compiler", State::ok, machine.compiler});
  all.push_back({"system", State::ok, machine.os});
  all.push_back({"CPU", State::ok, fmt::format("{}, {} processors", machine.cpu, machine.processors)});
  all.push_back({"SIMD", State::ok, machine.simd});
  all.push_back(
      {"memory", State::ok, fmt::format("{:.1f} GiB", static_cast<double>(machine.memory_bytes) / (1 << 30))});
  all.push_back(finding("NVIDIA driver", driver));
  if (cuda_device_count() > 0) all.push_back(finding("GPU memory", bandwidth));
  all.push_back(finding("NVML", nvml));
  all.push_back(finding("CUPTI", cupti));
  all.push_back(finding("ncu", ncu));
  std::ranges::move(python(), std::back_inserter(all));
  return all;
}

}  // namespace tmaops::cli
