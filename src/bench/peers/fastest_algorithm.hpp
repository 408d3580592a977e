// A library at its best: of several ways to do the same work, the one that is fastest on the case.
#pragma once

#include <string>
#include <vector>

#include "bench/measure/implementation.hpp"

namespace tmaops::bench {

/// Times each way (its calls, one per set of buffers) in turn with the others and returns the fastest. A way whose
/// first call throws Error variant_refuses is left out. Throws Error variant_refuses when none is left, which says that
/// `where` needs `needed`.
std::vector<Call> fastest(std::vector<std::vector<Call>> ways, Timer& timer, const std::string& where,
                          const std::string& needed);

}  // namespace tmaops::bench
