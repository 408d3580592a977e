#include "tma/sizes.hpp"

#include <algorithm>
#include <limits>

namespace tmaops::tma {

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  if (value > std::numeric_limits<std::int64_t>::max() - multiple) return value;
  return (value + multiple - 1) / multiple * multiple;
}

int span_of(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none:
      return 0;
    case Swizzle::b32:
      return 32;
    case Swizzle::b64:
      return 64;
    default:
      return 128;
  }
}

std::int64_t bytes_of(ElementType type, std::int64_t elements) {
  // The clamp keeps invalid counts from overflowing. No count that keeps the rules comes near these bounds.
  return (std::clamp<std::int64_t>(elements, 0, std::int64_t{1} << 56) * bits_of(type) + 7) / 8;
}

std::int64_t shared_row_bytes(ElementType type, std::int64_t elements) {
  return packed_16(type) ? (elements + 15) / 16 * 16 : bytes_of(type, elements);
}

}  // namespace tmaops::tma
