// Which variant runs when the caller names none.
#include "ops/tile_load/problem.hpp"

namespace tmaops::ops::tile_load {

Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  if (!name.empty()) return named_choice(variants(), name, problem, device);
  // Few tiles: the launch of `plain` is over before blocks that stay begin a second round (docs/findings/tile_load.md,
  // T7). The other variants stand in the order of the table.
  constexpr std::int64_t kFewTiles = 200'000;
  const bool few = device.device.type == DeviceType::cuda && problem.tiles() < kFewTiles;
  return best_choice(variants(), problem, device, [&](const auto& variant, const Config&) -> std::optional<double> {
    return few && variant.name == "plain" ? 0 : 1;
  });
}

}  // namespace tmaops::ops::tile_load
