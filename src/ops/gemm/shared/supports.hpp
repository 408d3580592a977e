// What GPU variants ask of a problem, on the host. Problems here are in the form in which D is row-major, but for those
// of supports_*(), which are the caller's.
#pragma once

#include <cstdint>

#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm {

/// Whether rows are contiguous and each starts at a multiple of 16 bytes.
bool has_aligned_rows(const MatrixLayout& layout);

/// Whether D is the product itself: no alpha, C, bias or activation.
bool is_plain_product(const Problem& problem);

/// Whether D is the product itself in 16 bits, in rows of whole chunks of 16 bytes that TMA can describe. Kernels then
/// round and store their accumulators, without the general epilogue.
bool has_plain_rows(const Problem& problem);

/// Whether D is written as plain rows are, once its fragments are finished (fragment_epilogue.cuh): nothing, or a bias
/// and a C in the type of A, the rows of C aligned as those of D, and any activation.
bool has_fused_rows(const Problem& problem);

/// Whether a product with plain rows comes in whole chunks throughout: one batch, D in the type of A, strides in 32
/// bits.
bool has_whole_chunks(const Problem& problem);

/// Tiles count in 32 bits.
Support supports_extents(const Problem& problem);
/// A matrix can be loaded by TMA.
Support supports_map(const MatrixLayout& layout, const char* name);
/// A and B can be loaded by TMA.
Support supports_tensor_loads(const Problem& problem);
/// Tiles of rows x columns of D fit in a grid with a block each (TileOrder).
Support supports_grid(const Problem& problem, int rows, int columns);
/// Tiles of 64 x 128, or larger ones, fit in a grid whose blocks go through the batches.
Support supports_any_batch(const Problem& problem);
/// D is written as the product itself; see has_plain_rows().
Support supports_plain_rows(const Problem& problem);

}  // namespace tmaops::ops::gemm
