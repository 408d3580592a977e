// A call as the kernels take it. A column-major D is computed as D^T = B^T A^T, so that kernels write rows.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/cuda_types.hpp"
#include "core/work.hpp"
#include "device/wgmma.cuh"
#include "ops/gemm/problem.hpp"
#include "ops/gemm/shared/supports.hpp"

namespace tmaops::ops::gemm {

using device::Major;

/// K of one stage of every pipeline: a row of 64 elements is 128 bytes, the widest swizzle.
inline constexpr int kDepth = 64;
inline constexpr int kRowBytes = 128;

/// What becomes of the accumulators: D = act(alpha accumulators + beta C + bias). Strides count elements.
struct Epilogue {
  void* d = nullptr;
  std::int64_t d_row_stride = 0, d_column_stride = 0, d_batch_stride = 0;
  const void* c = nullptr;  // null: no C
  std::int64_t c_row_stride = 0, c_column_stride = 0, c_batch_stride = 0;
  const void* bias = nullptr;                                // null: none
  std::int64_t bias_row_stride = 0, bias_column_stride = 0;  // one of them is 0
  int rows = 0, columns = 0;
  float alpha = 1.0F, beta = 0.0F;
  DType d_dtype = DType::f32, c_dtype = DType::f32, bias_dtype = DType::f32;
  Activation activation = Activation::none;
  bool plain = true;     // D = A B and nothing else
  bool vectors = false;  // rows of D are contiguous and start at multiples of 16 bytes
};

struct RowMajorCall : RowMajorForm {
  using RowMajorForm::RowMajorForm;

  /// The same product as D^T = B^T A^T: D is then column-major.
  RowMajorCall swapped() const {
    RowMajorCall made = *this;
    made.problem = transposed(problem);
    std::swap(made.arguments.a, made.arguments.b);
    return made;
  }

  Epilogue epilogue() const {
    Epilogue made{.d = arguments.d,
                  .d_row_stride = problem.d.row_stride,
                  .d_column_stride = problem.d.column_stride,
                  .d_batch_stride = problem.d.batch_stride,
                  .rows = static_cast<int>(problem.m),
                  .columns = static_cast<int>(problem.n),
                  .alpha = problem.alpha,
                  .beta = problem.beta,
                  .d_dtype = problem.d.dtype,
                  .activation = problem.activation};
    if (problem.c) {
      made.c = arguments.c;
      made.c_row_stride = problem.c->row_stride;
      made.c_column_stride = problem.c->column_stride;
      made.c_batch_stride = problem.c->batch_stride;
      made.c_dtype = problem.c->dtype;
    }
    if (problem.bias_dtype) {
      made.bias = arguments.bias;
      made.bias_dtype = *problem.bias_dtype;
      (problem.bias_axis == BiasAxis::row ? made.bias_row_stride : made.bias_column_stride) = problem.bias_stride;
    }
    made.plain = is_plain_product(problem);
    made.vectors = has_aligned_rows(problem.d);
    return made;
  }
  int k_tiles(int depth = kDepth) const { return static_cast<int>((problem.k + depth - 1) / depth); }
};

/// Which index fills the rows of an operand's tiles. General strides: k, element by element.
inline Major major_of_a(const Problem& problem) { return problem.a.order == Order::column ? Major::mn : Major::k; }
inline Major major_of_b(const Problem& problem) { return problem.b.order == Order::row ? Major::mn : Major::k; }

/// Calls fn.template operator()<element type, major of A, major of B>().
template <class Fn>
void with_kernel_types(const RowMajorCall& call, const Fn& fn) {
  const Problem& problem = call.problem;
  const auto with_type = [&]<class T>(T*) {
    const bool a_mn = major_of_a(problem) == Major::mn;
    const bool b_mn = major_of_b(problem) == Major::mn;
    if (a_mn && b_mn)
      fn.template operator()<T, Major::mn, Major::mn>();
    else if (a_mn)
      fn.template operator()<T, Major::mn, Major::k>();
    else if (b_mn)
      fn.template operator()<T, Major::k, Major::mn>();
    else
      fn.template operator()<T, Major::k, Major::k>();
  };
  if (problem.a.dtype == DType::f16)
    with_built_type<__half>(with_type);
  else
    with_built_type<__nv_bfloat16>(with_type);
}

}  // namespace tmaops::ops::gemm
