// Samples as tma_resident's threads work them out and pass them on: pixels in 16 bits, weights in two halves.
#pragma once

#include <cstring>

#include "ops/ms_deform_attn/forward/gpu/tma_resident/schedule.cuh"
#include "ops/ms_deform_attn/forward/shared/fused_call.cuh"
#include "ops/ms_deform_attn/shared/point_vectors.cuh"

namespace tmaops::ops::ms_deform_attn::tma_resident {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kSlots =
    8;  // pairs of points of a query worked out in one pass, each by one thread; level is slot / kLevelSlots
constexpr int kLevelSlots = 2;
constexpr int kChannels = 32;
/// Keeps the halves of small weights out of the subnormal numbers of f16; taken back from the sums. Weights of 256 and
/// more overflow f16, and their queries are summed by the definition.
constexpr float kScale = 256.0f;

/// Whether points are offsets from reference points, and logits.
template <class AnyCall>
constexpr bool kOffsets = std::is_same_v<AnyCall, FusedCall>;

/// The level of a slot. With three levels the last two slots work out what the two before do, and nobody asks for it.
/// With five levels the last one has a pass of its own, in which all slots do what the first two do.
template <int levels>
__device__ __forceinline__ int level_of(int slot) {
  return levels == 3 ? min(slot / kLevelSlots, levels - 1) : slot / kLevelSlots;
}

/// The level a thread works out samples of.
struct SlotPlace {
  float height;
  float width;
  int pitch;

  __device__ __forceinline__ SlotPlace(const Call& call, const Near& near, int l, int far) {
    height = static_cast<float>(call.levels[l].height);
    width = static_cast<float>(call.levels[l].width);
    pitch = l < far ? call.levels[l].pitch : near.pitch[l - far];
  }
};

/// Bytes from query to query, and from far level to far level.
struct Steps {
  std::uint64_t locations = 0;
  std::uint64_t weights = 0;
  std::uint64_t reference_image = 0;
  std::uint64_t reference_query = 0;
  std::uint64_t reference_level = 0;
  std::uint64_t output = 0;
  std::uint64_t level[kFarLevels] = {};  // from the first one
};

template <class T>
__device__ __forceinline__ T* bytes_behind(T* pointer, std::uint64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const unsigned char, unsigned char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(pointer) + bytes);
}

/// Where the points of a thread's slot lie: of query 0 of an image and head.
template <class Point, int levels>
struct PointColumns {
  const Point* locations;
  const Point* weights;
  unsigned n;
  int l;

  /// `points`: of the thread's slot.
  __device__ __forceinline__ PointColumns(const Call& call, const Unit& of, int slot, int points) : n(of.n) {
    l = level_of<levels>(slot);
    const DeviceLevel& level = call.levels[l];
    const int point = slot % kLevelSlots * points;
    locations = static_cast<const Point*>(call.locations.data) +
                (call.locations.row(of.n, 0, of.m) + level.location_at + point * call.locations.point);
    weights = static_cast<const Point*>(call.weights.data) +
              (call.weights.row(of.n, 0, of.m) + level.weight_at + point * call.weights.point);
  }
  /// The same by so many elements further.
  struct Step {
    std::int64_t locations = 0;
    std::int64_t weights = 0;
  };
  __device__ __forceinline__ PointColumns moved(const Step& by) const {
    PointColumns result = *this;
    result.locations += by.locations;
    result.weights += by.weights;
    return result;
  }
  /// From the thread's slot to its slot of the fifth level.
  static __device__ __forceinline__ Step to_fifth(const Call& call, int slot) {
    const DeviceLevel& from = call.levels[level_of<levels>(slot)];
    const DeviceLevel& to = call.levels[levels - 1];
    return {to.location_at - from.location_at, to.weight_at - from.weight_at};
  }
};

/// Locations and weights of points that a thread works out, `count` next to each other, as they lie in memory. With
/// FusedCall these are offsets and logits, with the reference point.
template <class Point, int count>
struct Points {
  static constexpr int kWords = count * static_cast<int>(sizeof(Point)) / 4;
  std::uint32_t pairs[2 * kWords];
  std::uint32_t weights[kWords];
  std::uint32_t reference[2];

  /// The slot's points from `first` on, of a query.
  template <class AnyCall, class Columns>
  __device__ __forceinline__ void load(const AnyCall& call, const Steps& steps, const Columns& columns, unsigned query,
                                       int first) {
    const std::uint64_t q = min(query, static_cast<unsigned>(call.queries) - 1);
    const Point* location = bytes_behind(columns.locations, q * steps.locations) + first * call.locations.point;
    const Point* weight = bytes_behind(columns.weights, q * steps.weights) + first * call.weights.point;
    if constexpr (kOffsets<AnyCall>) {
      const auto* from = static_cast<const unsigned char*>(call.reference.data) + columns.n * steps.reference_image +
                         q * steps.reference_query + static_cast<unsigned>(columns.l) * steps.reference_level;
      if (call.reference.dtype == DType::f32)
        load_words(reference, from);
      else
        reference[0] = __ldg(reinterpret_cast<const std::uint32_t*>(from));
    }
    if (call.point_vectors) {
      load_words(pairs, location);
      load_words(weights, weight);
      return;
    }
    Point apart[3 * count];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      apart[2 * i] = location[i * call.locations.point];
      apart[2 * i + 1] = location[i * call.locations.point + 1];
      apart[2 * count + i] = weight[i * call.weights.point];
    }
    std::memcpy(pairs, apart, sizeof(pairs));
    std::memcpy(weights, apart + 2 * count, sizeof(weights));
  }
  __device__ __forceinline__ Point3 at(int i) const {
    return {element<Point>(pairs, 2 * i), element<Point>(pairs, 2 * i + 1), element<Point>(weights, i)};
  }
  /// Pixel coordinates of an offset of 0.
  __device__ __forceinline__ float2 start(const FusedCall& call, const SlotPlace& slot) const {
    float2 at;
    if (call.reference.dtype == DType::f32)
      at = {element<float>(reference, 0), element<float>(reference, 1)};
    else if (call.reference.dtype == DType::f16)
      at = {element<__half>(reference, 0), element<__half>(reference, 1)};
    else
      at = {element<__nv_bfloat16>(reference, 0), element<__nv_bfloat16>(reference, 1)};
    return {fmaf(at.x, slot.width, -0.5f), fmaf(at.y, slot.height, -0.5f)};
  }
};

/// The two points of a pass of a thread's slot, with weights made of the logits of all passes. `counts`: no other
/// thread has this one's points too. The largest logit is looked for only where a warp's sums would leave the range of
/// f32 without it.
template <class Point, int count>
__device__ __forceinline__ void take_softmax(const Points<Point, count>& points, int pass, bool counts,
                                             Point3 (&pair)[2]) {
  float weights[count];
  float sum = 0;
  const auto add_up = [&](float largest) {
    float own = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) own += weights[i] = __expf(points.at(i).weight - largest);
    sum = device::group_sum<kSlots>(counts ? own : 0.0f);
  };
  add_up(0.0f);
  if (__any_sync(kAll, !(sum > 1e-18f && sum < 1e30f))) {
    float largest = points.at(0).weight;
#pragma unroll
    for (int i = 1; i < count; ++i) largest = fmaxf(largest, points.at(i).weight);
#pragma unroll
    for (int step = kSlots / 2; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, step));
    add_up(largest);
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {  // chosen by selects: registers have no index
    const bool second = count > 2 && pass != 0;
    const Point3 point = second ? points.at(count - 2 + i) : points.at(i);
    pair[i] = {point.x, point.y, __fdividef(second ? weights[count - 2 + i] : weights[i], sum)};
  }
}

/// Two weights as the nearest 16-bit values and the 16-bit values nearest to what is missing.
template <class Value>
__device__ __forceinline__ void split(float low, float high, std::uint32_t& rounded, std::uint32_t& rest) {
  rounded = device::pack<Value>(low, high);
  const float2 back = device::unpack<Value>(rounded);
  rest = device::pack<Value>(low - back.x, high - back.y);
}

/// A sample as the nearest place inside its level.
struct Spot {
  float across;  // share of the right column
  float down;    // share of the lower row
  float kept;    // share of the sample that lies inside: 0 for skipped ones, infinite and NaN locations
};

/// Works out where two samples of pixel coordinates x, y lie. Returns their pixels in the level, in 16 bits each; of
/// near levels their bytes in a plane.
__device__ __forceinline__ std::uint32_t locate_samples(const SlotPlace& slot, const Point3 (&points)[2], bool far,
                                                        Spot (&spots)[2]) {
  const auto place = [](float at, float size, int& base, float& part) {
    const float inside = fminf(fmaxf(at, 0.0f), size - 1.0f);
    base = static_cast<int>(fminf(inside, size - 1.5f));  // the last pixel but one at most
    part = inside - static_cast<float>(base);
    return __saturatef(1.0f - fabsf(at - inside));  // 0 for NaN
  };
  std::uint32_t pixel[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    int row;
    int column;
    spots[i].kept = place(points[i].x, slot.width, column, spots[i].across);
    spots[i].kept *= place(points[i].y, slot.height, row, spots[i].down);
    pixel[i] = static_cast<std::uint32_t>(row * slot.pitch + column);
  }
  const std::uint32_t pixels = __byte_perm(pixel[0], pixel[1], 0x5410);
  return far ? pixels : pixels * kPixelBytes;
}

/// Writes the weights of two samples to the staging. Those of a far level are paired by row, words [sample][column]; of
/// a near level by sample, words [row][column]. Rounded weights are the first part of the staging, the rest of each the
/// second.
template <class Value>
__device__ __forceinline__ void write_weights(const Point3 (&points)[2], const Spot (&spots)[2], bool far,
                                              unsigned char* staging) {
  std::uint32_t rounded[4];
  std::uint32_t rest[4];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const auto [across, down, kept] = spots[i];
    const float weight = points[i].weight * kScale * kept;
    const float lower = weight * down;
    const float upper = fmaf(-weight, down, weight);
    split<Value>(fmaf(-upper, across, upper), fmaf(-lower, across, lower), rounded[2 * i], rest[2 * i]);
    split<Value>(upper * across, lower * across, rounded[2 * i + 1], rest[2 * i + 1]);
  }
  const unsigned first = far ? 0x3210u : 0x5410u;
  const unsigned second = far ? 0x7654u : 0x7632u;
  const auto store = [&](unsigned char* to, const std::uint32_t(&words)[4]) {
    device::store_16(to, {__byte_perm(words[0], words[2], first), __byte_perm(words[1], words[3], first),
                          __byte_perm(words[0], words[2], second), __byte_perm(words[1], words[3], second)});
  };
  store(staging, rounded);
  store(staging + kPartStagingBytes, rest);
}

}  // namespace tmaops::ops::ms_deform_attn::tma_resident
