// alpha, C, bias and activation in registers, for a D in 16 bits: on a warp's accumulators, before they are rounded and
// stored by the copy engine or by the threads.
#pragma once

#include "device/vector.cuh"
#include "device/warp.cuh"
#include "ops/gemm/shared/epilogue_values.cuh"

namespace tmaops::ops::gemm {

/// x times a logistic function, 1 / (1 + exp(-p(x))): SiLU where p(x) is x, GELU where it is the logit of the normal
/// distribution. That is odd, x (c0 + c1 x^2 + ...); the terms are fitted for an error of at most 2.4e-7 max(1, |x|) in
/// GELU, with x^2 up to 36. Behind that p goes on straight, and the result is within 2e-9.
struct Logistic {
  static constexpr int kTerms = 8;
  float coefficient[kTerms];

  __device__ __forceinline__ explicit Logistic(Activation activation) {
    constexpr float kGelu[kTerms] = {1.59576976F,    0.0726639256F,   -6.13143857e-5F, -1.12723639e-4F,
                                     8.42773261e-6F, -3.19904643e-7F, 6.30818819e-9F,  -5.05599868e-11F};
#pragma unroll
    for (int i = 0; i < kTerms; ++i)
      coefficient[i] = activation == Activation::gelu ? kGelu[i] : (i == 0 ? 1.0F : 0.0F);
  }
  __device__ __forceinline__ float operator()(float x) const {
    const float square = fminf(x * x, 36.0F);
    float p = coefficient[kTerms - 1];
#pragma unroll
    for (int i = kTerms - 2; i >= 0; --i) p = fmaf(p, square, coefficient[i]);
    return __fdividef(x, 1.0F + __expf(-x * p));
  }
};

inline constexpr int kGroupFragments = 8;  // of 8 columns; a lane loads the bias of two of the 64

/// What a warp's rows and columns of a tile get of the bias: asked for before the products, and as it lies in memory,
/// since a conversion would wait for it. `parts`: of 64 rows, below each other.
template <int n, int parts = 1>
class FragmentBias {
 public:
  __device__ __forceinline__ FragmentBias(const Epilogue& epilogue, int row, int column) : epilogue_(epilogue) {
    if (epilogue.bias == nullptr) return;
    const int lane = device::lane_index();
    const auto load = [&](int at, std::int64_t stride) {
      if (epilogue.bias_dtype == DType::f32)
        return device::load_now(static_cast<const std::uint32_t*>(epilogue.bias) + at * stride);
      return device::load_now(static_cast<const std::uint16_t*>(epilogue.bias) + at * stride);
    };
    if (by_row()) {
#pragma unroll
      for (int i = 0; i < 2 * parts; ++i)
        if (const int at = row + lane / 4 + i / 2 * 64 + i % 2 * 8; at < epilogue.rows)
          bits_[i] = load(at, epilogue.bias_row_stride);
    } else {
#pragma unroll
      for (int i = 0; i < 2 * kGroups; ++i)
        if (const int at = column + i / 2 * 8 * kGroupFragments + 2 * lane + i % 2; at < epilogue.columns)
          bits_[i] = load(at, epilogue.bias_column_stride);
    }
  }
  /// Of the lane's two columns of a fragment, in its row or the one 8 further.
  __device__ __forceinline__ float2 at(int part, int half, int fragment) const {
    if (by_row()) {
      const float of_row = widen(bits_[2 * part + half]);
      return {of_row, of_row};
    }
    const int pair = fragment / kGroupFragments * 2;
    const int from = fragment % kGroupFragments * 4 + device::lane_index() % 4;
    return {widen(__shfl_sync(0xffffffffu, bits_[pair], from)), widen(__shfl_sync(0xffffffffu, bits_[pair + 1], from))};
  }

 private:
  static constexpr int kGroups = (n / 8 + kGroupFragments - 1) / kGroupFragments;

  __device__ __forceinline__ bool by_row() const { return epilogue_.bias_row_stride != 0; }
  __device__ __forceinline__ float widen(std::uint32_t bits) const {
    if (epilogue_.bias_dtype == DType::f16) return device::unpack<__half>(bits).x;
    return __uint_as_float(epilogue_.bias_dtype == DType::bf16 ? bits << 16 : bits);
  }

  const Epilogue& epilogue_;
  // Of rows, first and 8 further in each part; or of columns 2 lane and 2 lane + 1 of each group.
  std::uint32_t bits_[2 * (parts > kGroups ? parts : kGroups)] = {};
};

/// alpha, C, bias and activation on a warp's 16 x n accumulators, which begin at (row, column) of D: those of one part
/// of the bias's tile. C has 16 bits and aligned rows (has_fused_rows). Fragments of 8 columns before `first` and
/// from `end` on need not be right.
template <int n, class Bias>
__device__ __forceinline__ void finish_fragments(const Epilogue& epilogue, const Bias& bias, int part,
                                                 float (&accumulators)[n / 2], int row, int column, std::int64_t batch,
                                                 int first = 0, int end = n / 8) {
  constexpr int kAll = n / 8;
  constexpr int kFlight = 4;  // fragments whose C is on its way at once
  const int lane = device::lane_index();
  const int own_row = row + lane / 4;
  const int in_four = lane % 4;
#pragma unroll
  for (int group = 0; group < kAll; group += kFlight) {
    std::uint32_t from_c[kFlight][2] = {};
    if (epilogue.c != nullptr)
#pragma unroll
      for (int i = 0; i < kFlight; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          if (const int at = column + 8 * (group + i) + 2 * in_four;
              group + i < kAll && group + i >= first && group + i < end && own_row + 8 * half < epilogue.rows &&
              at < epilogue.columns)
            from_c[i][half] = *reinterpret_cast<const std::uint32_t*>(
                static_cast<const __half*>(epilogue.c) + batch * epilogue.c_batch_stride +
                (own_row + 8 * half) * epilogue.c_row_stride + at);
#pragma unroll
    for (int i = 0; i < kFlight; ++i) {
      if (group + i >= kAll) continue;
      const float2 of_bias[2] = {bias.at(part, 0, group + i), bias.at(part, 1, group + i)};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float2 added = of_bias[half];
        if (epilogue.c != nullptr) {
          const std::uint32_t word = from_c[i][half];
          const float2 c =
              epilogue.c_dtype == DType::f16 ? device::unpack<__half>(word) : device::unpack<__nv_bfloat16>(word);
          added = {fmaf(epilogue.beta, c.x, added.x), fmaf(epilogue.beta, c.y, added.y)};
        }
        float* const sums = accumulators + 4 * (group + i) + 2 * half;
        sums[0] = fmaf(epilogue.alpha, sums[0], added.x);
        sums[1] = fmaf(epilogue.alpha, sums[1], added.y);
      }
    }
  }
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
