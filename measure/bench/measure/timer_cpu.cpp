#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "bench/measure/timer.hpp"
#include "bench/run/statistics.hpp"

namespace tmaops::bench {
namespace {

class CpuTimer : public Timer {
 public:
  double seconds(const std::vector<Call>& calls, std::int64_t first, std::int64_t count) override {
    const auto sets = static_cast<std::int64_t>(calls.size());
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < count; ++i) calls[static_cast<std::size_t>((first + i) % sets)](nullptr);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  void run(const Call& call) override { call(nullptr); }
};

/// Threads of the process ("self" or a number) that run or are ready to, without the calling one. The processor time of
/// a process is no substitute, because the kernel adds up the time of running threads only once per tick.
int running_threads(const std::string& process) {
  int running = 0;
  std::error_code failed;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + process + "/task", failed)) {
    std::ifstream stat(thread.path() / "stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t name_end = text.rfind(')');  // "1234 (name) R ..."; a name may hold anything
    const bool runs = name_end != std::string::npos && text.compare(name_end, 4, ") R ") == 0;
    if (runs && thread.path().filename() != std::to_string(gettid())) ++running;
    std::ifstream children(thread.path() / "children");
    for (pid_t child = 0; children >> child;) running += running_threads(std::to_string(child));
  }
  return running;
}

}  // namespace

std::optional<HostCost> undisturbed(std::span<const HostCost> bursts) {
  if (bursts.empty()) return {};
  std::vector<double> calls;
  std::vector<double> launches;
  std::vector<double> fresh;
  for (const HostCost& burst : bursts) {
    calls.push_back(burst.call_us);
    launches.push_back(burst.launch_us);
    if (burst.fresh_us) fresh.push_back(*burst.fresh_us);
  }
  HostCost cost{.call_us = percentile(calls, 0.25), .launch_us = percentile(launches, 0.25)};
  if (!fresh.empty()) cost.fresh_us = percentile(fresh, 0.25);
  return cost;
}

std::unique_ptr<Timer> make_cpu_timer() { return std::make_unique<CpuTimer>(); }

void wait_until_quiet() {
  for (int nap = 0; nap < 100; ++nap) {
    std::this_thread::sleep_for(std::chrono::microseconds(500));
    if (running_threads("self") == 0) return;
  }
}

}  // namespace tmaops::bench
