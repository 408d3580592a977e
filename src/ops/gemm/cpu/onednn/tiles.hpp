// How the oneDNN variant cuts a problem into calls: tiles of D, what is copied or packed, which primitives.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/convert_rows.hpp"
#include "ops/gemm/cpu/onednn/library.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops::ops::gemm::onednn {

// Rows of a tile: 128 are fastest with AMX and a packed B, and slowest without (docs/findings/gemm_cpu.md, C3). Up to
// kTwoTiles rows there are two tiles, which read B in place.
inline constexpr std::int64_t kRowsAmx = 128;
inline constexpr std::int64_t kRows = 256;
inline constexpr std::int64_t kTwoTiles = 512;
// Such large tiles must come out even on 2 and 4 threads: on two, three tiles of 256 rows take as long as four.
inline constexpr std::int64_t kTileGroup = 4;
// Without AVX-512 oneDNN packs its operands for large products alone: where 1 / rows + 1 / columns is below 0.0038. The
// others run at half the pace (docs/findings/gemm_cpu.md, C4).
inline constexpr std::int64_t kRowsAvx2 = 512;
inline constexpr std::int64_t kColumnsAvx2 = 544;  // from these on
inline constexpr std::int64_t kTileGroupAvx2 = 2;
// Without AMX rounding up to 64 would leave the last tile short.
inline constexpr std::int64_t kRowStepAmx = 64;
inline constexpr std::int64_t kRowStep = 8;
inline constexpr std::int64_t kLeastWork = 1 << 21;  // multiply-adds that make a call worth its cost
// N stays whole while M and the batch give tiles enough: a split makes the detour through scratch.
inline constexpr std::int64_t kTilesWanted = 8;
inline constexpr std::int64_t kLeastColumns = 512;
inline constexpr std::int64_t kMostScratchColumns = 1024;  // f32 accumulators of 1 MiB at most: half of an L2
// Tiles from which packing B pays: with AMX where B is row-major or A column-major, and where oneDNN's fast kernel
// refuses B as it lies, from three on. Else its own copies of B cost less, but for a row-major B from eight tiles on
// (docs/findings/gemm_cpu.md, C2).
inline constexpr std::int64_t kPackFromTiles = 3;
inline constexpr std::int64_t kPackRowMajorFromTiles = 8;
inline constexpr std::int64_t kPackColumns = 192;  // a multiple of oneDNN's blocks of 16, 32, 48, 64 columns

inline std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// oneDNN 3 reads rows of 16-bit A in whole AMX tile rows and multiplies what lies behind the end by 0: a NaN or
// infinity at the start of the next row would come through.
inline constexpr std::int64_t kRowBytes = 64;

// Rows of A a multiple of 1 KiB apart fall into the same sets of the L1 under AMX: with 64 bytes of zeros behind each
// row, and as many rows of zeros under B, they do not (docs/findings/gemm_cpu.md, C5).
inline constexpr std::int64_t kBadPitch = 1024;

struct Tiling {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t down = 0;    // tiles along M
  std::int64_t across = 0;  // tiles along N
};

inline Tiling make_tiling(const Problem& problem, bool amx, std::int64_t most_columns) {
  Tiling tiling;
  const bool tall = std::min(problem.n, most_columns) >= kColumnsAvx2 && !has(dnnl::cpu_isa::avx512_core);
  const std::int64_t base_rows = amx ? kRowsAmx : (tall ? kRowsAvx2 : kRows);
  const std::int64_t group = amx ? 1 : (tall ? kTileGroupAvx2 : kTileGroup);
  std::int64_t tiles = 2;
  if (problem.m > kTwoTiles) tiles = round_up((problem.m - 1) / base_rows + 1, group);
  tiling.rows = std::max<std::int64_t>(64, round_up((problem.m + tiles - 1) / tiles, amx ? kRowStepAmx : kRowStep));
  // Enough matrices to share out: none is cut. Flat ones: longer tiles, still eight of them.
  if (problem.batch >= kTilesWanted) tiling.rows = problem.m;
  const std::int64_t row_work = std::max<std::int64_t>(1, problem.n) * std::max<std::int64_t>(1, problem.k);
  if (row_work < kLeastWork / base_rows)
    tiling.rows =
        std::clamp(kLeastWork / row_work, tiling.rows, std::max(tiling.rows, round_up(problem.m / kTilesWanted, 64)));
  tiling.rows = std::min(problem.m, tiling.rows);
  tiling.down = (problem.m - 1) / tiling.rows + 1;
  tiling.columns = std::min(problem.n, most_columns);
  if (tiling.down == 1 && problem.batch < kTilesWanted) {
    const std::int64_t share = round_up((problem.n + kTilesWanted - 1) / kTilesWanted, 64);
    tiling.columns = std::min(tiling.columns, std::max(share, kLeastColumns));
  }
  tiling.across = (problem.n - 1) / tiling.columns + 1;
  return tiling;
}

struct TilePlan {
  Tiling tiling{};
  bool direct = false;  // oneDNN writes D, with alpha, beta and bias; the activation follows in place
  bool fused_bias = false;
  Plain a{}, b{};       // as read in place; a copy has the same order and is dense
  bool copy_a = false;  // each tile's rows of A
  bool pad_a = false;   // ... with rows filled up with zeros to kRowBytes
  bool copy_b = false;  // each piece of B, before it is packed
  bool pack_b = false;
  std::int64_t depth = 0;      // K, or K and zeros up to a better row pitch
  bool zeros_under_b = false;  // the latter
  std::int64_t packed_batches = 1;
  std::int64_t pieces_per_tile = 1;  // of kPackColumns columns
  std::size_t packed_tile_bytes = 0;
  std::size_t scratchpad_bytes = 0;
  std::size_t copy_bytes = 0;
  std::size_t accumulator_bytes = 0;
  /// By index(); shapes that do not occur stay empty.
  std::array<dnnl::matmul::primitive_desc, 4> descriptions{};
  std::array<dnnl::matmul, 4> primitives{};

  /// Elements between lines of a copied tile of A with `rows` rows.
  std::int64_t copied_line(std::int64_t rows) const {
    if (!a.row_major) return rows;
    return pad_a ? round_up(depth, kRowBytes / static_cast<std::int64_t>(size_of(a.dtype))) : depth;
  }
  static std::size_t index(bool last_across, bool last_down) { return (last_down ? 2u : 0u) | (last_across ? 1u : 0u); }
  const dnnl::matmul::primitive_desc& shape(bool last_across, bool last_down) const {
    return descriptions[index(last_across, last_down)];
  }
  std::size_t packed_bytes() const {
    return pack_b ? packed_tile_bytes * static_cast<std::size_t>(packed_batches * tiling.across) : 0;
  }
  const void* packed_tile(const void* packed, std::int64_t batch, std::int64_t across) const {
    const std::int64_t tile = (packed_batches == 1 ? 0 : batch) * tiling.across + across;
    return static_cast<const char*>(packed) + static_cast<std::size_t>(tile) * packed_tile_bytes;
  }
};

inline const void* element(const void* data, const MatrixLayout& layout, std::int64_t batch, std::int64_t row,
                           std::int64_t column) {
  return static_cast<const char*>(data) +
         layout.offset(batch, row, column) * static_cast<std::int64_t>(size_of(layout.dtype));
}

/// Copies a block of a matrix to the plain layout `to`, converted to its type, with zeros between its lines.
inline void copy_dense(const void* data, const MatrixLayout& layout, std::int64_t batch, std::int64_t row,
                       std::int64_t column, std::int64_t rows, std::int64_t columns, const Plain& to, void* copy) {
  const std::int64_t lines = to.row_major ? rows : columns;
  const std::int64_t length = to.row_major ? columns : rows;
  const std::int64_t line_stride = to.row_major ? layout.row_stride : layout.column_stride;
  const std::int64_t stride = to.row_major ? layout.column_stride : layout.row_stride;
  const std::int64_t start = layout.offset(batch, row, column);
  const auto size = static_cast<std::int64_t>(size_of(layout.dtype));
  float values[256];
  for (std::int64_t line = 0; line < lines; ++line) {
    const std::int64_t from = start + line * line_stride;
    const std::int64_t target = line * to.leading_dimension;
    std::memset(static_cast<char*>(copy) + (target + length) * static_cast<std::int64_t>(size_of(to.dtype)), 0,
                static_cast<std::size_t>(to.leading_dimension - length) * size_of(to.dtype));
    if (to.dtype == layout.dtype && stride == 1) {
      std::memcpy(static_cast<char*>(copy) + target * size, static_cast<const char*>(data) + from * size,
                  static_cast<std::size_t>(length * size));
      continue;
    }
    if (to.dtype == DType::f32) {
      load_f32(data, layout.dtype, from, stride, length, static_cast<float*>(copy) + target);
      continue;
    }
    for (std::int64_t i = 0; i < length; i += 256) {  // through f32 and back, exact
      const std::int64_t count = std::min<std::int64_t>(256, length - i);
      load_f32(data, layout.dtype, from + i * stride, stride, count, values);
      store_f32(copy, to.dtype, target + i, 1, count, values);
    }
  }
}

/// Whether oneDNN can write D with one rounding, the activation's included: f32 is not rounded before it, and relu
/// commutes with rounding. D must be dense: oneDNN's fast kernel
/// takes no other, and our detour through scratch is faster than its slow one.
inline bool can_be_direct(const Problem& problem) {
  const bool dense = problem.d.order == Order::row && problem.d.leading_dimension() == problem.n;
  const bool sum = !problem.c || problem.c_is_d;
  const bool bias = !problem.bias_dtype ||
                    (problem.bias_axis == BiasAxis::column && problem.bias_stride == 1 && problem.alpha == 1.0F);
  const bool in_place = problem.activation == Activation::none || problem.d.dtype == DType::f32 ||
                        (problem.activation == Activation::relu && problem.d.dtype == DType::bf16);
  return dense && sum && bias && in_place;
}

/// The layout that B has for tiles of `columns` columns. Packed: the one oneDNN likes best, which the primitive of the
/// full tiles chooses and that of the last ones must take too; or, where that fails, plain rows.
inline dnnl::memory::desc layout_of_b(const TilePlan& plan, std::int64_t columns, bool last_across, bool last_down,
                                      bool packed_rows) {
  if (!plan.pack_b) return plan.b.descriptor(plan.depth, columns);
  if (packed_rows) return Plain{plan.b.dtype, true, columns}.descriptor(plan.depth, columns);
  if (last_down && plan.tiling.down > 1) return plan.shape(last_across, false).weights_desc();
  return {{plan.depth, columns}, data_type(plan.b.dtype), dnnl::memory::format_tag::any};
}

/// Whether the first rows of a packed layout can be written on their own.
inline bool has_part(const dnnl::memory::desc& whole, std::int64_t rows, std::int64_t columns) {
  try {
    (void)whole.submemory_desc({rows, std::min(columns, kPackColumns)}, {0, 0});
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

/// The primitives of the up to four shapes of tiles; false when oneDNN has none for one of them.
inline bool find_primitives(const Problem& problem, TilePlan& plan, bool packed_rows) {
  const Tiling& tiling = plan.tiling;
  for (const bool last_down : {false, true}) {
    for (const bool last_across : {false, true}) {
      if ((!last_down && tiling.down == 1) || (!last_across && tiling.across == 1)) continue;
      MatmulSpec spec{.rows = last_down ? problem.m - (tiling.down - 1) * tiling.rows : tiling.rows,
                      .columns = last_across ? problem.n - (tiling.across - 1) * tiling.columns : tiling.columns,
                      .depth = plan.depth,
                      .a = plan.a,
                      .d = {DType::f32, true, tiling.columns}};
      spec.b = layout_of_b(plan, spec.columns, last_across, last_down, packed_rows);
      if (plan.copy_a) spec.a.leading_dimension = plan.copied_line(spec.rows);
      if (plan.direct) {
        spec.d.dtype = problem.d.dtype;
        spec.alpha = problem.alpha;
        spec.beta = problem.beta;
        if (plan.fused_bias) spec.bias = problem.bias_dtype;
      }
      const auto description = find_matmul(spec);
      if (!description) return false;
      const std::size_t index = TilePlan::index(last_across, last_down);
      if (plan.zeros_under_b && !has_part(description->weights_desc(), problem.k, spec.columns)) return false;
      plan.descriptions[index] = *description;
      plan.primitives[index] = dnnl::matmul(*description);
      plan.scratchpad_bytes = std::max(plan.scratchpad_bytes, description->scratchpad_desc().get_size());
      const std::size_t b_bytes = (description->weights_desc().get_size() + 63) / 64 * 64;
      if (plan.pack_b) plan.packed_tile_bytes = std::max(plan.packed_tile_bytes, b_bytes);
    }
  }
  return true;
}

/// A plan with operands of the given type; false when oneDNN cannot do it that way.
inline bool plan_tiles(const Problem& problem, DType dtype, bool direct, TilePlan& plan) {
  plan = {};
  if (direct && !can_be_direct(problem)) return false;
  // oneDNN 2.6.3's AMX kernels stop with an illegal instruction at some odd K (79 x 6 x 63 in bf16): f32 takes these.
  const bool on_amx = dtype != DType::f32 && has(dnnl::cpu_isa::avx512_core_amx);
  if (on_amx && problem.k % 2 != 0) return false;
  plan.direct = direct;
  plan.fused_bias = direct && problem.bias_dtype.has_value();
  const bool rows_by_columns = problem.a.order == Order::row && problem.b.order == Order::column;
  const bool amx = on_amx && !rows_by_columns;  // whether tiles are made for AMX
  plan.tiling = make_tiling(problem, amx, direct ? problem.n : kMostScratchColumns);
  const Tiling& tiling = plan.tiling;
  if (direct && tiling.across > 1) return false;
  plan.accumulator_bytes = direct ? 0 : static_cast<std::size_t>(tiling.rows * tiling.columns) * sizeof(float);
  if (problem.k == 0) return true;

  plan.a = {dtype, problem.a.order != Order::column, problem.a.leading_dimension()};
  plan.b = {dtype, problem.b.order != Order::column, problem.b.leading_dimension()};
  plan.pad_a = dnnl::version()->major >= 3 && dtype != DType::f32 && plan.a.row_major &&
               problem.k * static_cast<std::int64_t>(size_of(dtype)) % kRowBytes != 0;
  plan.copy_a = plan.pad_a || dtype != problem.a.dtype || problem.a.order == Order::general ||
                plan.a.leading_dimension != (plan.a.row_major ? problem.k : tiling.rows);
  plan.copy_b = dtype != problem.b.dtype || problem.b.order == Order::general ||
                plan.b.leading_dimension < (plan.b.row_major ? problem.n : problem.k);
  const bool fast_in_place = !amx && plan.b.leading_dimension == (plan.b.row_major ? problem.n : problem.k);
  plan.pack_b = plan.copy_b || (!fast_in_place && tiling.down >= kPackFromTiles) ||
                (plan.b.row_major && tiling.down >= kPackRowMajorFromTiles);
  plan.depth = problem.k;
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  if (plan.pack_b && plan.a.row_major && amx && problem.k * size % kBadPitch == 0) {
    plan.depth = problem.k + kRowBytes / size;
    plan.zeros_under_b = true;
    plan.copy_a = true;
  }
  plan.packed_batches = problem.b.batch_stride == 0 ? 1 : problem.batch;
  plan.pieces_per_tile = (tiling.columns - 1) / kPackColumns + 1;
  const std::int64_t copied = std::max(plan.copy_a ? tiling.rows * round_up(plan.depth, kRowBytes) : 0,
                                       plan.copy_b ? std::min(kPackColumns, tiling.columns) * problem.k : 0);
  plan.copy_bytes = static_cast<std::size_t>(copied) * size_of(dtype);
  return find_primitives(problem, plan, false) || (plan.pack_b && find_primitives(problem, plan, true));
}

}  // namespace tmaops::ops::gemm::onednn
