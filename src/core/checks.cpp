#include "core/checks.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/fail.hpp"
#include "core/spelling.hpp"

namespace tmaops {
namespace {

std::string dtype_list(std::initializer_list<DType> allowed) {
  return joined(allowed, ", ", [](DType dtype) { return to_string(dtype); });
}

struct Dimension {
  std::int64_t extent;
  std::int64_t stride;
};

/// Dimensions that move the address: extent above 1.
struct Dimensions {
  std::array<Dimension, kMaxRank> each;
  std::size_t count = 0;
  Dimension* begin() { return each.data(); }
  Dimension* end() { return each.data() + count; }
};

Dimensions moving(const Layout& layout) {
  Dimensions dimensions;
  for (std::size_t i = 0; i < static_cast<std::size_t>(layout.rank); ++i)
    if (layout.shape[i] > 1) dimensions.each[dimensions.count++] = {layout.shape[i], layout.strides[i]};
  return dimensions;
}

/// The part of a tensor inside one row pitch: where it starts on the circle of `pitch` bytes, and how long it is.
/// Length 0 when the inner dimensions span more than the pitch.
struct Arc {
  std::int64_t start = 0;
  std::int64_t length = 0;
};

Arc arc_within(const ConstTensorView& tensor, std::int64_t pitch) {
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (const auto [extent, stride] : moving(tensor)) {
    const std::int64_t bytes = stride * size;
    if (bytes % pitch == 0) continue;
    (bytes > 0 ? high : low) += (extent - 1) * bytes;
  }
  const std::int64_t length = high - low + size;
  if (length > pitch) return {};
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(tensor.data)) + low;
  return {((address % pitch) + pitch) % pitch, length};
}

}  // namespace

void ArgumentChecks::fail(ErrorCode code, std::string_view argument, std::string got, std::string needed,
                          std::string mend) const {
  tmaops::fail(code, std::string(op_) + ": " + std::string(argument), got, needed, mend);
}

void ArgumentChecks::view(std::string_view argument, const ConstTensorView& tensor) const {
  if (tensor.rank < 0 || tensor.rank > kMaxRank)
    fail(ErrorCode::shape_mismatch, argument, "a rank of " + std::to_string(tensor.rank),
         "0 to " + std::to_string(kMaxRank) + " dimensions");
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.rank); ++i)
    if (tensor.shape[i] < 0) fail(ErrorCode::shape_mismatch, argument, tensor.shape_text(), "no negative extent");
  if (size_of(tensor.dtype) == 0)
    fail(ErrorCode::unsupported_dtype, argument, "type number " + std::to_string(static_cast<int>(tensor.dtype)),
         dtype_list({DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u8}));
  if (tensor.device.type != DeviceType::cpu && tensor.device.type != DeviceType::cuda)
    fail(ErrorCode::bad_parameter, argument, "device type " + std::to_string(static_cast<int>(tensor.device.type)),
         "cpu or cuda");
}

void ArgumentChecks::views(std::initializer_list<std::pair<std::string_view, ConstTensorView>> arguments) const {
  for (const auto& [argument, tensor] : arguments) view(argument, tensor);
}

void ArgumentChecks::no_enumerator(std::string_view argument, std::size_t value,
                                   std::initializer_list<std::string_view> names) const {
  fail(ErrorCode::bad_parameter, argument, std::to_string(value), "one of " + joined(names));
}

void ArgumentChecks::rank(std::string_view argument, const Layout& layout, std::initializer_list<int> allowed,
                          std::string_view needed) const {
  if (std::find(allowed.begin(), allowed.end(), layout.rank) == allowed.end())
    fail(ErrorCode::shape_mismatch, argument, std::to_string(layout.rank) + " dimensions " + layout.shape_text(),
         std::string(needed));
}

void ArgumentChecks::shape(std::string_view argument, const Layout& layout, std::initializer_list<std::int64_t> extents,
                           std::string_view needed) const {
  const bool same = layout.rank == static_cast<int>(extents.size()) &&
                    std::equal(extents.begin(), extents.end(), layout.shape.begin(),
                               [](std::int64_t extent, std::int64_t has) { return extent < 0 || has == extent; });
  if (same) return;
  const std::string text = joined(
      extents, ", ", [](std::int64_t extent) { return extent < 0 ? std::string("any") : std::to_string(extent); });
  fail(ErrorCode::shape_mismatch, argument, layout.shape_text(), std::string(needed) + " = (" + text + ")");
}

void ArgumentChecks::dtype(std::string_view argument, const ConstTensorView& tensor,
                           std::initializer_list<DType> allowed) const {
  if (std::find(allowed.begin(), allowed.end(), tensor.dtype) == allowed.end())
    fail(ErrorCode::unsupported_dtype, argument, std::string(to_string(tensor.dtype)), dtype_list(allowed));
}

void ArgumentChecks::same_dtype(std::string_view argument, const ConstTensorView& tensor,
                                std::string_view other_argument, const ConstTensorView& other) const {
  if (tensor.dtype != other.dtype)
    fail(ErrorCode::dtype_mismatch, argument, std::string(to_string(tensor.dtype)),
         std::string(to_string(other.dtype)) + ", as " + std::string(other_argument));
}

void ArgumentChecks::same_device(std::string_view argument, const ConstTensorView& tensor,
                                 std::string_view other_argument, const ConstTensorView& other) const {
  if (tensor.device != other.device)
    fail(ErrorCode::device_mismatch, argument, to_string(tensor.device),
         to_string(other.device) + ", as " + std::string(other_argument));
}

void ArgumentChecks::memory(std::string_view argument, const ConstTensorView& tensor) const {
  view(argument, tensor);
  std::int64_t count = 0;
  try {
    count = tensor.size();
    (void)byte_range(tensor);
  } catch (const Error& error) {
    fail(error.code(), argument, "shape " + tensor.shape_text() + ", strides " + tensor.strides_text(),
         "a byte range within 64 bits");
  }
  if (count == 0) return;
  if (tensor.data == nullptr)
    fail(ErrorCode::null_pointer, argument, "null with shape " + tensor.shape_text(), "memory");
  const std::size_t size = size_of(tensor.dtype);
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % size != 0)
    fail(ErrorCode::misaligned, argument,
         "an address " + std::to_string(reinterpret_cast<std::uintptr_t>(tensor.data) % size) + " past a multiple of " +
             std::to_string(size),
         "a multiple of " + std::to_string(size) + " bytes for " + std::string(to_string(tensor.dtype)));
}

void ArgumentChecks::writable(std::string_view argument, const ConstTensorView& tensor) const {
  memory(argument, tensor);
  if (!has_distinct_elements(tensor))
    fail(ErrorCode::bad_strides, argument, "shape " + tensor.shape_text() + ", strides " + tensor.strides_text(),
         "strides that give every element its own place");
}

void ArgumentChecks::no_overlap(std::string_view output, const ConstTensorView& tensor, std::string_view other_argument,
                                const ConstTensorView& other) const {
  if (may_overlap(tensor, other))
    fail(ErrorCode::overlap, output, "memory that " + std::string(other_argument) + " uses too", "memory of its own");
}

ByteRange byte_range(const ConstTensorView& tensor) {
  if (tensor.size() == 0) return {};
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  ByteRange range{0, size};
  for (const auto [extent, stride] : moving(tensor)) {
    std::int64_t reach = 0;
    std::int64_t& bound = stride < 0 ? range.first : range.last;
    if (__builtin_mul_overflow(extent - 1, stride, &reach) || __builtin_mul_overflow(reach, size, &reach) ||
        __builtin_add_overflow(bound, reach, &bound))
      fail(ErrorCode::size_overflow, "tensor", "shape " + tensor.shape_text() + ", strides " + tensor.strides_text(),
           "a byte range within 64 bits");
  }
  return range;
}

bool may_overlap(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.device != b.device || a.data == nullptr || b.data == nullptr || a.size() == 0 || b.size() == 0) return false;
  const ByteRange range_a = byte_range(a);
  const ByteRange range_b = byte_range(b);
  const auto start_a = reinterpret_cast<std::intptr_t>(a.data);
  const auto start_b = reinterpret_cast<std::intptr_t>(b.data);
  if (start_a + range_a.last <= start_b + range_b.first || start_b + range_b.last <= start_a + range_a.first)
    return false;
  // Slices of one buffer: on the circle of a common row pitch the two must not meet.
  for (const auto [extent, stride] : moving(a)) {
    const std::int64_t pitch = std::abs(stride) * static_cast<std::int64_t>(size_of(a.dtype));
    if (pitch == 0) continue;
    const Arc arc_a = arc_within(a, pitch);
    const Arc arc_b = arc_within(b, pitch);
    if (arc_a.length == 0 || arc_b.length == 0) continue;
    const std::int64_t from_a = ((arc_b.start - arc_a.start) % pitch + pitch) % pitch;
    const std::int64_t from_b = ((arc_a.start - arc_b.start) % pitch + pitch) % pitch;
    if (from_a >= arc_a.length && from_b >= arc_b.length) return false;
  }
  return true;
}

bool has_distinct_elements(const Layout& layout) {
  if (layout.size() == 0) return true;
  Dimensions dimensions = moving(layout);
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension& a, const Dimension& b) { return std::abs(a.stride) < std::abs(b.stride); });
  std::int64_t reach = 1;  // elements spanned by the dimensions so far
  for (const auto [extent, stride] : dimensions) {
    if (std::abs(stride) < reach) return false;
    reach += (extent - 1) * std::abs(stride);
  }
  return true;
}

int row_alignment(const ConstTensorView& tensor) {
  std::uint64_t bits = reinterpret_cast<std::uintptr_t>(tensor.data) | 16;
  for (std::size_t k = 0; k + 1 < static_cast<std::size_t>(tensor.rank); ++k)
    if (tensor.shape[k] > 1) bits |= static_cast<std::uint64_t>(tensor.strides[k]) * size_of(tensor.dtype);
  return static_cast<int>(bits & (~bits + 1));
}

}  // namespace tmaops
