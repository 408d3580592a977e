// What the workloads share.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/workloads/random.hpp"
#include "bench/workloads/workload.hpp"
#include "core/registry.hpp"
#include "tmaops/plan.hpp"

namespace tmaops::bench {

/// Whether each variant of an operator takes a problem.
template <class Problem, class Arguments, class Config>
std::vector<VariantChoice> choices(std::span<const Variant<Problem, Arguments, Config>> table, const Problem& problem,
                                   const DeviceInfo& device) {
  std::vector<VariantChoice> all;
  for (const auto& variant : table) all.push_back({variant.info(), try_variant(variant, problem, device)});
  return all;
}

/// A call that runs a plan.
inline Call call_of(Plan plan) {
  return [shared = std::make_shared<const Plan>(std::move(plan))](Stream stream) { shared->run(stream); };
}

/// `wanted` different numbers below `count`, in increasing order; all of them when there are no more.
inline std::vector<std::int64_t> sample_indices(std::int64_t count, std::int64_t wanted, Random& random) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < count && static_cast<std::int64_t>(chosen.size()) < wanted; ++i) {
    const auto open = static_cast<double>(wanted - static_cast<std::int64_t>(chosen.size()));
    if (random.uniform() * static_cast<double>(count - i) < open) chosen.push_back(i);
  }
  return chosen;
}

/// Bytes of a dense tensor.
inline double byte_count(const TensorSpec& tensor) {
  return static_cast<double>(tensor.layout.size()) * static_cast<double>(size_of(tensor.dtype));
}

/// Parts of the seed, so that each tensor has data of its own.
constexpr std::uint64_t part_seed(std::uint64_t seed, std::uint64_t part) { return seed * 1000003 + part; }

}  // namespace tmaops::bench
