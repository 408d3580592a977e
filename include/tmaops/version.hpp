// Version and origin of this build.
#pragma once

#include <string_view>

namespace tmaops {

/// "0.1.0".
std::string_view version();
/// Git revision, 12 digits, with "-dirty" when the sources differed from it; "unknown" outside a checkout.
std::string_view revision();

}  // namespace tmaops
