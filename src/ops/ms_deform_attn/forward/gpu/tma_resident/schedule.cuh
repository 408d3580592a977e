// Levels that stay in shared memory, and the order in which persistent blocks go through images, heads and queries so
// that they are brought there rarely.
#pragma once

#include "device/fence.cuh"
#include "device/shared_atomic.cuh"
#include "device/tensor_copy.cuh"
#include "device/warp.cuh"
#include "ops/ms_deform_attn/forward/gpu/tma_resident/near_levels.hpp"
#include "ops/ms_deform_attn/shared/call.hpp"
#include "tmaops/tensor_map.hpp"

namespace tmaops::ops::ms_deform_attn::tma_resident {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / device::kWarpThreads;
constexpr int kUnitQueries = 4;  // neighbouring queries that a warp works on together

/// Where the samples of a warp's queries pass from the thread that works them out to those that sum: 8 times 16 bytes
/// per query, 16 bytes further from query to query, and two such parts, so that reads of four queries meet no bank
/// twice.
constexpr int kQueryStagingBytes = 8 * 16 + 16;
constexpr int kPartStagingBytes = kUnitQueries * kQueryStagingBytes;
constexpr int kStagingBytes = 2 * kPartStagingBytes;

/// kUnitQueries neighbouring queries of an image and head.
struct Unit {
  unsigned n;
  unsigned q;
  unsigned m;
};

struct alignas(16) Staging {
  unsigned char bytes[kStagingBytes];
};

struct Storage {
  Staging staging[kWarps];
  device::Barrier full;  // ends a phase when the levels of a segment have come
  unsigned next;         // unit of the block that no warp has taken yet
  unsigned left;         // warps that have left a segment, counted on
};
static_assert(kPlanesAt == (static_cast<int>(sizeof(Storage)) + 127) / 128 * 128);

/// Levels in shared memory: channels 0 to 15 of all pixels in one plane, 16 to 31 in another. Rows are 2 (mod 4) pixels
/// apart: then the 16-byte pieces of two neighbouring pixels in each of two rows lie in different banks.
struct Near {
  int first[kNearLevels] = {};  // pixel of a plane
  int pitch[kNearLevels] = {};  // pixels
  int levels = 0;
  unsigned plane_bytes = 0;
  unsigned fill_bytes = 0;  // that the copies of a segment bring
  tma::TensorMap maps[kNearLevels]{};
};

/// Units a block could have summed while it waits for the levels of its next map.
constexpr unsigned kFillUnits = 20;

constexpr unsigned kStripUnits = 4;  // across a strip

/// Queries that are the pixels of the first level (and more), worked on in strips of 16 columns from the top to the
/// bottom: neighbours above and below sample the same pixels while these are in the L1. In raster order a row's are
/// gone when the next row comes to them.
struct Strips {
  unsigned units = 0;        // of the level; 0: raster order
  unsigned width = 0;        // of the level, a multiple of kUnitQueries
  unsigned whole = 0;        // strips of kStripUnits
  unsigned strip_units = 0;  // of each of these
  unsigned reciprocal = 0;   // of strip_units, times 2^32, rounded up
  unsigned last_units = 1;   // across the last strip, where it is narrower
};

/// Maps (images times heads) in rounds. Each block works on an equal run of units of the maps of each round; one that
/// goes on to another map has kFillUnits less.
struct Order {
  unsigned units_per_map = 0;
  unsigned maps = 0;
  unsigned rounds = 0;
  Strips strips{};
};

/// Goes through a block's runs, cut at the ends of maps: segments. Numbers count the block's units.
class Segments {
 public:
  __device__ __forceinline__ Segments(const Order& order, unsigned heads) : order_(order), heads_(heads) {
    go_on(run(0).begin);
  }
  __device__ __forceinline__ bool valid() const { return round_ < order_.rounds; }
  __device__ __forceinline__ unsigned index() const { return index_; }  // from 1
  /// First number of the next segment.
  __device__ __forceinline__ unsigned end() const { return end_; }
  /// A unit of this segment.
  __device__ __forceinline__ Unit unit(unsigned number) const { return {n_, (number + offset_) * kUnitQueries, m_}; }

  /// First query of a unit of this segment, in the order of `strips`.
  __device__ __forceinline__ unsigned first_query(unsigned number) const {
    const Strips& strips = order_.strips;
    const unsigned of_map = number + offset_;
    if (of_map >= strips.units) return of_map * kUnitQueries;
    const unsigned strip = __umulhi(of_map, strips.reciprocal);
    const unsigned of_strip = of_map - strip * strips.strip_units;
    unsigned row = of_strip / kStripUnits;
    unsigned column = of_strip % kStripUnits;
    if (strip >= strips.whole) {
      row = of_strip / strips.last_units;
      column = of_strip % strips.last_units;
    }
    return row * strips.width + (strip * kStripUnits + column) * kUnitQueries;
  }

  __device__ __forceinline__ void next() { go_on((n_ * heads_ + m_) * order_.units_per_map + offset_ + end_); }

 private:
  /// Units of all maps, counted on.
  struct Run {
    unsigned begin;
    unsigned end;
  };
  /// This block's run of a round. Divides; made again where it is needed, because registers are rare.
  __device__ __forceinline__ Run run(unsigned round) const {
    const auto first = static_cast<unsigned>(std::uint64_t{order_.maps} * round / order_.rounds);
    const auto last = static_cast<unsigned>(std::uint64_t{order_.maps} * (round + 1) / order_.rounds);
    const unsigned map_cost = kFillUnits + order_.units_per_map;
    const auto begin_of = [&](unsigned block) {
      const auto cost = static_cast<unsigned>(std::uint64_t{last - first} * map_cost * block / gridDim.x);
      return (first + cost / map_cost) * order_.units_per_map + max(cost % map_cost, kFillUnits) - kFillUnits;
    };
    return {begin_of(blockIdx.x), begin_of(blockIdx.x + 1)};
  }
  /// The segment from this unit of all maps on, or of the next rounds.
  __device__ __forceinline__ void go_on(unsigned from) {
    Run mine = run(round_);
    while (from == mine.end) {
      if (++round_ >= order_.rounds) return;
      mine = run(round_);
      from = mine.begin;
    }
    const unsigned map = from / order_.units_per_map;
    const unsigned map_begin = map * order_.units_per_map;
    n_ = map / heads_;
    m_ = map % heads_;
    offset_ = from - map_begin - end_;
    end_ += min(mine.end, map_begin + order_.units_per_map) - from;
    ++index_;
  }
  const Order& order_;
  unsigned heads_;
  unsigned round_ = 0;
  unsigned n_ = 0;
  unsigned m_ = 0;
  unsigned offset_ = 0;  // from number to unit of the map
  unsigned end_ = 0;
  unsigned index_ = 0;
};

__device__ __forceinline__ unsigned char* planes(Storage& shared) {
  return reinterpret_cast<unsigned char*>(&shared) + kPlanesAt;
}

/// Asks for the levels of the image and head of a unit. One thread, when no one reads those of the map before any more.
__device__ __forceinline__ void fill(const Near& near, Storage& shared, const Unit& of) {
  device::fence_async_shared();
  device::arrive_expect_bytes(shared.full, near.fill_bytes);
#pragma unroll
  for (int l = 0; l < kNearLevels; ++l) {
    if (l >= near.levels) break;
#pragma unroll
    for (int plane = 0; plane < 2; ++plane)
      device::tensor_load(planes(shared) + plane * near.plane_bytes + near.first[l] * kPixelBytes, &near.maps[l],
                          {plane * kPlaneChannels, static_cast<int>(of.m), 0, 0, static_cast<int>(of.n)}, shared.full);
  }
}

__device__ __forceinline__ void wait_filled(Storage& shared, const Segments& segments) {
  device::wait(shared.full, (segments.index() - 1) & 1u, {"levels of a segment"});
}

/// This warp is done with its segment. The last one to be asks for the levels of the next. A warp that had no unit of
/// the segment waits all the same: else it could be counted for two segments while another one still reads.
__device__ __forceinline__ void leave(const Near& near, Storage& shared, Segments& segments, int lane) {
  wait_filled(shared, segments);
  __syncwarp();
  const unsigned all = kWarps * segments.index();
  segments.next();
  if (lane != 0 || !segments.valid()) return;
  __threadfence_block();
  if (atomicAdd(&shared.left, 1u) + 1 != all) return;
  __threadfence_block();  // with the fence above: what the other warps read comes before the copies that overwrite it
  fill(near, shared, segments.unit(0));
}

/// Draws the next unit of the block. In two steps, between which a warp has other work to do.
__device__ __forceinline__ unsigned begin_draw(Storage& shared, int lane) {
  return device::add_where(lane == 0, shared.next, 1u);
}
__device__ __forceinline__ unsigned end_draw(unsigned begun) { return __shfl_sync(0xffffffffu, begun, 0); }

}  // namespace tmaops::ops::ms_deform_attn::tma_resident
