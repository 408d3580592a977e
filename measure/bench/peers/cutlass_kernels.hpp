// CUTLASS's kernels for a product, apart from its headers. Only in builds with TMAOPS_CUTLASS_DIR.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tmaops/tensor.hpp"

namespace tmaops::bench::cutlass_peer {

/// f16 in and out, D row-major.
struct Product {
  int m = 0, n = 0, k = 0;
  bool k_major = true;  // A and B are both contiguous along K, otherwise along M and N
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  std::int64_t leading_a = 0, leading_b = 0, leading_d = 0;  // elements
};

/// Launches on a stream; false when CUTLASS says that it failed.
using Launch = std::function<bool(Stream)>;

/// One for each kernel, always in the same order; null for one that does not take the product. The pointers need not be
/// valid yet. `k_major` is the product's.
template <bool k_major>
std::vector<Launch> launches(const Product& product);
template <>
std::vector<Launch> launches<true>(const Product& product);
template <>
std::vector<Launch> launches<false>(const Product& product);

/// Versions 1 and 2 of the published gemm, written with CuTe. Null for a product that is not of whole tiles of
/// 128 x 128, with a K of whole 64 and rows at multiples of 16 bytes.
Launch cute_v1(const Product& product);
Launch cute_v2(const Product& product);

}  // namespace tmaops::bench::cutlass_peer
