// The kernels of the ceilings.
#pragma once

#include <cstdint>

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

/// One 16-byte load and store per thread. `chunks` of 16 bytes.
void launch_copy(void* to, const void* from, std::int64_t chunks, Stream stream);
void launch_empty(Stream stream);

}  // namespace tmaops::bench
