#include "ops/gemm/shared/supports.hpp"

#include <string>

#include "ops/gemm/shared/tile_order.hpp"

namespace tmaops::ops::gemm {

bool has_aligned_rows(const MatrixLayout& layout) {
  const auto bytes = static_cast<std::int64_t>(size_of(layout.dtype));
  return (layout.column_stride == 1 || layout.columns <= 1) && layout.alignment % 16 == 0 &&
         (layout.rows <= 1 || layout.row_stride * bytes % 16 == 0);
}

bool is_plain_product(const Problem& problem) {
  return problem.alpha == 1.0F && !problem.c && !problem.bias_dtype && problem.activation == Activation::none;
}

bool has_fused_rows(const Problem& problem) {
  const MatrixLayout& d = problem.d;
  const bool takes_c = !problem.c || (problem.c->dtype == problem.a.dtype && has_aligned_rows(*problem.c));
  const bool takes_bias = !problem.bias_dtype || *problem.bias_dtype == problem.a.dtype;
  return takes_c && takes_bias && d.dtype != DType::f32 && d.order == Order::row && d.columns % 8 == 0 &&
         supports_map(d, "d");
}

bool has_plain_rows(const Problem& problem) { return is_plain_product(problem) && has_fused_rows(problem); }

bool has_whole_chunks(const Problem& problem) {
  const auto narrow = [](const MatrixLayout& layout) { return 2 * layout.leading_dimension() <= INT32_MAX; };
  const bool along_k = problem.a.order == Order::row || problem.b.order == Order::column;  // an operand runs along it
  return has_plain_rows(problem) && problem.d.dtype == problem.a.dtype && problem.batch == 1 &&
         (problem.k % 8 == 0 || !along_k) && (problem.a.order == Order::row || problem.m % 8 == 0) &&
         narrow(problem.a) && narrow(problem.b) && narrow(problem.d);
}

Support supports_extents(const Problem& problem) {
  constexpr std::int64_t most = INT32_MAX - 1024;
  if (problem.m > most || problem.n > most || problem.k > most)
    return Support::no("needs M, N and K below 2^31 - 1024");
  return Support::yes();
}

Support supports_map(const MatrixLayout& layout, const char* name) {
  const auto no = [&](const char* why) { return Support::no(std::string(name) + why); };
  if (layout.order == Order::general) return no(" is contiguous along neither index, TMA needs one");
  if (layout.alignment % 16 != 0) return no(" does not start at a multiple of 16 bytes, as TMA needs");
  const std::int64_t lines = layout.order == Order::row ? layout.rows : layout.columns;
  const std::int64_t line = layout.order == Order::row ? layout.columns : layout.rows;
  if (lines > 1 && layout.leading_dimension() % 8 != 0)
    return no("'s leading dimension is not a multiple of 8 elements, as TMA needs");
  if (lines > 1 && layout.leading_dimension() < line)
    return no("'s rows or columns overlap or run backwards, which TMA cannot describe");
  if (layout.batch_stride < 0) return no("'s batches run backwards, which TMA cannot describe");
  constexpr std::int64_t most = std::int64_t{1} << 38;  // elements; 2^40 bytes less some
  if ((lines > 1 && layout.leading_dimension() >= most) || layout.batch_stride >= most)
    return no("'s strides are 2^39 bytes or more");
  return Support::yes();
}

Support supports_tensor_loads(const Problem& problem) {
  if (Support support = supports_extents(problem); !support) return support;
  if (problem.k == 0) return Support::no("needs K of at least 1");
  if (Support support = supports_map(problem.a, "a"); !support) return support;
  return supports_map(problem.b, "b");
}

Support supports_grid(const Problem& problem, int rows, int columns) {
  if (TileOrder(row_major_form(problem), rows, columns).fits() && problem.batch <= kMostGridRows) return Support::yes();
  return Support::no("needs at most 65,535 batches, and tiles that fit in a grid");
}

Support supports_any_batch(const Problem& problem) {
  if (Support support = supports_extents(problem); !support) return support;
  if (TileOrder(row_major_form(problem), 64, 128).fits() && problem.batch <= INT32_MAX) return Support::yes();
  return Support::no("needs fewer than 2^31 tiles");
}

Support supports_plain_rows(const Problem& problem) {
  if (has_plain_rows(row_major_form(problem))) return Support::yes();
  return Support::no("needs a D of 16 bits that is the product itself, its rows in whole chunks of 16 bytes");
}

}  // namespace tmaops::ops::gemm
