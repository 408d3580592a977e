// Rows of f16, bf16 or f32 to dense f32 and back, by the processor's own conversions where it has them.
#pragma once

#include <cstdint>

#include "tmaops/dtype.hpp"

namespace tmaops {

/// out[i] = element (offset + i * stride) of data, exact. data holds f16, bf16 or f32.
void load_f32(const void* data, DType dtype, std::int64_t offset, std::int64_t stride, std::int64_t count, float* out);

/// Element (offset + i * stride) of data = in[i], rounded to nearest even. `in` may be the same f32 elements.
void store_f32(void* data, DType dtype, std::int64_t offset, std::int64_t stride, std::int64_t count, const float* in);

}  // namespace tmaops
