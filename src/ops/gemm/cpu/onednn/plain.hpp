// How a matrix lies that oneDNN reads or writes, and copies that lie so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/convert_rows.hpp"
#include "ops/gemm/cpu/onednn/library.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm::onednn {

/// Contiguous along its rows or its columns.
struct Plain {
  DType dtype = DType::f32;
  bool row_major = true;
  std::int64_t leading_dimension = 0;

  dnnl::memory::desc descriptor(std::int64_t rows, std::int64_t columns) const {
    using dnnl::memory;
    return {{rows, columns},
            data_type(dtype),
            row_major ? memory::dims{leading_dimension, 1} : memory::dims{1, leading_dimension}};
  }
};

/// Copies the block of a matrix that starts at element `offset`, with zeros between its rows or columns.
inline void copy_block(const void* data, const MatrixLayout& layout, std::int64_t offset, std::int64_t rows,
                       std::int64_t columns, const Plain& to, char* copy) {
  const std::int64_t length = to.row_major ? columns : rows;
  const std::int64_t stride = to.row_major ? layout.column_stride : layout.row_stride;
  const std::size_t size = size_of(to.dtype);
  const std::size_t used = static_cast<std::size_t>(length) * size;
  const std::size_t pitch = static_cast<std::size_t>(to.leading_dimension) * size;
  float values[256];
  for (std::int64_t line = 0; line < (to.row_major ? rows : columns); ++line, copy += pitch) {
    const std::int64_t from = offset + line * (to.row_major ? layout.row_stride : layout.column_stride);
    std::memset(copy + used, 0, pitch - used);
    if (to.dtype == layout.dtype && stride == 1)
      std::memcpy(copy, static_cast<const char*>(data) + from * static_cast<std::int64_t>(size), used);
    else
      for (std::int64_t i = 0; i < length; i += 256) {  // through f32 and back, exact
        const std::int64_t count = std::min<std::int64_t>(256, length - i);
        load_f32(data, layout.dtype, from + i * stride, stride, count, values);
        store_f32(copy, to.dtype, i, 1, count, values);
      }
  }
}

}  // namespace tmaops::ops::gemm::onednn
