// Every variant is a study: it runs where a caller names it.
#include "offers/tile_load.hpp"

namespace tmaops::ops::tile_load {

Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name) {
  return name.empty() ? best_choice(variants(), problem, device) : named_choice(variants(), name, problem, device);
}

}  // namespace tmaops::ops::tile_load
