// Non-owning tensor views: pointer, element type, shape, strides in elements, device.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "tmaops/dtype.hpp"
#include "tmaops/export.hpp"

namespace tmaops {

/// Most dimensions a view can have.
inline constexpr int kMaxRank = 8;

enum class DeviceType : std::uint8_t { cpu, cuda };

/// Where a tensor lives: the host, or one CUDA device by its ordinal.
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu" or "cuda:0"; "?" for a type that is none.
TMAOPS_API std::string to_string(Device device);

/// Shape and strides shared by both views. Strides count elements, not bytes; dimension 0 is outermost.
/// One that is filled field by field, as from another language, may hold anything: every operator refuses a rank
/// outside 0 to kMaxRank, a negative extent, and an element type or device that does not exist, with an Error that
/// names it.
struct Layout {
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> strides{};

  /// Row-major layout of a shape. Throws Error (size_overflow) when a stride does not fit in 64 bits,
  /// Error (shape_mismatch) for a negative extent or more than kMaxRank dimensions.
  TMAOPS_API static Layout contiguous(std::span<const std::int64_t> shape);
  static Layout contiguous(std::initializer_list<std::int64_t> shape) {
    return contiguous(std::span<const std::int64_t>(shape.begin(), shape.size()));
  }
  /// A layout with given strides (in elements).
  TMAOPS_API static Layout strided(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);
  static Layout strided(std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> strides) {
    return strided(std::span<const std::int64_t>(shape.begin(), shape.size()),
                   std::span<const std::int64_t>(strides.begin(), strides.size()));
  }

  /// Number of elements (1 for rank 0). Throws Error (size_overflow) past 2^63 - 1, (shape_mismatch) for a rank outside
  /// 0 to kMaxRank or a negative extent.
  TMAOPS_API std::int64_t size() const;
  /// True when the elements are dense and in row-major order (extents of 1 and empty tensors do not count). Throws as
  /// size().
  TMAOPS_API bool is_contiguous() const;
  /// "(2, 22223, 8, 32)"; "(rank 100)" where the rank is none.
  TMAOPS_API std::string shape_text() const;
  /// "(5689088, 256, 32, 1)".
  TMAOPS_API std::string strides_text() const;
};

/// A tensor that may be written. Owns nothing.
struct TensorView : Layout {
  void* data = nullptr;
  DType dtype = DType::f32;
  Device device{};

  TensorView() = default;
  TensorView(void* pointer, DType type, Layout layout, Device where = {})
      : Layout(layout), data(pointer), dtype(type), device(where) {}
  /// Row-major view of a typed buffer, for example view(output, {n, t, d}).
  template <class T>
  TensorView(T* pointer, Layout layout, Device where = {})
    requires(!std::is_const_v<T> && !std::is_void_v<T>)
      : TensorView(static_cast<void*>(pointer), dtype_of<T>, layout, where) {}
};

/// A tensor that is only read. Owns nothing. An empty one (data null, rank 0) stands for "not given".
struct ConstTensorView : Layout {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Device device{};

  ConstTensorView() = default;
  ConstTensorView(const void* pointer, DType type, Layout layout, Device where = {})
      : Layout(layout), data(pointer), dtype(type), device(where) {}
  ConstTensorView(const TensorView& view)  // NOLINT(google-explicit-constructor): reading is always allowed
      : Layout(view), data(view.data), dtype(view.dtype), device(view.device) {}
  template <class T>
  ConstTensorView(const T* pointer, Layout layout, Device where = {})
    requires(!std::is_void_v<T>)
      : ConstTensorView(static_cast<const void*>(pointer), dtype_of<T>, layout, where) {}

  /// Whether the optional argument was given.
  bool given() const { return rank != 0 || data != nullptr; }
};

/// Row-major view of a typed buffer.
template <class T>
TensorView view(T* pointer, std::initializer_list<std::int64_t> shape, Device device = {})
  requires(!std::is_const_v<T>)
{
  return {pointer, Layout::contiguous(shape), device};
}
template <class T>
ConstTensorView view(const T* pointer, std::initializer_list<std::int64_t> shape, Device device = {}) {
  return {pointer, Layout::contiguous(shape), device};
}

/// A CUDA stream (cudaStream_t), opaque here so that this header needs no CUDA; null is the default stream.
/// The CPU variants ignore it.
using Stream = void*;

}  // namespace tmaops
