#include "bench/run/cold_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/measure/machine.hpp"
#include "tmaops/error.hpp"

namespace tmaops::bench {

int cold_sets(const Workload& workload, std::int64_t cap) {
  const Device device = workload.info().device;
  const std::int64_t known =
      device.type == DeviceType::cuda ? device_info(device).l2_bytes : machine().last_level_cache_bytes;
  const std::int64_t cache = known > 0 ? known : std::int64_t{64} << 20;
  const std::int64_t bytes = std::max<std::int64_t>(1, workload.bytes());
  const std::int64_t touched = std::max<std::int64_t>(1, workload.touched_bytes());
  if (touched >= 2 * cache) return 1;
  const std::int64_t sets = cache / touched + 2;
  if (sets * bytes > cap || sets > 100000)
    throw Error(ErrorCode::out_of_memory,
                {.where = "cold inputs",
                 .got = fmt::format("a last-level cache of {} MiB and a cap of {} MiB", cache >> 20, cap >> 20),
                 .needed = fmt::format("{} copies of the tensors, {} MiB", sets, (sets * bytes) >> 20)});
  return static_cast<int>(sets);
}

}  // namespace tmaops::bench
