// Bytes that elements take, in global memory and in the box, and numbers as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tmaops/tensor_map.hpp"

namespace tmaops::tma {

/// Swizzle span in bytes: 32, 64 or 128; 0 without swizzle.
int span_of(Swizzle swizzle);
/// u4x16_align16 or u6x16_align16: 16 elements with a gap behind them.
inline bool packed_16(ElementType type) {
  return type == ElementType::u4x16_align16 || type == ElementType::u6x16_align16;
}
/// The next multiple of `multiple`. A value whose next multiple would overflow is returned unchanged.
std::int64_t rounded_up(std::int64_t value, std::int64_t multiple);
/// Bytes that a number of elements takes in global memory, rounded up.
std::int64_t bytes_of(ElementType type, std::int64_t elements);
/// Bytes that a row of the box takes in shared memory, where u4x16_align16 and u6x16_align16 have gaps.
std::int64_t shared_row_bytes(ElementType type, std::int64_t elements);

/// "0x7f0010".
std::string hex(std::uint64_t value);
/// "32,160,92".
std::string comma_list(std::span<const std::int64_t> values);
/// "{32, 2, 2}".
std::string braces(std::span<const std::int64_t> values);

}  // namespace tmaops::tma
