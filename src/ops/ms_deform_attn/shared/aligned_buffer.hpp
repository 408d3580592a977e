// Memory of numbers, aligned to cache lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

namespace tmaops::ops::ms_deform_attn {

/// `count` elements that nobody has written yet.
template <class T>
class AlignedBuffer {
 public:
  explicit AlignedBuffer(std::size_t count)
      : data_(static_cast<T*>(::operator new(std::max<std::size_t>(count, 1) * sizeof(T), std::align_val_t{64}))) {}
  /// Filled with `value`.
  AlignedBuffer(std::size_t count, T value) : AlignedBuffer(count) { std::fill_n(data(), count, value); }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* pointer) const { ::operator delete(pointer, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Free> data_;
};

}  // namespace tmaops::ops::ms_deform_attn
