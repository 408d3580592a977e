// The gradients of one sample, and the kernel that takes every backward problem.
#pragma once

#include "ops/ms_deform_attn/cuda/backward_call.cuh"
#include "ops/ms_deform_attn/cuda/sample.cuh"

namespace tmaops::ops::ms_deform_attn_backward::cuda {

inline constexpr int kFour = 4;  // channels of a thread that adds 16 bytes of f32

/// Four neighbouring values as f32.
template <class Value>
__device__ __forceinline__ void load_four(const Value* from, float (&to)[kFour]) {
  if constexpr (std::is_same_v<Value, float>) {
    const float4 four = __ldg(reinterpret_cast<const float4*>(from));
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    const uint2 words = __ldg(reinterpret_cast<const uint2*>(from));
    const auto pair = [](std::uint32_t word) {
      if constexpr (std::is_same_v<Value, __half>)
        return __half22float2(*reinterpret_cast<const __half2*>(&word));
      else
        return __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&word));
    };
    const float2 low = pair(words.x);
    const float2 high = pair(words.y);
    to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
  }
}

/// The four corners of a bilinear sample, or the one pixel of a nearest one.
struct Footprint {
  int row = 0;
  int column = 0;
  float across = 0;  // from the left to the right column
  float down = 0;
  unsigned inside = 0;  // bit k: corner k (upper left, upper right, lower left, lower right) lies in the level
  __device__ __forceinline__ bool has(int corner) const { return (inside >> corner & 1u) != 0; }
  __device__ __forceinline__ float bilinear(int corner) const {
    return (corner / 2 ? down : 1 - down) * (corner % 2 ? across : 1 - across);
  }
};

__device__ __forceinline__ Footprint footprint(float x, float y, const DeviceLevel& level, bool nearest) {
  Footprint made;
  if (nearest) {
    if (locate_nearest(x, level.width, made.column) && locate_nearest(y, level.height, made.row)) made.inside = 1;
    return made;
  }
  Side side;
  Side upright;
  if (!locate(x, level.width, side) || !locate(y, level.height, upright)) return made;
  made.column = side.first;
  made.row = upright.first;
  made.across = side.high;
  made.down = upright.high;
  const unsigned columns = (side.first >= 0 ? 1u : 0u) | (side.first + 1 < level.width ? 2u : 0u);
  made.inside = (upright.first >= 0 ? columns : 0u) | (upright.first + 1 < level.height ? columns << 2 : 0u);
  return made;
}

/// Gradients of one point: what its attention weight, x and y are multiplied with, linear in the four c of the
/// definition, so that each thread may add up its own channels first.
struct PointSums {
  float weight = 0;
  float x = 0;
  float y = 0;
};

__device__ __forceinline__ PointSums point_sums(const Footprint& at, const float (&c)[4]) {
  PointSums sums;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float bilinear = at.bilinear(k);
    if (bilinear != 0.0f) sums.weight = fmaf(bilinear, c[k], sums.weight);
  }
  sums.x = fmaf(1 - at.down, c[1] - c[0], at.down * (c[3] - c[2]));
  sums.y = fmaf(1 - at.across, c[2] - c[0], at.across * (c[3] - c[1]));
  return sums;
}

/// `weight` and `sums` of a skipped point are 0: a NaN or an infinity among the weights would else make its gradients
/// NaN, which are 0 by definition.
__device__ __forceinline__ void write_point(const BackwardCall& call, const Item& item, int l, std::int64_t p,
                                            const DeviceLevel& level, float weight, const PointSums& sums) {
  const bool nearest = call.inputs.nearest;
  if (call.weights.data != nullptr)
    write_any(call.weights, call.weights.row(item.n, item.q, item.m) + call.weight_offsets.at(l, p, level),
              sums.weight);
  if (call.locations.data == nullptr) return;
  const std::int64_t at = call.locations.row(item.n, item.q, item.m) + call.location_offsets.at(l, p, level);
  write_any(call.locations, at, nearest ? 0.0f : weight * static_cast<float>(level.width) * sums.x);
  write_any(call.locations, at + call.locations.axis,
            nearest ? 0.0f : weight * static_cast<float>(level.height) * sums.y);
}

/// Sums in f32 by atomic additions: in any order.
struct FloatSums {
  const BackwardCall& call;
  __device__ __forceinline__ explicit FloatSums(const BackwardCall& of) : call(of) {}
  __device__ __forceinline__ void add(const Item& item, std::int64_t s, std::int64_t d, float term) const {
    float* sums = static_cast<float*>(const_cast<void*>(call.sums.data));
    atomicAdd(sums + call.sums.at(item.n, s, item.m) + d * call.sums.channel, term);
  }
};

/// Sums in 64-bit integers, which do not depend on the order. Terms that are not finite go to the f32 sums, where
/// infinities and NaN add up to the same in any order.
struct FixedSums {
  const BackwardCall& call;
  double scale;
  __device__ __forceinline__ explicit FixedSums(const BackwardCall& of)
      : call(of), scale(of.fixed != nullptr ? scalbn(1.0, fixed_exponent(of)) : 0.0) {}  // not when unwanted
  __device__ __forceinline__ void add(const Item& item, std::int64_t s, std::int64_t d, float term) const {
    if (!(fabsf(term) <= 3.402823466e38f)) {
      FloatSums(call).add(item, s, d, term);
      return;
    }
    const std::int64_t at = ((item.n * call.length + s) * call.inputs.heads + item.m) * call.inputs.channels + d;
    atomicAdd(reinterpret_cast<unsigned long long*>(call.fixed + at),
              static_cast<unsigned long long>(__double2ll_rn(static_cast<double>(term) * scale)));
  }
};

/// Per multiprocessor, at least, of a kernel that runs warp_per_item.
inline constexpr int kBlocksOfWarps = 2;
/// One warp per item, its threads on the channels; any strides and types. `call` is a parameter of the kernel.
template <class Value, class Sums>
__device__ __forceinline__ void warp_per_item(const BackwardCall& call) {
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  const Call& in = call.inputs;
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * kBackwardWarps + device::warp_index();
  if (number >= in.items) return;
  const int lane = device::lane_index();
  const Item item = item_at(in, number);
  const Sums sums(call);
  const Value* value = static_cast<const Value*>(in.value.data) + in.value.at(item.n, 0, item.m);
  const std::int64_t gradient_row = in.output.at(item.n, item.q, item.m);
  const std::int64_t location_row = in.locations.row(item.n, item.q, item.m);
  const std::int64_t weight_row = in.weights.row(item.n, item.q, item.m);
  for (int l = 0; l < in.level_count; ++l) {
    const DeviceLevel level = in.level(l);
    for (std::int64_t p = 0; p < level.points; ++p) {
      const std::int64_t at = location_row + level.location_at + p * in.locations.point;
      const float weight = read_point<AnyType>(in.weights, weight_row + level.weight_at + p * in.weights.point);
      const Footprint where = footprint(read_point<AnyType>(in.locations, at),
                                        read_point<AnyType>(in.locations, at + in.locations.axis), level, in.nearest);
      float c[4] = {0, 0, 0, 0};
      for (std::int64_t d = lane; d < in.channels; d += device::kWarpThreads) {
        const float gradient = read_any<Value>(in.output.data, call.grad_output, gradient_row + d * in.output.channel);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (!where.has(k)) continue;
          const std::int64_t pixel = static_cast<std::int64_t>(where.row + k / 2) * level.width + where.column + k % 2;
          c[k] =
              fmaf(gradient, widen(__ldg(value + level.value_at + pixel * in.value.row + d * in.value.channel)), c[k]);
          if (call.sums.data != nullptr)
            sums.add(item, level.first_pixel + pixel, d, weight * where.bilinear(k) * gradient);
        }
      }
      PointSums made = point_sums(where, c);
      made.weight = device::group_sum(made.weight);
      made.x = device::group_sum(made.x);
      made.y = device::group_sum(made.y);
      if (where.inside == 0) made = {};
      if (lane == 0) write_point(call, item, l, p, level, where.inside != 0 ? weight : 0.0f, made);
    }
  }
}

}  // namespace tmaops::ops::ms_deform_attn_backward::cuda
