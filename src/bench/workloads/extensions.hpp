// What the workloads of single operators offer beyond the others'. The runner finds it by dynamic_cast.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/workloads/workload.hpp"

namespace tmaops::bench {

/// The operator keeps a table of measured choices, which `--tune` fills.
class Tunable {
 public:
  virtual ~Tunable() = default;
  /// How the table names the case.
  virtual std::string tuning_key() const = 0;
  /// Every way to run the case, as bind() takes it.
  virtual std::vector<std::string> candidates() const = 0;
};

/// The operator measures loading.
class LoadsTiles {
 public:
  virtual ~LoadsTiles() = default;
  /// Loads of one call.
  virtual double loads() const = 0;
  /// The variants that load by hand, to compare with.
  virtual std::vector<std::string> manual_variants() const = 0;
  /// No variant has more blocks.
  virtual std::int64_t most_blocks() const = 0;
  /// A call as bind()'s that raises an entry of `cycles` (i64, most_blocks() of them, on the GPU) for every block to
  /// the cycles the block took.
  virtual Call bind_counting(const std::string& variant, int set, const TensorView& cycles) const = 0;
};

}  // namespace tmaops::bench
