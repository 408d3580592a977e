// Loads through im2col maps, which no kernel of the library takes: apart from interface.hpp.
#pragma once

#include <cstdint>

namespace tmaops::executor {

/// `at` has rank numbers, the filter tap's `offset` rank - 2.
void im2col_load(void* to, const void* map, const std::int32_t* at, const std::uint16_t* offset, int rank,
                 void* barrier);

}  // namespace tmaops::executor
