// The wings of this build that bring subcommands, as wings.inc lists them.
#include <vector>

#include "offers/commands.hpp"

#define TMAOPS_WING(name)   \
  namespace tmaops::name {  \
  tmaops::cli::Wing wing(); \
  }
#include "wings.inc"
#undef TMAOPS_WING

namespace tmaops::cli {

std::span<const Wing> wings() {
  static const std::vector<Wing> all{
#define TMAOPS_WING(name) tmaops::name::wing(),
#include "wings.inc"
#undef TMAOPS_WING
  };
  return all;
}

}  // namespace tmaops::cli
