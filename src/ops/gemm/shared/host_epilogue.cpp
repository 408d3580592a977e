#include "ops/gemm/shared/host_epilogue.hpp"

#include <algorithm>

#include "core/clones.hpp"
#include "core/convert_rows.hpp"
#include "ops/gemm/shared/host_activation.hpp"

namespace tmaops::ops::gemm {
namespace {

constexpr std::int64_t kPiece = 256;  // columns of a row that are in work at a time; two such buffers fit in the L1

TMAOPS_CLONES void scale(float factor, const float* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = factor * in[i];
}

TMAOPS_CLONES void add_scaled(float factor, const float* in, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] += factor * in[i];
}

TMAOPS_CLONES void add_constant(float term, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] += term;
}

}  // namespace

void store_tile(const Problem& problem, const Arguments& arguments, std::int64_t batch, std::int64_t row,
                std::int64_t column, std::int64_t rows, std::int64_t columns, const float* accumulators,
                std::int64_t pitch) {
  float x[kPiece];
  float term[kPiece];
  for (std::int64_t i = row; i < row + rows; ++i) {
    for (std::int64_t piece = 0; piece < columns; piece += kPiece) {
      const std::int64_t count = std::min(kPiece, columns - piece);
      const std::int64_t j = column + piece;
      if (accumulators == nullptr)
        std::fill_n(x, count, problem.alpha * 0.0F);
      else
        scale(problem.alpha, accumulators + (i - row) * pitch + piece, count, x);
      if (problem.c) {
        load_f32(arguments.c, problem.c->dtype, problem.c->offset(batch, i, j), problem.c->column_stride, count, term);
        add_scaled(problem.beta, term, count, x);
      }
      if (problem.bias_dtype && problem.bias_axis == BiasAxis::column) {
        load_f32(arguments.bias, *problem.bias_dtype, j * problem.bias_stride, problem.bias_stride, count, term);
        add_scaled(1.0F, term, count, x);
      } else if (problem.bias_dtype) {
        load_f32(arguments.bias, *problem.bias_dtype, i * problem.bias_stride, 1, 1, term);
        add_constant(term[0], count, x);
      }
      activate(problem.activation, x, count);
      store_f32(arguments.d, problem.d.dtype, problem.d.offset(batch, i, j), problem.d.column_stride, count, x);
    }
  }
}

}  // namespace tmaops::ops::gemm
