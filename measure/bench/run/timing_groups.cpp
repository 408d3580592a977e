#include "bench/run/timing_groups.hpp"

#include <algorithm>
#include <utility>

#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

std::vector<Group> timing_groups(const std::vector<Settings>& problems, Device device, const RunOptions& options) {
  const bool compiles = std::ranges::find(options.peers, "torch_compile") != options.peers.end();
  const bool together = device.type == DeviceType::cpu && !compiles;
  std::vector<Group> groups;
  CaseInfo last;
  for (const Settings& problem : problems) {
    CaseInfo info = make_workload(problem, device)->info();
    if (together && !groups.empty() && info.op == last.op && info.name == last.name)
      groups.back() = {groups.back().data(), groups.back().size() + 1};
    else
      groups.emplace_back(&problem, 1);
    last = std::move(info);
  }
  return groups;
}

}  // namespace tmaops::bench
