// alpha, C, bias and activation in registers, for a D in 16 bits: on a warp's accumulators, before they are rounded and
// stored by the copy engine or by the threads.
#pragma once

#include "device/approximate.cuh"
#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ops/gemm/shared/epilogue_values.cuh"

namespace tmaops::ops::gemm {

/// x times a logistic function, 1 / (1 + 2^q(x)). SiLU: q(x) = -log2(e) x. GELU: q(x) is the logit of the normal
/// distribution, which is odd, x (c0 + c1 x^2 + ...); the terms are fitted for an error of at most 4e-7 max(1, |x|)
/// with x^2 up to 36. Behind that q goes on straight, and the result is within 2e-9.
struct Logistic {
  static constexpr int kTerms = 8;
  float coefficient[kTerms];

  __device__ __forceinline__ explicit Logistic(Activation activation) {
    constexpr float kGelu[kTerms] = {-2.30220914F,    -0.104831882F,  8.84579567e-5F,  1.62625831e-4F,
                                     -1.21586481e-5F, 4.61524849e-7F, -9.10079212e-9F, 7.2942645e-11F};
    constexpr float kSilu = -1.44269504F;
#pragma unroll
    for (int i = 0; i < kTerms; ++i)
      coefficient[i] = activation == Activation::gelu ? kGelu[i] : (i == 0 ? kSilu : 0.0F);
  }
  __device__ __forceinline__ float operator()(float x) const {
    const float square = fminf(x * x, 36.0F);
    float q = coefficient[kTerms - 1];
#pragma unroll
    for (int i = kTerms - 2; i >= 0; --i) q = fmaf(q, square, coefficient[i]);
    return x * device::reciprocal(1.0F + device::power_of_two(x * q));
  }
};

inline constexpr int kGroupFragments = 8;  // that the steps below take at once

/// What a warp's rows and columns of a tile get of the bias: asked for before the products, and as it lies in memory,
/// since a conversion would wait for it. `parts`: of 64 rows, below each other. Without `early` a bias by columns is
/// loaded after the products: there are no registers to hold it before.
template <class T, int n, int parts = 1, bool early = (n < 256)>
class FragmentBias {
 public:
  __device__ __forceinline__ FragmentBias(const Epilogue& epilogue, int row, int column)
      : epilogue_(epilogue), column_(column + device::lane_index() % 4 * 2) {
    if (epilogue.bias == nullptr) return;
    if (by_row()) {
#pragma unroll
      for (int i = 0; i < 2 * parts; ++i)
        if (const int at = row + device::lane_index() / 4 + i / 2 * 64 + i % 2 * 8; at < epilogue.rows)
          bits_[i] = device::load_now(static_cast<const std::uint16_t*>(epilogue.bias) + at * epilogue.bias_row_stride);
    } else if (early) {
      load_columns(0, n / 8);
    }
  }

  /// Accumulators times alpha, and the bias of their columns.
  template <int columns>
  __device__ __forceinline__ void scale_and_add_columns(float (&accumulators)[columns / 2]) {
    const bool by_column = epilogue_.bias != nullptr && !by_row();
#pragma unroll
    for (int group = 0; group < columns / 8; group += kGroupFragments) {
      if (!early && by_column)
        load_columns(group, group + kGroupFragments < columns / 8 ? group + kGroupFragments : columns / 8);
      float2 added[kGroupFragments] = {};
      if (by_column)
#pragma unroll
        for (int i = 0; i < kGroupFragments && group + i < columns / 8; ++i)
          added[i] = device::unpack<T>(bits_[group + i]);
#pragma unroll
      for (int i = 0; i < kGroupFragments && group + i < columns / 8; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float* const sums = accumulators + 4 * (group + i) + 2 * half;
          sums[0] = fmaf(epilogue_.alpha, sums[0], added[i].x);
          sums[1] = fmaf(epilogue_.alpha, sums[1], added[i].y);
        }
    }
  }
  /// The bias of the accumulators' rows.
  template <int columns>
  __device__ __forceinline__ void add_rows(int part, float (&accumulators)[columns / 2]) const {
    if (epilogue_.bias == nullptr || !by_row()) return;
    const float added[2] = {device::unpack<T>(bits_[2 * part]).x, device::unpack<T>(bits_[2 * part + 1]).x};
#pragma unroll
    for (int i = 0; i < columns / 2; ++i) accumulators[i] += added[i / 2 % 2];
  }

 private:
  /// The pairs of the fragments from `first` on, before `end`.
  __device__ __forceinline__ void load_columns(int first, int end) {
    const std::int64_t stride = epilogue_.bias_column_stride;
    const auto* const from = static_cast<const std::uint16_t*>(epilogue_.bias) + column_ * stride;
    if (stride == 1 && reinterpret_cast<std::uintptr_t>(from) % 4 == 0) {
#pragma unroll
      for (int i = first; i < end; ++i)
        if (has_pair(i)) bits_[i] = device::load_now(reinterpret_cast<const std::uint32_t*>(from + 8 * i));
    } else {
#pragma unroll
      for (int i = first; i < end; ++i)
        if (has_pair(i))
          bits_[i] = device::load_now(from + 8 * i * stride) | device::load_now(from + (8 * i + 1) * stride) << 16;
    }
  }
  __device__ __forceinline__ bool by_row() const { return epilogue_.bias_row_stride != 0; }
  __device__ __forceinline__ bool has_pair(int fragment) const {
    return column_ + 8 * fragment + 1 < epilogue_.columns;
  }

  const Epilogue& epilogue_;
  int column_;  // the lane's first in the first fragment
  // Of rows, first and 8 further in each part; or of the lane's two columns in each fragment.
  std::uint32_t bits_[2 * parts > n / 8 ? 2 * parts : n / 8] = {};
};

/// beta times C to a warp's 16 x n accumulators, in fragments from `first` on, before `end`.
template <class T, int n>
__device__ __forceinline__ void add_c(const Epilogue& epilogue, float (&accumulators)[n / 2], int row, int column,
                                      std::int64_t batch, int first, int end) {
  const int own_row = row + device::lane_index() / 4;
  const int own_column = column + device::lane_index() % 4 * 2;
  const T* const from = static_cast<const T*>(epilogue.c) + batch * epilogue.c_batch_stride +
                        own_row * epilogue.c_row_stride + own_column;
#pragma unroll
  for (int group = 0; group < n / 8; group += kGroupFragments) {
    std::uint32_t words[kGroupFragments][2] = {};
#pragma unroll
    for (int i = 0; i < kGroupFragments && group + i < n / 8; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        if (group + i >= first && group + i < end && own_row + 8 * half < epilogue.rows &&
            own_column + 8 * (group + i) < epilogue.columns)
          words[i][half] =
              *reinterpret_cast<const std::uint32_t*>(from + 8 * half * epilogue.c_row_stride + 8 * (group + i));
#pragma unroll
    for (int i = 0; i < kGroupFragments && group + i < n / 8; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 c = device::unpack<T>(words[i][half]);
        float* const sums = accumulators + 4 * (group + i) + 2 * half;
        sums[0] = fmaf(epilogue.beta, c.x, sums[0]);
        sums[1] = fmaf(epilogue.beta, c.y, sums[1]);
      }
  }
}

/// alpha, C, bias and activation on a warp's 16 x n accumulators, which begin at (row, column) of D: those of one part
/// of the bias's tile. C and bias have the type T, C's rows are aligned (has_fused_rows). Fragments of 8 columns before
/// `first` and from `end` on need not be right. Each step is straight code: a warp is nearly alone on its scheduler, so
/// a branch for each fragment takes longer than the fragment.
template <class T, int n, class Bias>
__device__ __forceinline__ void finish_fragments(const Epilogue& epilogue, Bias& bias, int part,
                                                 float (&accumulators)[n / 2], int row, int column, std::int64_t batch,
                                                 int first = 0, int end = n / 8) {
  bias.template scale_and_add_columns<n>(accumulators);
  if (epilogue.c != nullptr) add_c<T, n>(epilogue, accumulators, row, column, batch, first, end);
  bias.template add_rows<n>(part, accumulators);
  if (epilogue.activation == Activation::relu) {
#pragma unroll
    for (float& sum : accumulators) sum = sum < 0.0F ? 0.0F : sum;  // NaN stays NaN
  } else if (epilogue.activation != Activation::none) {
    const Logistic scaled(epilogue.activation);
#pragma unroll
    for (float& sum : accumulators) sum = scaled(sum);
  }
}

}  // namespace tmaops::ops::gemm
