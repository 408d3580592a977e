#include "tmaops/version.hpp"

#include "tmaops_revision.hpp"

namespace tmaops {

std::string_view version() { return TMAOPS_VERSION; }
std::string_view revision() { return TMAOPS_REVISION; }

}  // namespace tmaops
