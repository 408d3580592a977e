// Which variant runs when the caller names none.
#include "ops/tile_load/problem.hpp"

namespace tmaops::ops::tile_load {

const Variant<Problem, Arguments>& select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_variant(variants(), name, problem, device);
  // Below some 100,000 tiles a launch is over before a second round of loads could begin: blocks that stay only cost.
  // H200, inputs in L2: 8,000 tiles 1.6-1.8 us (plain) against 1.85-2.0 in two runs, 23.7 million 892 us against 658.
  constexpr std::int64_t kFewTiles = 200'000;
  if (device.device.type == DeviceType::cuda && problem.tiles() < kFewTiles)
    if (const auto& plain = named_variant(variants(), "plain", problem, device); plain.built()) return plain;
  return first_variant(variants(), problem, device);
}

}  // namespace tmaops::ops::tile_load
