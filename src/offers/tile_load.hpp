// Loading tiles of 2 x 2 pixels of 32 f16 channels (256 bytes) at given coordinates: a study of how fast tiles reach
// the multiprocessor by each way there is. The checksum makes the loads observable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/choose.hpp"
#include "core/device_info.hpp"
#include "core/registry.hpp"
#include "tmaops/ms_deform_attn.hpp"
#include "tmaops/plan.hpp"
#include "tmaops/tensor.hpp"

namespace tmaops::ops::tile_load {

inline constexpr int kChannels = 32;  // of a pixel
inline constexpr int kPixelBytes = 64;
inline constexpr int kTileBytes = 256;  // 2 rows of 2 pixels
inline constexpr int kMaxLevels = 8;

/// Tiles are numbered t = ((b * queries + q) * levels + l) * points + p.
struct Problem {
  std::int64_t batch = 0;
  std::int64_t queries = 0;
  std::int64_t points = 0;
  std::vector<LevelShape> levels{};
  Device device{};
  std::int64_t length() const;  // pixels of all levels of one image
  std::int64_t tiles() const { return batch * queries * static_cast<std::int64_t>(levels.size()) * points; }
  /// "tile_load: {batch: 1, queries: 1000, points: 8, levels: [92x160]}".
  std::string text() const;
};

struct Arguments {
  const void* value = nullptr;                // f16 (batch, length, 32), levels one after the other
  const std::int32_t* coordinates = nullptr;  // (batch, queries, levels, points, 2): x, y of the tile's first pixel
  std::uint32_t* checksums = nullptr;         // (batch, queries, levels, points)
  /// Measuring only: cycles that the slowest warp of each block took, for the first `cycle_count` blocks. What is there
  /// is raised and never lowered: fill it with -1 or 0 before. Of several launches the slowest block counts.
  std::int64_t* cycles = nullptr;
  int cycle_count = 0;
  bool dependent_launch = false;  // programmatic dependent launch
};

using Config = OneWay;

/// Checks the arguments. value (B, S, 32) f16 contiguous; coordinates (B, Q, L, P, 2) and checksums (B, Q, L, P) i32
/// contiguous. Coordinates may lie outside: such pixels read as zero. Throws Error: shape_mismatch,
/// level_shapes_mismatch, empty_level, unsupported_dtype, device_mismatch, bad_strides, overlap, null_pointer.
Problem make_problem(const ConstTensorView& value, std::span<const LevelShape> levels,
                     const ConstTensorView& coordinates, const TensorView& checksums);

VariantTable<Problem, Arguments, Config> variants();
std::vector<VariantInfo> variant_list();
Choice<Problem, Arguments, Config> select(const Problem& problem, const DeviceInfo& device, std::string_view name = "");

struct Options {
  std::string_view variant{};  // must be named: none is chosen
  bool dependent_launch = false;
  std::int64_t* cycles = nullptr;  // Arguments::cycles
  int cycle_count = 0;
};

/// The plan of a call. The buffers must outlive it.
Plan plan_tile_load(const ConstTensorView& value, std::span<const LevelShape> levels,
                    const ConstTensorView& coordinates, const TensorView& checksums, const Options& options = {});

}  // namespace tmaops::ops::tile_load
