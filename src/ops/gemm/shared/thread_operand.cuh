// An operand as threads fetch it, for any strides and any alignment.
#pragma once

#include "device/cp_async.cuh"
#include "ops/gemm/shared/multiply.cuh"

namespace tmaops::ops::gemm {

/// A or B: `inner` is the index that fills the rows of a tile (k in a K-major one), `outer` the other one.
struct ThreadOperand {
  const unsigned char* data = nullptr;
  std::int64_t inner_stride = 2;  // bytes
  std::int64_t outer_stride = 0;
  std::int64_t batch_stride = 0;
  int inner = 0;  // extents
  int outer = 0;
  int width = 2;  // bytes of one copy: 16, 8, 4: cp.async; 2: loads of single elements
};

inline ThreadOperand thread_operand(const MatrixLayout& layout, const void* data, bool inner_is_column) {
  ThreadOperand made{.data = static_cast<const unsigned char*>(data),
                     .inner_stride = 2 * (inner_is_column ? layout.column_stride : layout.row_stride),
                     .outer_stride = 2 * (inner_is_column ? layout.row_stride : layout.column_stride),
                     .batch_stride = 2 * layout.batch_stride,
                     .inner = static_cast<int>(inner_is_column ? layout.columns : layout.rows),
                     .outer = static_cast<int>(inner_is_column ? layout.rows : layout.columns)};
  if (made.inner_stride == 2 || made.inner == 1)
    for (const int width : {4, 8, 16})
      if (layout.alignment % width == 0 && (made.outer <= 1 || made.outer_stride % width == 0)) made.width = width;
  if (made.width > 2) made.inner_stride = 2;
  return made;
}
inline ThreadOperand thread_a(const RowMajorCall& call) {
  return thread_operand(call.problem.a, call.arguments.a, major_of_a(call.problem) == Major::k);
}
inline ThreadOperand thread_b(const RowMajorCall& call) {
  return thread_operand(call.problem.b, call.arguments.b, major_of_b(call.problem) == Major::mn);
}

}  // namespace tmaops::ops::gemm
