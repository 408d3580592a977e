// How many threads this process may use: environment, affinity mask, cgroup quota.
#include "core/thread_count.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "core/entry.hpp"
#include "core/fail.hpp"
#include "core/parallel.hpp"

namespace tmaops {
namespace {

constexpr int kMaxThreads = 1024;

std::atomic<int> override_count{0};
std::atomic<double> short_call{detail::kShortCall};

int affinity_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

/// Processors that one cgroup's quota allows, or 0 when it sets none. Version 2: "max 100000" or "50000 100000".
double quota_v2(const std::string& directory) {
  std::ifstream file(directory + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::atof(quota.c_str()) / period;
}

double quota_v1(const std::string& directory) {
  double quota = -1;
  double period = 0;
  std::ifstream(directory + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(directory + "/cpu.cfs_period_us") >> period;
  return quota > 0 && period > 0 ? quota / period : 0;
}

int environment_count() {
  const char* text = std::getenv("TMAOPS_NUM_THREADS");
  if (text == nullptr || *text == '\0') return 0;
  const std::string_view value(text);
  int count = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (status != std::errc{} || end != value.data() + value.size() || count < 1 || count > kMaxThreads)
    fail(ErrorCode::bad_environment, "TMAOPS_NUM_THREADS", "'" + std::string(value) + "'",
         "a number from 1 to " + std::to_string(kMaxThreads));
  return count;
}

}  // namespace

namespace detail {

double cgroup_quota(const std::string& memberships, const std::string& file_system) {
  std::ifstream file(memberships);
  std::string line;
  double smallest = 0;
  const auto take = [&smallest](double quota) {
    if (quota > 0) smallest = smallest > 0 ? std::min(smallest, quota) : quota;
  };
  while (std::getline(file, line)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string root = v2 ? file_system : file_system + "/cpu";
    for (std::string path = line.substr(second + 1); path.size() > 1 && path.front() == '/';
         path.resize(path.rfind('/')))
      take(v2 ? quota_v2(root + path) : quota_v1(root + path));
    take(v2 ? quota_v2(root) : quota_v1(root));
  }
  return smallest;
}

void set_short_call(double microseconds) { short_call.store(microseconds, std::memory_order_relaxed); }

}  // namespace detail

int threads_for(double microseconds) {
  return microseconds < short_call.load(std::memory_order_relaxed) ? 1 : num_threads();
}

int num_threads() {
  return public_entry("num_threads", [] {
    const int count = override_count.load(std::memory_order_relaxed);
    if (count > 0) return count;
    const int environment = environment_count();
    if (environment > 0) return environment;
    static const double quota = detail::cgroup_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    const int allowed = affinity_count();
    return quota > 0 ? std::clamp(static_cast<int>(std::ceil(quota)), 1, allowed) : allowed;
  });
}

void set_num_threads(int count) {
  public_entry("set_num_threads", [&] {
    if (count < 0 || count > kMaxThreads)
      fail(ErrorCode::bad_parameter, "set_num_threads: count", std::to_string(count),
           "0 to " + std::to_string(kMaxThreads));
  });
  override_count.store(count, std::memory_order_relaxed);
}

}  // namespace tmaops
