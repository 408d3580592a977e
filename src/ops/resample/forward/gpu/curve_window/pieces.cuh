// Rows in pieces of 16 bytes of values, every channel with its own interpolation, made of the samples around a target.
// The kind of a piece and the mode of a channel are data, so that one kernel serves every mixture.
#pragma once

#include "ops/resample/forward/shared/curves.cuh"

namespace tmaops::ops::resample::gpu {

/// What all channels of a piece are; the first five are the numbers of Interpolation.
enum class Kind : std::uint32_t { linear, previous, next, nearest, cubic, quaternions, mixed };
static_assert(static_cast<int>(Interpolation::cubic) == 4 && static_cast<int>(Interpolation::slerp) == 5);

/// A piece of a row. Modes have 4 bits per value from the lowest on: an Interpolation up to cubic, or 8 + c for
/// component c of a quaternion.
struct Piece {
  std::uint32_t modes = 0;
  Kind kind = Kind::linear;
};

/// Those of a row, in the parameters of a kernel: nothing to allocate. supports() has their number.
inline constexpr int kMostPieces = 128;
struct Pieces {
  Piece at[kMostPieces];
};

inline Pieces pieces_of(const Problem& problem) {
  const auto values = static_cast<std::int64_t>(16 / size_of(problem.values));
  Pieces pieces{};
  bool begun[kMostPieces] = {};
  for (const ChannelGroup& group : problem.groups) {
    const bool slerp = group.interpolation == Interpolation::slerp;
    for (std::int64_t channel = group.first; channel < group.first + group.count; ++channel) {
      const auto at = static_cast<std::size_t>(channel / values);
      Piece& piece = pieces.at[at];
      const auto component = static_cast<std::uint32_t>(channel - group.first);
      const std::uint32_t mode = slerp ? 8 + component : static_cast<std::uint32_t>(group.interpolation);
      piece.modes |= mode << (4 * (channel % values));
      const bool straddles = slerp && channel % 4 != static_cast<std::int64_t>(component);
      const Kind kind = straddles ? Kind::mixed : static_cast<Kind>(group.interpolation);
      piece.kind = begun[at] && piece.kind != kind ? Kind::mixed : kind;
      begun[at] = true;
    }
  }
  return pieces;
}

/// A target with all that depends on it alone, worked out by one thread for all its channels.
struct alignas(16) CurveSpot {
  // Bits of `flags`. Those from 0 on: pieces of that kind can be made the short way.
  static constexpr std::uint32_t kLater = kLaterBit;  // + previous, next or nearest: it is the later sample
  static constexpr std::uint32_t kHeld = 31;          // all samples it needs are in shared memory

  int row;       // the earlier sample, counted from the first one in shared memory
  float weight;  // as in Place
  std::uint32_t flags;
  float start;
  CurveSide before, after;
  Neighbours around;

  __device__ __forceinline__ bool has(std::uint32_t bit) const { return (flags >> bit & 1u) != 0; }
};

/// The parts of a spot that need no memory. `held`: as CurveSpot::kHeld.
__device__ __forceinline__ CurveSpot make_spot(int row, const Place<int>& at, const Neighbours& around, bool held) {
  const float w = at.weight;
  CurveSpot spot{row, w, 0, 0, {}, {}, around};
  const auto bit = [](bool set, auto number) {
    return static_cast<std::uint32_t>(set) << static_cast<std::uint32_t>(number);
  };
  const auto later = [](Kind kind) { return CurveSpot::kLater + static_cast<std::uint32_t>(kind); };
  const bool there = w == w && held;
  spot.flags = bit(held, CurveSpot::kHeld) | bit(w > 0.0f, later(Kind::next)) | bit(w >= 1.0f, later(Kind::previous)) |
               bit(w >= 1.0f || (w > 0.0f && at.next_nearer), later(Kind::nearest)) | bit(there, Kind::linear) |
               bit(there, Kind::previous) | bit(there, Kind::next) | bit(there, Kind::nearest) |
               bit(there && w >= 0.0f && w <= 1.0f, Kind::quaternions) | bit(there && w == 0.0f, Kind::cubic);
  // Beyond these ratios of neighbouring steps the factors might overflow.
  constexpr float kLeastRatio = 0x1p-30f;
  constexpr float kMostRatio = 0x1p30f;
  if (there && w != 0.0f && fminf(around.before, around.after) > kLeastRatio &&
      fmaxf(around.before, around.after) < kMostRatio) {
    const InnerCurve curve = inner_curve(around, w);
    spot.start = curve.start;
    spot.before = curve.before;
    spot.after = curve.after;
    spot.flags |= bit(true, Kind::cubic);
  }
  return spot;
}

/// 16 bytes of a target whose spot has the bit of `kind`. `from`: the piece in the earlier sample, in shared memory,
/// rows `width` bytes apart.
template <class Value>
__device__ __forceinline__ uint4 make_piece(const unsigned char* from, int width, Kind kind, const CurveSpot& spot) {
  const auto load = [&](int offset) { return *reinterpret_cast<const uint4*>(from + offset); };
  const float w = spot.weight;
  if (kind == Kind::linear) return mix_16<Value>(load(0), load(w != 0.0f ? width : 0), w);
  if (kind <= Kind::nearest) return load(spot.has(CurveSpot::kLater + static_cast<std::uint32_t>(kind)) ? width : 0);
  Unpacked<Value> a = unpack<Value>(load(0));
  if (kind == Kind::cubic) {
    if (w == 0.0f) return load(0);
    const Unpacked<Value> b = unpack<Value>(load(width));
    const Unpacked<Value> before = unpack<Value>(load(-width));
    const Unpacked<Value> after = unpack<Value>(load(2 * width));
    const InnerCurve curve{spot.start, spot.before, spot.after};
#pragma unroll
    for (int k = 0; k < Unpacked<Value>::count; ++k)
      a.at[k] = inner_pchip(curve, before.at[k], a.at[k], b.at[k], after.at[k]);
    return pack(a);
  }
  const Unpacked<Value> b = unpack<Value>(load(w != 0.0f ? width : 0));
#pragma unroll
  for (int k = 0; k < Unpacked<Value>::count; k += 4) {
    const float4 q = slerp_between({a.at[k], a.at[k + 1], a.at[k + 2], a.at[k + 3]},
                                   {b.at[k], b.at[k + 1], b.at[k + 2], b.at[k + 3]}, w);
    a.at[k] = q.x;
    a.at[k + 1] = q.y;
    a.at[k + 2] = q.z;
    a.at[k + 3] = q.w;
  }
  return pack(a);
}

}  // namespace tmaops::ops::resample::gpu
