#include "tmaops/tensor.hpp"

#include <algorithm>

#include "core/entry.hpp"
#include "core/enum_name.hpp"
#include "core/fail.hpp"

namespace tmaops {
namespace {

constexpr std::string_view kNames[] = {"f64", "f32", "f16", "bf16", "i64", "i32", "u8"};

bool has_rank(const Layout& layout) { return layout.rank >= 0 && layout.rank <= kMaxRank; }

std::string tuple_text(const std::array<std::int64_t, kMaxRank>& values, const Layout& layout) {
  const int rank = layout.rank;
  if (!has_rank(layout)) return "(rank " + std::to_string(rank) + ")";
  std::string text = "(";
  for (int i = 0; i < rank; ++i) text += (i ? ", " : "") + std::to_string(values[static_cast<std::size_t>(i)]);
  return text + (rank == 1 ? ",)" : ")");
}

std::int64_t multiply(std::int64_t a, std::int64_t b, const Layout& layout) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    fail(ErrorCode::size_overflow, "tensor shape", layout.shape_text(), "at most 2^63 - 1 elements");
  return product;
}

void check_extents(const Layout& layout) {
  const auto negative = [](std::int64_t extent) { return extent < 0; };
  if (!has_rank(layout) || std::any_of(layout.shape.begin(), layout.shape.begin() + layout.rank, negative))
    fail(ErrorCode::shape_mismatch, "tensor shape", layout.shape_text(),
         "a rank from 0 to " + std::to_string(kMaxRank) + ", and no negative extent");
}

void set_shape(Layout& layout, std::span<const std::int64_t> shape) {
  if (shape.size() > kMaxRank)
    fail(ErrorCode::shape_mismatch, "tensor shape", std::to_string(shape.size()) + " dimensions",
         "at most " + std::to_string(kMaxRank));
  layout.rank = static_cast<int>(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) layout.shape[i] = shape[i];
  check_extents(layout);
}

}  // namespace

std::string_view to_string(DType dtype) { return enum_name(kNames, dtype); }

std::optional<DType> parse_dtype(std::string_view name) { return parse_enum<DType>(kNames, name); }

std::string to_string(Device device) {
  return public_entry("to_string", [&]() -> std::string {
    switch (device.type) {
      case DeviceType::cpu:
        return "cpu";
      case DeviceType::cuda:
        return "cuda:" + std::to_string(device.index);
    }
    return "?";
  });
}

Layout Layout::contiguous(std::span<const std::int64_t> shape) {
  return public_entry("tensor", [&] {
    Layout layout;
    set_shape(layout, shape);
    std::int64_t stride = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      layout.strides[i] = stride;
      if (shape[i] > 1) stride = multiply(stride, shape[i], layout);
    }
    return layout;
  });
}

Layout Layout::strided(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  return public_entry("tensor", [&] {
    Layout layout;
    set_shape(layout, shape);
    if (strides.size() != shape.size())
      fail(ErrorCode::shape_mismatch, "tensor strides", std::to_string(strides.size()) + " strides",
           std::to_string(shape.size()) + ", one per dimension");
    for (std::size_t i = 0; i < shape.size(); ++i) layout.strides[i] = strides[i];
    return layout;
  });
}

std::int64_t Layout::size() const {
  return public_entry("tensor", [&] {
    check_extents(*this);
    const std::span<const std::int64_t> extents(shape.data(), static_cast<std::size_t>(rank));
    std::int64_t count = 1;
    if (std::ranges::find(extents, 0) != extents.end()) return std::int64_t{0};
    for (const std::int64_t extent : extents) count = multiply(count, extent, *this);
    return count;
  });
}

bool Layout::is_contiguous() const {
  if (size() == 0) return true;
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    const auto k = static_cast<std::size_t>(i);
    if (shape[k] != 1 && strides[k] != stride) return false;
    stride *= shape[k];
  }
  return true;
}

std::string Layout::shape_text() const {
  return public_entry("tensor", [&] { return tuple_text(shape, *this); });
}
std::string Layout::strides_text() const {
  return public_entry("tensor", [&] { return tuple_text(strides, *this); });
}

}  // namespace tmaops
