// Version and origin of this build.
#pragma once

#include <string_view>

#include "tmaops/export.hpp"

namespace tmaops {

/// For example "1.2.3".
TMAOPS_API std::string_view version();
/// Git revision, 12 digits, with "-dirty" when the sources differed from it; "unknown" outside a checkout.
TMAOPS_API std::string_view revision();

}  // namespace tmaops
