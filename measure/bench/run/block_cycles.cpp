#include "bench/run/block_cycles.hpp"

#include <cstdint>
#include <vector>

namespace tmaops::bench {

BlockCycles count_block_cycles(Workload& workload, Timer& timer, const std::string& variant, int set) {
  const auto loading = workload.loading();
  if (!loading || workload.info().device.type == DeviceType::cpu) return {};
  const std::int64_t blocks = loading->most_blocks;
  set %= workload.sets();
  const Buffer cycles(DType::i64, Layout::contiguous({blocks}), workload.info().device);
  const Call call = workload.bind_counting(variant, set, cycles.view());
  if (workload.sets() == 1) timer.run(call);
  cycles.poison();  // -1: below every count
  workload.poison(set);
  timer.run(call);
  BlockCycles result{.checked = workload.check(set, 0)};
  if (result.checked.ok && !cycles.canaries_intact())
    result.checked = {.ok = false, .problem = "wrote outside the cycles of its blocks"};
  if (!result.checked.ok) return result;
  std::vector<std::int64_t> counted(static_cast<std::size_t>(blocks));
  cycles.download(counted.data());
  std::vector<double> samples;
  for (const std::int64_t count : counted)
    if (count >= 0) samples.push_back(static_cast<double>(count));
  if (!samples.empty()) result.cycles = summarize(samples);
  return result;
}

}  // namespace tmaops::bench
