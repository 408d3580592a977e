// Which variants a problem asks for by its settings `variant`, `version` and `impl`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/workloads/workload.hpp"
#include "config/settings.hpp"

namespace tmaops::bench {

struct NamedVariant {
  std::size_t index = 0;  // in the operator's list
  std::string name{};     // with its configuration, if one is named: "persistent_warp/2"
};

struct WantedVariants {
  bool chosen = false;  // the operator's own choice
  bool all = false;     // every variant that takes the problem
  std::vector<NamedVariant> named{};
  std::vector<std::string> peers{};  // of `impl: cute`
};

/// `all_variants` holds for problems that name none. Throws Error unknown_variant and wrong_type.
WantedVariants wanted_variants(const Settings& problem, const std::vector<VariantChoice>& variants, bool all_variants);

/// Whether a variant that the problem asks for, or the operator would choose, takes it on this device. Throws Error for
/// settings that make no sense, and those of device_info.
bool runs_on(const Settings& problem, Device device);

}  // namespace tmaops::bench
