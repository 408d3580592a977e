// What this machine is: for the result file and `tmaops doctor`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace tmaops::bench {

struct Machine {
  std::string cpu;     // model name
  int processors = 0;  // online
  std::string simd;    // instruction set the CPU variants use
  std::int64_t memory_bytes = 0;
  std::int64_t last_level_cache_bytes = 0;  // 0: not known
  std::string os;                           // "Debian GNU/Linux 12 (bookworm), Linux 6.1.0"
  std::string compiler;                     // that built this program
  std::string driver;                       // NVIDIA kernel driver, "580.159.04"; empty: none is loaded
};

const Machine& machine();
/// The same with the number of threads and the GPU, for the result file.
nlohmann::ordered_json machine_json();

}  // namespace tmaops::bench
