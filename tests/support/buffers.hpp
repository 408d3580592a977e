// Buffers for operator tests: seeded random data in any dtype, outputs poisoned with NaN between canaries.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "core/visit_dtype.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops::test {

/// An owned tensor with a strided layout and canary bytes before and after. Values go in and out as double.
class Buffer {
 public:
  static constexpr std::size_t kCanary = 64;
  static constexpr unsigned char kCanaryByte = 0xA5;

  /// Memory for the layout (non-negative strides), filled with NaN (0xFF bytes: NaN in every float type).
  Buffer(DType dtype, Layout layout) : dtype_(dtype), layout_(layout) {
    std::int64_t last = 0;
    for (int i = 0; i < layout.rank; ++i) {
      const auto k = static_cast<std::size_t>(i);
      if (layout.shape[k] > 0) last += (layout.shape[k] - 1) * layout.strides[k];
    }
    const std::size_t bytes = layout.size() == 0 ? 0 : (static_cast<std::size_t>(last) + 1) * size_of(dtype);
    bytes_.assign(bytes + 2 * kCanary, 0xFF);
    std::memset(bytes_.data(), kCanaryByte, kCanary);
    std::memset(bytes_.data() + kCanary + bytes, kCanaryByte, kCanary);
  }
  Buffer(DType dtype, std::initializer_list<std::int64_t> shape) : Buffer(dtype, Layout::contiguous(shape)) {}

  DType dtype() const { return dtype_; }
  const Layout& layout() const { return layout_; }
  void* data() { return bytes_.data() + kCanary; }
  const void* data() const { return bytes_.data() + kCanary; }
  TensorView view() { return {data(), dtype_, layout_}; }
  ConstTensorView view() const { return {data(), dtype_, layout_}; }
  operator TensorView() { return view(); }             // NOLINT(google-explicit-constructor)
  operator ConstTensorView() const { return view(); }  // NOLINT(google-explicit-constructor)

  /// Element offset of a row-major index.
  std::int64_t offset(std::int64_t index) const {
    std::int64_t at = 0;
    for (int i = layout_.rank - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      at += index % layout_.shape[k] * layout_.strides[k];
      index /= layout_.shape[k];
    }
    return at;
  }
  double get(std::int64_t index) const {
    return visit_dtype(dtype_, [&](auto* type) {
      return static_cast<double>(static_cast<std::remove_pointer_t<decltype(type)> const*>(data())[offset(index)]);
    });
  }
  void set(std::int64_t index, double value) {
    visit_dtype(dtype_, [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      static_cast<T*>(data())[offset(index)] = static_cast<T>(value);
    });
  }
  template <class Generator>
  Buffer& fill(const Generator& generate) {
    for (std::int64_t i = 0; i < layout_.size(); ++i) set(i, generate());
    return *this;
  }
  Buffer& fill_normal(std::mt19937_64& random, double scale = 1.0) {
    std::normal_distribution<double> normal(0.0, scale);
    return fill([&] { return normal(random); });
  }
  Buffer& fill_uniform(std::mt19937_64& random, double low, double high) {
    std::uniform_real_distribution<double> uniform(low, high);
    return fill([&] { return uniform(random); });
  }
  std::vector<double> values() const {
    std::vector<double> all(static_cast<std::size_t>(layout_.size()));
    for (std::int64_t i = 0; i < layout_.size(); ++i) all[static_cast<std::size_t>(i)] = get(i);
    return all;
  }
  /// True while nothing was written outside the tensor.
  bool canaries_intact() const {
    for (std::size_t i = 0; i < kCanary; ++i)
      if (bytes_[i] != kCanaryByte || bytes_[bytes_.size() - 1 - i] != kCanaryByte) return false;
    return true;
  }
  /// Bytes of the tensor itself, to compare two runs bit by bit.
  std::vector<unsigned char> bits() const { return {bytes_.begin() + kCanary, bytes_.end() - kCanary}; }

 private:
  DType dtype_;
  Layout layout_;
  std::vector<unsigned char> bytes_;
};

/// Checks every element against the reference: |got - want| <= absolute + relative * |want|; NaN and infinity must
/// match.
inline void expect_close(const Buffer& got, const Buffer& want, double relative, double absolute,
                         const char* what = "") {
  ASSERT_EQ(got.layout().size(), want.layout().size());
  EXPECT_TRUE(got.canaries_intact()) << what << ": wrote outside the output";
  for (std::int64_t i = 0; i < got.layout().size(); ++i) {
    const double a = got.get(i);
    const double b = want.get(i);
    const bool same =
        (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= absolute + relative * std::abs(b);
    ASSERT_TRUE(same) << what << ": element " << i << " of " << got.layout().shape_text() << ": got " << a << ", want "
                      << b;
  }
}

}  // namespace tmaops::test
