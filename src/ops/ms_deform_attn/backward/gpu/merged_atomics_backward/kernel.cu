// Version 5: adds to vector_atomics_backward that a block takes the samples of neighbouring queries in one level, sorts
// them by pixel in shared memory, sums each pixel in registers and adds it to memory once. The threads of an item read
// 16 bytes of a pixel each.
#include <algorithm>
#include <bit>

#include "device/shared_memory.cuh"
#include "ops/ms_deform_attn/backward/shared/value_sums.cuh"
#include "ops/ms_deform_attn/backward/shared/vectors.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn_backward::merged_atomics_backward {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

constexpr int kSamples = 1024;    // of a block
constexpr int kGradients = 8192;  // channels of all queries of a block
constexpr int kMostQueries = 256;
constexpr int kTileColumns = 16;  // at most
constexpr unsigned kSide = 64;    // pixels as many rows or columns apart share a cell
constexpr unsigned kNowhere = ~0u;
/// Which queries a block takes: a run, or where they are the pixels of all levels a tile of pixels of one level.
struct Tiling {
  int query_bits = 0;                      // log2 of the most queries of a tile
  int tiles = 0;                           // of an image
  int first_tile[kInlineLevels + 1] = {};  // of the pixels of each level
  int row_tiles[kInlineLevels] = {};       // tiles side by side; 0: runs of neighbours
  int columns[kInlineLevels] = {};         // of a tile
  int rows[kInlineLevels] = {};
};

/// A sample in the block's level. Places are counted from row -1 and column -1 on.
struct __align__(16) Sample {
  float weight = 0;
  float across = 0;  // from the left to the right column
  float down = 0;
  unsigned place = kNowhere;  // of the upper left corner: row << 16 | column
};

/// A block's image, head and queries. In shared memory, for the registers' sake.
struct Tile {
  int n = 0;
  int m = 0;
  int first_query = 0;
  int row_step = 0;     // queries from row to row of a tile of pixels; 0: a run of queries
  int width = 1;        // of a tile of pixels that does not reach over the level's side
  unsigned divide = 0;  // 2^16 / width, rounded up
  int rows = 0;         // that lie in the level
  int columns = 0;      // that lie in the level; of a run the queries
  /// -1 where the tile has no such query.
  __device__ __forceinline__ int query(int i) const {
    if (row_step == 0) return i < columns ? first_query + i : -1;
    const int y = static_cast<int>(static_cast<unsigned>(i) * divide >> 16);
    const int x = i - y * width;
    return y < rows && x < columns ? first_query + y * row_step + x : -1;
  }
};

/// Of a thread, two in a word: how many rows of samples a cell has, then where in Shared::sorted they begin.
struct __align__(16) Cells {
  unsigned words[kSide * kSide / 2 / kBackwardThreads] = {};
};

struct Shared {
  float gradients[kGradients];  // [query][channel]
  Sample samples[kSamples];     // [point][query]
  unsigned corners[kSamples];   // the first inside << 2 | 1: the other column is there, 2: the other row
  Cells cells[kBackwardThreads];
  unsigned short sorted[2 * kSamples];  // sample << 1 | whether its lower row
  unsigned warps[kBackwardWarps];
  Tile tile;
};

__device__ __forceinline__ Tile tile_at(const Call& in, const Tiling& tiling, int number) {
  Tile tile;
  if (tiling.row_tiles[0] == 0) {
    tile.first_query = number << tiling.query_bits;
    tile.columns = min(1 << tiling.query_bits, static_cast<int>(in.queries) - tile.first_query);
    return tile;
  }
  int l = 0;
  for (; number >= tiling.first_tile[l + 1]; ++l) tile.first_query += in.levels[l].height * in.levels[l].width;
  const int local = number - tiling.first_tile[l];
  tile.width = tiling.columns[l];
  tile.divide = (65535u + static_cast<unsigned>(tile.width)) / static_cast<unsigned>(tile.width);
  const int y = local / tiling.row_tiles[l] * tiling.rows[l];
  const int x = local % tiling.row_tiles[l] * tile.width;
  tile.row_step = in.levels[l].width;
  tile.first_query += y * tile.row_step + x;
  tile.rows = min(tiling.rows[l], in.levels[l].height - y);
  tile.columns = min(tile.width, tile.row_step - x);
  return tile;
}

__device__ __forceinline__ unsigned cell_of(unsigned row, unsigned column) {
  return row % kSide * kSide + column % kSide;
}
/// Adds 1 to a cell; what it was.
__device__ __forceinline__ unsigned count_one(Shared& shared, unsigned cell) {
  const unsigned shift = 16 * (cell & 1);
  return atomicAdd(shared.cells[0].words + (cell >> 1), 1u << shift) >> shift & 0xffffu;
}
__device__ __forceinline__ unsigned cell_start(const Shared& shared, unsigned cell) {
  return shared.cells[0].words[cell >> 1] >> (16 * (cell & 1)) & 0xffffu;
}

/// Turns counts into starts; their sum. All threads of the block.
__device__ __forceinline__ unsigned scan_cells(Shared& shared) {
  Cells own = shared.cells[threadIdx.x];
  unsigned sum = 0;
#pragma unroll
  for (const unsigned word : own.words) sum += (word & 0xffffu) + (word >> 16);
  unsigned before = sum;  // of the warp's threads up to this one
  const int lane = device::lane_index();
#pragma unroll
  for (int offset = 1; offset < device::kWarpThreads; offset *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffu, before, offset);
    if (lane >= offset) before += other;
  }
  if (lane == device::kWarpThreads - 1) shared.warps[threadIdx.x / device::kWarpThreads] = before;
  __syncthreads();
  unsigned at = before - sum;
  unsigned total = 0;
#pragma unroll
  for (int w = 0; w < kBackwardWarps; ++w) {
    if (w < static_cast<int>(threadIdx.x) / device::kWarpThreads) at += shared.warps[w];
    total += shared.warps[w];
  }
#pragma unroll
  for (unsigned& word : own.words) {
    const unsigned second = at + (word & 0xffffu);
    const unsigned third = second + (word >> 16);
    word = at | second << 16;
    at = third;
  }
  shared.cells[threadIdx.x] = own;
  __syncthreads();
  return total;
}

/// Reads the block's samples and sorts their rows. Returns how many there are.
__device__ __forceinline__ unsigned sort_samples(const BackwardCall& call, const Tiling& tiling,
                                                 const DeviceLevel& level, Shared& shared) {
  constexpr int kEach = kSamples / kBackwardThreads;
  const Call& in = call.inputs;
  const Tile& tile = shared.tile;
  const auto points = static_cast<unsigned>(level.points);
  unsigned cells[kEach];  // of the upper row and of the lower one << 16, or kNowhere
  unsigned ranks[kEach];  // in their cells, as well; 0xffff: the row is outside
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const unsigned s = threadIdx.x + static_cast<unsigned>(i * kBackwardThreads);
    const unsigned of = s / points;
    const unsigned p = s - of * points;
    cells[i] = kNowhere;
    if (of >> tiling.query_bits != 0) continue;
    Sample sample;
    unsigned corner = 0;
    const int q = tile.query(static_cast<int>(of));
    if (q >= 0) {
      const Point3 own =
          load_point<AnyType>(in, in.locations.row(tile.n, q, tile.m) + level.location_at + p * in.locations.point,
                              in.weights.row(tile.n, q, tile.m) + level.weight_at + p * in.weights.point);
      Side side;
      Side upright;
      if (locate(own.x, level.width, side) && locate(own.y, level.height, upright)) {
        sample = {own.weight, side.high, upright.high,
                  static_cast<unsigned>(upright.first + 1) << 16 | static_cast<unsigned>(side.first + 1)};
        corner = static_cast<unsigned>(max(upright.first, 0) * level.width + max(side.first, 0)) << 2;
        if (side.first >= 0 && side.first + 1 < level.width) corner |= 1;
        if (upright.first >= 0 && upright.first + 1 < level.height) corner |= 2;
        if (call.sums.data != nullptr) {
          const unsigned row = static_cast<unsigned>(upright.first + 1);
          const unsigned upper = cell_of(row, static_cast<unsigned>(side.first + 1));
          const unsigned lower = cell_of(row + 1, static_cast<unsigned>(side.first + 1));
          cells[i] = upper | lower << 16;
          ranks[i] = upright.first >= 0 ? count_one(shared, upper) : 0xffffu;
          ranks[i] |= (upright.first + 1 < level.height ? count_one(shared, lower) : 0xffffu) << 16;
        }
      }
    }
    shared.samples[p << tiling.query_bits | of] = sample;
    shared.corners[p << tiling.query_bits | of] = corner;
  }
  __syncthreads();
  const unsigned total = scan_cells(shared);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (cells[i] == kNowhere) continue;
    const unsigned s = threadIdx.x + static_cast<unsigned>(i * kBackwardThreads);
    const unsigned of = s / points;
    const unsigned number = (s - of * points) << tiling.query_bits | of;
    const unsigned upper = ranks[i] & 0xffffu;
    const unsigned lower = ranks[i] >> 16;
    if (upper != 0xffffu)
      shared.sorted[cell_start(shared, cells[i] & 0xffffu) + upper] = static_cast<unsigned short>(number << 1);
    if (lower != 0xffffu)
      shared.sorted[cell_start(shared, cells[i] >> 16) + lower] = static_cast<unsigned short>(number << 1 | 1);
  }
  __syncthreads();
  return total;
}

/// Sums the sorted rows of samples pixel by pixel. Groups of threads, eight channels each, take equal shares of them.
template <int channels>
__device__ __forceinline__ void sum_rows(const BackwardCall& call, int query_bits, float* sums,
                                         const DeviceLevel& level, unsigned total, const Shared& shared) {
  constexpr unsigned kParts = channels / (2 * kFour);
  constexpr unsigned kGroups = kBackwardThreads / kParts;
  const unsigned part = threadIdx.x % kParts;
  const unsigned group = threadIdx.x / kParts;
  // Every other group takes the halves of its channels the other way round: they then lie in different banks.
  const unsigned first = ((group & 1) * kParts + part) * kFour;
  const unsigned second = first ^ (kParts * kFour);
  const auto add = [&](unsigned place, const float(&sum)[2 * kFour]) {
    const unsigned column = (place & 0xffffu) - 1;  // of no column, and of kNowhere, beyond the width
    if (column >= static_cast<unsigned>(level.width)) return;
    float* pixel = sums + (static_cast<std::int64_t>((place >> 16) - 1) * level.width + column) * call.sums.row;
    device::add_16(pixel + first, float4{sum[0], sum[1], sum[2], sum[3]});
    device::add_16(pixel + second, float4{sum[4], sum[5], sum[6], sum[7]});
  };
  unsigned at = kNowhere;
  float current[2 * kFour] = {};  // of place `at`
  float next[2 * kFour] = {};     // of the pixel to its right
  const unsigned end = (group + 1) * total / kGroups;
  for (unsigned i = group * total / kGroups; i < end; ++i) {
    const unsigned entry = shared.sorted[i];
    const Sample sample = shared.samples[entry >> 1];
    const float* gradient = shared.gradients + ((entry >> 1) & ((1u << query_bits) - 1)) * channels;
    const float4 low = *reinterpret_cast<const float4*>(gradient + first);
    const float4 high = *reinterpret_cast<const float4*>(gradient + second);
    const unsigned place = sample.place + ((entry & 1) << 16);
    if (place != at) {
      const bool right = place == at + 1;
      add(at, current);
      if (!right) add(at + 1, next);
#pragma unroll
      for (int k = 0; k < 2 * kFour; ++k) {
        current[k] = right ? next[k] : 0.0f;
        next[k] = 0;
      }
      at = place;
    }
    const float vertical = sample.weight * ((entry & 1) != 0 ? sample.down : 1 - sample.down);
    const float to_left = vertical * (1 - sample.across);
    const float to_right = vertical * sample.across;
    const float eight[2 * kFour] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int k = 0; k < 2 * kFour; ++k) {
      current[k] = fmaf(to_left, eight[k], current[k]);
      next[k] = fmaf(to_right, eight[k], next[k]);
    }
  }
  add(at, current);
  add(at + 1, next);
}

/// The gradients of locations and weights.
template <class Value, int lane_bits>
__device__ __forceinline__ void point_gradients(const BackwardCall& call, const Tiling& tiling, int l,
                                                const DeviceLevel& level, const Shared& shared) {
  constexpr int kLanes = 1 << lane_bits;
  constexpr int kWide = device::kPerVector<Value>;
  constexpr int kMostBits = std::is_same_v<Value, __nv_bfloat16> ? 1 : 2;
  constexpr int kBatchBits = lane_bits < kMostBits ? lane_bits : kMostBits;
  constexpr int kBatch = 1 << kBatchBits;
  const Call& in = call.inputs;
  const Tile& tile = shared.tile;
  const int part = static_cast<int>(threadIdx.x) % kLanes;
  const auto* map = reinterpret_cast<const uint4*>(static_cast<const Value*>(in.value.data) +
                                                   in.value.at(tile.n, 0, tile.m) + level.value_at) +
                    part;
  const int pixel_step = static_cast<int>(in.value.row / kWide);
  const int points = static_cast<int>(level.points);
#pragma unroll 1
  for (int first = 0; first < 1 << tiling.query_bits; first += kBackwardThreads / kLanes) {
    const int of = first + static_cast<int>(threadIdx.x) / kLanes;
    const int q = of >> tiling.query_bits == 0 ? tile.query(of) : -1;
    if (!__any_sync(0xffffffffu, q >= 0)) continue;
    float gradient[kWide];
#pragma unroll
    for (int i = 0; i < kWide; i += kFour) {
      const float4 four = *reinterpret_cast<const float4*>(shared.gradients + (q >= 0 ? of : 0) * (kWide << lane_bits) +
                                                           part * kWide + i);
      gradient[i] = four.x, gradient[i + 1] = four.y, gradient[i + 2] = four.z, gradient[i + 3] = four.w;
    }
#pragma unroll 1
    for (int p0 = 0; p0 < points; p0 += kBatch) {
      float dots[kBatch][4];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const unsigned corner = q >= 0 && p0 + i < points ? shared.corners[(p0 + i) << tiling.query_bits | of] : 0;
        const uint4* from = map + static_cast<std::int64_t>(corner >> 2) * pixel_step;
        const int right = (corner & 1) != 0 ? pixel_step : 0;
        const int down = (corner & 2) != 0 ? level.width * pixel_step : 0;
#pragma unroll
        for (int k = 0; k < 4; ++k)
          dots[i][k] =
              dot_vector<Value>(gradient, device::load_16(from + (k % 2 != 0 ? right : 0) + (k / 2 != 0 ? down : 0)));
      }
      float made[4];
      sum_transposed<kBatchBits, lane_bits>(dots, part, made);
      const int p = p0 + part % kBatch;
      if (part >= kBatch || q < 0 || p >= points) continue;
      const Sample sample = shared.samples[p << tiling.query_bits | of];
      const int y = static_cast<int>(sample.place >> 16);
      const int x = static_cast<int>(sample.place & 0xffffu);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (!(k / 2 != 0 ? y < level.height : y > 0) || !(k % 2 != 0 ? x < level.width : x > 0)) made[k] = 0;
      const Footprint where{.across = sample.across, .down = sample.down};
      write_point(call, Item{tile.n, q, tile.m}, l, p, level, sample.weight,
                  sample.place != kNowhere ? point_sums(where, made) : PointSums{});
    }
  }
}

template <class Value, int lane_bits>
__global__ void __launch_bounds__(kBackwardThreads, 3)
    kernel(const __grid_constant__ BackwardCall call, const __grid_constant__ Tiling tiling) {
  constexpr int kChannels = device::kPerVector<Value> << lane_bits;
  device::let_next_kernel_start();
  device::wait_for_previous_kernel();
  Shared& shared = device::dynamic_shared<Shared, kSite.smem>();
  const Call& in = call.inputs;
  const unsigned map_level = blockIdx.x / static_cast<unsigned>(tiling.tiles);
  const unsigned head = map_level / static_cast<unsigned>(in.level_count);
  const int l = static_cast<int>(map_level % static_cast<unsigned>(in.level_count));
  const DeviceLevel& level = in.levels[l];
  if (level.points == 0) return;
  const Tile& tile = shared.tile;
  if (threadIdx.x == 0) {
    Tile made = tile_at(in, tiling, static_cast<int>(blockIdx.x % static_cast<unsigned>(tiling.tiles)));
    made.n = static_cast<int>(head / static_cast<unsigned>(in.heads));
    made.m = static_cast<int>(head % static_cast<unsigned>(in.heads));
    shared.tile = made;
  }
  shared.cells[threadIdx.x] = {};
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kChannels / kFour << tiling.query_bits; i += kBackwardThreads) {
    const int of = i / (kChannels / kFour);
    const int d = i % (kChannels / kFour) * kFour;
    const int q = tile.query(of);
    if (q < 0) continue;
    float four[kFour];
    const std::int64_t at = in.output.at(tile.n, q, tile.m) + d;
    if (call.grad_output == DType::f32)
      load_four(static_cast<const float*>(in.output.data) + at, four);
    else
      load_four(static_cast<const Value*>(in.output.data) + at, four);
    *reinterpret_cast<float4*>(shared.gradients + of * kChannels + d) = {four[0], four[1], four[2], four[3]};
  }
  __syncthreads();
  const unsigned total = sort_samples(call, tiling, level, shared);
  float* sums = static_cast<float*>(const_cast<void*>(call.sums.data));
  if (sums != nullptr)
    sum_rows<kChannels>(call, tiling.query_bits, sums + call.sums.at(tile.n, level.first_pixel, tile.m), level, total,
                        shared);
  if (call.locations.data != nullptr || call.weights.data != nullptr)
    point_gradients<Value, lane_bits>(call, tiling, l, level, shared);
}

std::int64_t most_points(const ms_deform_attn::Problem& problem) {
  return std::ranges::max(problem.levels, {}, &ms_deform_attn::Level::points).points;
}

std::int64_t per(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }
Tiling tiling_of(const ms_deform_attn::Problem& problem) {
  constexpr std::int64_t kFewestQueries = 32;
  Tiling made;
  const std::int64_t most =
      std::min({std::int64_t{kMostQueries}, kSamples / std::max<std::int64_t>(most_points(problem), 1),
                kGradients / problem.channels});
  std::int64_t queries = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
  std::int64_t pixels = 0;
  for (const ms_deform_attn::Level& level : problem.levels) pixels += level.height * level.width;
  const std::int64_t maps = problem.batch * problem.heads * static_cast<std::int64_t>(problem.levels.size());
  while (queries > kFewestQueries &&
         maps * per(problem.queries, queries) < 4 * device_info(problem.device).multiprocessors)
    queries /= 2;
  made.query_bits = std::countr_zero(static_cast<std::uint64_t>(queries));
  made.tiles = static_cast<int>(per(problem.queries, queries));
  if (pixels != problem.queries || queries < 2 * kFewestQueries) return made;
  made.tiles = 0;
  for (std::size_t l = 0; l < problem.levels.size(); ++l) {
    const ms_deform_attn::Level& level = problem.levels[l];
    made.row_tiles[l] = static_cast<int>(per(level.width, kTileColumns));
    made.columns[l] = static_cast<int>(per(level.width, made.row_tiles[l]));
    made.rows[l] = static_cast<int>(per(level.height, per(level.height, queries / made.columns[l])));
    made.tiles += made.row_tiles[l] * static_cast<int>(per(level.height, made.rows[l]));
    made.first_tile[l + 1] = made.tiles;
  }
  return made;
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  if (problem.deterministic && problem.grad_value)
    return Support::no("adds in any order, deterministic sums are asked for");
  const ms_deform_attn::Problem& forward = problem.forward;
  if (Support support = supports_items(problem); !support) return support;
  if (Support support = supports_vectors(forward); !support) return support;
  if (forward.sampling != Sampling::bilinear) return Support::no("needs bilinear sampling");
  constexpr std::int64_t kMostChannels = std::int64_t{kFour} * device::kWarpThreads;
  if (forward.channels > kMostChannels || forward.channels % (2 * kFour) != 0)
    return Support::no("needs a multiple of 8 channels, at most " + std::to_string(kMostChannels));
  if (most_points(forward) > kSamples / device::kWarpThreads)
    return Support::no("needs at most " + std::to_string(kSamples / device::kWarpThreads) + " points in a level");
  if (std::ranges::any_of(forward.levels,
                          [](const auto& level) { return std::max(level.height, level.width) > 65533; }))
    return Support::no("needs levels of less than 65534 pixels a side");
  if (forward.length > INT32_MAX / 4) return Support::no("needs less than 2^29 pixels per image");
  if (forward.batch * forward.heads * static_cast<std::int64_t>(forward.levels.size()) >
      INT32_MAX / (forward.queries + 1))
    return Support::no("needs less than 2^31 queries times heads and levels");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return atomic_work(
      kSite, problem, arguments, {.aligned = true}, [&]<class Value>(Work& work, const BackwardCall& call, Value*) {
        const ms_deform_attn::Problem& forward = problem.forward;
        constexpr int kFewestBits = sizeof(Value) == 2 ? 0 : 1;
        constexpr int kMostBits = sizeof(Value) == 2 ? 4 : 5;
        const Tiling tiling = tiling_of(forward);
        const std::int64_t maps = forward.batch * forward.heads * static_cast<std::int64_t>(forward.levels.size());
        const LaunchShape shape{.grid = static_cast<unsigned>(maps * tiling.tiles),
                                .block = kBackwardThreads,
                                .shared_bytes = sizeof(Shared),
                                .dependent = arguments.dependent_launch};
        with_constant<kFewestBits, kMostBits>(lane_bits(forward), [&]<int lane_bits>(Constant<lane_bits>) {
          work.add(kernel<Value, lane_bits>, shape, call, tiling);
        });
      });
}

}  // namespace tmaops::ops::ms_deform_attn_backward::merged_atomics_backward
