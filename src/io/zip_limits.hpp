// What reading and writing zip members have in common.
#pragma once

#include <cstddef>

namespace tmaops::io {

inline constexpr std::size_t kZlibStep = std::size_t{1} << 30;  // zlib counts in 32 bits

}  // namespace tmaops::io
