// Throws an error that is not about an argument of a call, for which ArgumentChecks has a function of its own.
#pragma once

#include <string>
#include <string_view>

#include "tmaops/error.hpp"

namespace tmaops {

/// Throws Error: where it went wrong (an option, or file:line:column), what was found, what would have been right, and
/// how to mend it. Without `mend` the message has the catalogue's advice.
[[noreturn]] inline void fail(ErrorCode code, std::string_view where, std::string_view got, std::string_view needed,
                              std::string_view mend = {}) {
  throw Error(code, {std::string(where), std::string(got), std::string(needed), std::string(mend)});
}

}  // namespace tmaops
