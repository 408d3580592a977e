// The walk of a lane along the targets of a strand: what two neighbouring samples have in common, and what a sample
// means to both of its intervals, is worked out once and stays in registers.
#pragma once

#include "device/shared_memory.cuh"
#include "ops/resample/forward/gpu/curve_window_walk/stops.cuh"

namespace tmaops::ops::resample::curve_window_walk {

/// Four values of a row as f32.
template <class Value>
struct Quad {
  using Words = std::conditional_t<sizeof(Value) == 4, uint4, uint2>;
  static constexpr int kBytes = static_cast<int>(sizeof(Words));

  static __device__ __forceinline__ void load(const unsigned char* from, float (&to)[4]) {
    const Words words = *reinterpret_cast<const Words*>(from);
    if constexpr (sizeof(Value) == 4) {
      to[0] = __uint_as_float(words.x);
      to[1] = __uint_as_float(words.y);
      to[2] = __uint_as_float(words.z);
      to[3] = __uint_as_float(words.w);
    } else {
      const float2 low = device::unpack<Value>(words.x);
      const float2 high = device::unpack<Value>(words.y);
      to[0] = low.x;
      to[1] = low.y;
      to[2] = high.x;
      to[3] = high.y;
    }
  }
  static __device__ __forceinline__ void copy(unsigned char* to, const unsigned char* from) {
    __stcs(reinterpret_cast<Words*>(to), *reinterpret_cast<const Words*>(from));
  }
  static __device__ __forceinline__ void store(unsigned char* to, const float (&from)[4]) {
    Words words;
    if constexpr (sizeof(Value) == 4)
      words = {__float_as_uint(from[0]), __float_as_uint(from[1]), __float_as_uint(from[2]), __float_as_uint(from[3])};
    else
      words = {device::pack<Value>(from[0], from[1]), device::pack<Value>(from[2], from[3])};
    __stcs(reinterpret_cast<Words*>(to), words);
  }
};

/// PCHIP. With L and R the differences of the values before and after a sample, and r the length of the interval after
/// it over that of the one before, the slope there is proportional to L R / (R + rate L), rate = r (r + 2) / (2 r + 1);
/// the factors of a target hold the rest.
template <class Value>
struct PchipWalk {
  static constexpr int kPhases = 3;
  static constexpr int kBehind = 2;  // samples it needs from an interval on, less one: rolls after a restart
  static constexpr bool kSlopes = true;
  static constexpr std::uint32_t kModes = 0x4444;
  float y[3][4];
  float rise[3][4];
  float slope[3][4];

  static __device__ __forceinline__ float rate(float before, float after) {
    const float r = after * device::reciprocal(before);
    return r * (r + 2) * device::reciprocal(fmaf(2.0f, r, 1.0f));
  }
  static __device__ __forceinline__ Stop stop(int at, float w, const Neighbours& around) {
    const float v = 1 - w;
    const float first = around.before * (3 * around.before + 3) * device::reciprocal(fmaf(2.0f, around.before, 1.0f));
    const float second = (3 * around.after + 3) * device::reciprocal(around.after + 2);
    return {at, {w * w * (3 - 2 * w), w * v * v * first, -w * w * v * second}};
  }

  /// Back to an interval so far before that of `row` that kBehind calls of roll() lead to it.
  template <int p>
  __device__ __forceinline__ void restart(const unsigned char* row, int width) {
    constexpr int before = (p + 1) % 3;
    constexpr int at = (p + 2) % 3;
    Quad<Value>::load(row - width, y[before]);
    Quad<Value>::load(row, y[at]);
#pragma unroll
    for (int k = 0; k < 4; ++k) rise[before][k] = y[at][k] - y[before][k];
  }
  /// To the next interval: `row` is the sample that comes in, `rate` that of the one before it.
  template <int p>
  __device__ __forceinline__ void roll(const unsigned char* row, float rate) {
    constexpr int last = (p + 2) % 3;
    constexpr int before = (p + 1) % 3;
    Quad<Value>::load(row, y[p]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float left = rise[before][k];
      const float right = y[p][k] - y[last][k];
      const float part = right * device::reciprocal(fmaf(rate, left, right));
      slope[last][k] = left * right > 0.0f ? left * part : 0.0f;
      rise[last][k] = right;
    }
  }
  __device__ __forceinline__ bool good() const { return true; }
  template <int p>
  __device__ __forceinline__ void make(const Stop& stop, float (&to)[4]) const {
    constexpr int next = (p + 1) % 3;
#pragma unroll
    for (int k = 0; k < 4; ++k)
      to[k] = fmaf(stop.factor[2], slope[next][k],
                   fmaf(stop.factor[1], slope[p][k], fmaf(stop.factor[0], rise[p][k], y[p][k])));
  }
};

/// Slerp, as slerp_between(): the angle, and the length that the sum will have, belong to the interval.
template <class Value>
struct SlerpWalk {
  static constexpr int kPhases = 2;
  static constexpr int kBehind = 1;
  static constexpr bool kSlopes = false;
  static constexpr std::uint32_t kModes = 0xba98;
  float q[2][4];
  float scale[2];
  float square;  // of the angle
  float part[2];
  float least = 1;  // of all scales
  float most = 1;

  static __device__ __forceinline__ Stop stop(int at, float w, const Neighbours&) { return {at, {w, 0, 0}}; }
  static __device__ __forceinline__ float dot(const float (&a)[4], const float (&b)[4]) {
    return fmaf(a[0], b[0], fmaf(a[1], b[1], fmaf(a[2], b[2], a[3] * b[3])));
  }

  template <int p>
  __device__ __forceinline__ void restart(const unsigned char* row, int) {
    Quad<Value>::load(row, q[1 - p]);
    scale[1 - p] = device::reciprocal_root(dot(q[1 - p], q[1 - p]));
    least = fminf(least, scale[1 - p]);
    most = fmaxf(most, scale[1 - p]);
  }
  template <int p>
  __device__ __forceinline__ void roll(const unsigned char* row, float) {
    Quad<Value>::load(row, q[p]);
    scale[p] = device::reciprocal_root(dot(q[p], q[p]));
    const float cosine = dot(q[0], q[1]) * scale[0] * scale[1];
    square = square_of_angle(fabsf(cosine));
    const float inverse = device::reciprocal(sine_over_angle(square));
    part[1 - p] = scale[1 - p] * inverse;
    part[p] = cosine < 0 ? -scale[p] * inverse : scale[p] * inverse;
    least = fminf(least, scale[p]);
    most = fmaxf(most, scale[p]);
  }
  /// False where a square was so large or so small that the quaternions must be scaled first.
  __device__ __forceinline__ bool good() const { return least > 1e-15f && most < 1e15f; }
  template <int p>
  __device__ __forceinline__ void make(const Stop& stop, float (&to)[4]) const {
    const float w = stop.factor[0];
    const float v = 1 - w;
    const float from = v * sine_over_angle(v * v * square) * part[p];
    const float other = w * sine_over_angle(w * w * square) * part[1 - p];
#pragma unroll
    for (int k = 0; k < 4; ++k) to[k] = fmaf(from, q[p][k], other * q[1 - p][k]);
  }
};

/// By the formulas for every case, from global memory: those of `count` targets that need it, or all. By value: what is
/// passed by reference to a function that is not inlined is stored to local memory first.
template <class Value, class Walk>
__device__ __noinline__ void walk_slowly(unsigned char* to, const unsigned char* values, int width, const Stop* stops,
                                         const SlowStop* slow, int count, bool all) {
#pragma unroll 1
  for (int t = 0; t < count; ++t, to += width) {
    if (!all && stops[t].at != Stop::kSlow) continue;
    const SlowStop stop = slow[t];
#pragma unroll 1
    for (int at = device::lane_index() * Quad<Value>::kBytes; at < width;
         at += device::kWarpThreads * Quad<Value>::kBytes)
      write_values<Value>(to + at, values + static_cast<std::int64_t>(stop.row) * width + at, width, 4, Walk::kModes,
                          stop.weight, 0, stop.around.before, stop.around.after);
  }
}

/// Makes a lane's column of a strand from its first target on. False where all of it has to be made the slow way.
/// `rows`, `rates`: where the lane's column and the rates begin in shared memory.
template <class Value, class Walk>
__device__ __forceinline__ bool walk_strand(const Stop* stops, const unsigned char* shared, int rows, int rates,
                                            int width, unsigned char* to) {
  const auto row_bytes = static_cast<std::uint32_t>(width);
  Walk state;
  int at = 1 << 30;  // the interval that the state is for: none yet, and far from every stop
  int row = 0;       // of the sample that came in last; both counted on: worked out anew they cost a tenth of the loop
  int rate = 0;      // of the one before it, where phase 0 would find it
  Stop stop = *stops;
  const auto next = [&] {
    to += row_bytes;
    device::keep(to);
    const device::UnwrittenReads of_the_end(true);  // its factors are not written, and nothing asks for them
    stop = *++stops;
  };
  const auto step = [&](auto phase) {
    constexpr int p = decltype(phase)::value;
    for (;;) {
      while (stop.at == at) {
        float made[4];
        state.template make<p>(stop, made);
        Quad<Value>::store(to, made);
        next();
      }
      if (static_cast<unsigned>(stop.at) - static_cast<unsigned>(at) <= static_cast<unsigned>(Walk::kBehind)) break;
      if (stop.at == Stop::kEnd) return;
      if (stop.at >= 0) {
        at = stop.at - Walk::kBehind;
        row = rows + stop.at * width;
        rate = rates + (stop.at - p) * static_cast<int>(sizeof(float));
        state.template restart<p>(shared + row, width);
        break;
      }
      if (stop.at != Stop::kSlow) Quad<Value>::copy(to, shared + rows + (Stop::kCopy - stop.at) * width);
      next();
    }
    ++at;
    row += width;
    device::keep(row);
    state.template roll<p>(
        shared + row,
        Walk::kSlopes ? *reinterpret_cast<const float*>(shared + rate + p * static_cast<int>(sizeof(float))) : 0.0f);
  };
  do {
    step(std::integral_constant<int, 0>{});
    step(std::integral_constant<int, 1>{});
    if constexpr (Walk::kPhases == 3) step(std::integral_constant<int, 2>{});
    rate += Walk::kPhases * static_cast<int>(sizeof(float));
    device::keep(rate);
  } while (stop.at != Stop::kEnd);
  return state.good();
}

}  // namespace tmaops::ops::resample::curve_window_walk
