// The arrays in a block's dynamic shared memory whose lengths a call decides: where each is, with its type.
#pragma once

#include <cstdint>

namespace tmaops::ops::resample::gpu {

/// An array behind the fixed part of a kernel's storage. array_of() gives it to a kernel.
template <class T>
struct SharedArray {
  int at = 0;  // bytes behind Storage::bytes
};

/// The bytes that stand first.
inline constexpr SharedArray<unsigned char> kFirstArray{};

/// Lays arrays out one behind the other.
struct SharedLayout {
  int end = 0;  // of the last array, in bytes

  template <class T>
  SharedArray<T> add(std::int64_t count, int alignment = 128) {
    const SharedArray<T> array{(end + alignment - 1) / alignment * alignment};
    end = array.at + static_cast<int>(count) * static_cast<int>(sizeof(T));
    return array;
  }
};

}  // namespace tmaops::ops::resample::gpu
