// The sampling points of one query and head, in any layout and type, as dense rows of the arithmetic type.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/ms_deform_attn/shared/convert.hpp"
#include "ops/ms_deform_attn/shared/elements.hpp"

namespace tmaops::ops::ms_deform_attn {

/// Rows [n, q, m] of sampling_locations (two elements per point: x, y) or attention_weights (one).
class PointRows {
 public:
  PointRows(const Problem& problem, const ConstTensorView& tensor, int elements_per_point) : tensor_(tensor) {
    const std::int64_t step = elements_per_point == 2 ? xy_stride(tensor) : 0;
    for (const Level& level : problem.levels)
      for (std::int64_t p = 0; p < level.points; ++p)
        for (int e = 0; e < elements_per_point; ++e)
          offsets_.push_back(point_offset(problem, level, p, tensor) + e * step);
    for (std::size_t i = 0; i < offsets_.size(); ++i) dense_ = dense_ && offsets_[i] == static_cast<std::int64_t>(i);
  }

  /// Elements [begin, end) of the row, counted over points.
  template <class T>
  void load(std::int64_t n, std::int64_t q, std::int64_t m, std::size_t begin, std::size_t end, T* to) const {
    with_float_type(tensor_.dtype, [&]<class Stored>(Stored*) {
      const Stored* from = static_cast<const Stored*>(tensor_.data) + head_offset(tensor_, n, q, m);
      if (dense_) {
        load_row(from + begin, 1, static_cast<std::int64_t>(end - begin), to);
      } else {
        for (std::size_t i = begin; i < end; ++i) to[i - begin] = convert<T>(from[offsets_[i]]);
      }
    });
  }
  template <class T>
  void load(std::int64_t n, std::int64_t q, std::int64_t m, T* to) const {
    load(n, q, m, 0, offsets_.size(), to);
  }

  /// Writes elements [begin, end) of a row of gradients; `tensor` must be a view of the same layout kind that may be
  /// written.
  template <class T>
  void store(std::int64_t n, std::int64_t q, std::int64_t m, std::size_t begin, std::size_t end, const T* from,
             const TensorView& tensor) const {
    with_float_type(tensor.dtype, [&]<class Stored>(Stored*) {
      Stored* to = static_cast<Stored*>(tensor.data) + head_offset(tensor, n, q, m);
      if (dense_) {
        store_row(from, static_cast<std::int64_t>(end - begin), to + begin, 1);
      } else {
        for (std::size_t i = begin; i < end; ++i) to[offsets_[i]] = static_cast<Stored>(from[i - begin]);
      }
    });
  }

  const ConstTensorView& tensor() const { return tensor_; }
  /// Whether the elements of a row follow each other in the tensor.
  bool dense() const { return dense_; }

  /// Where the row [n, q, m] starts.
  const void* address(std::int64_t n, std::int64_t q, std::int64_t m) const {
    return static_cast<const char*>(tensor_.data) +
           head_offset(tensor_, n, q, m) * static_cast<std::int64_t>(size_of(tensor_.dtype));
  }

  /// The row itself when it needs no conversion and no gathering, else null.
  template <class T>
  const T* direct(std::int64_t n, std::int64_t q, std::int64_t m) const {
    if (!dense_ || tensor_.dtype != dtype_of<T>) return nullptr;
    return static_cast<const T*>(tensor_.data) + head_offset(tensor_, n, q, m);
  }

  /// The same of a tensor of gradients of this layout.
  template <class T>
  T* direct(std::int64_t n, std::int64_t q, std::int64_t m, const TensorView& tensor) const {
    if (!dense_ || tensor.dtype != dtype_of<T>) return nullptr;
    return static_cast<T*>(tensor.data) + head_offset(tensor, n, q, m);
  }

 private:
  ConstTensorView tensor_;
  std::vector<std::int64_t> offsets_;
  bool dense_ = true;
};

}  // namespace tmaops::ops::ms_deform_attn
