// The kernel of the ceiling `gather`.
#pragma once

#include <array>
#include <cstdint>

#include "tmaops/tensor.hpp"

namespace tmaops::bench {

inline constexpr int kGatherMostLevels = 8;

struct GatherLevel {
  std::int32_t height = 0;
  std::int32_t width = 0;
  std::int64_t start = 0;  // first pixel in S
};

/// Shape of a multi-scale deformable attention. A row is one query's head; a chunk is 16 bytes of its channels.
struct GatherShape {
  std::int64_t rows = 0;            // N * Lq * M
  std::int64_t rows_per_image = 0;  // Lq * M
  std::int64_t length = 0;          // S
  std::int32_t heads = 0;
  std::int32_t chunks = 0;
  std::int32_t points = 0;  // of each level
  std::int32_t levels = 0;
  std::array<GatherLevel, kGatherMostLevels> level{};
};

/// For every row and chunk: reads each sample's location and the four pixels around it, and writes the exclusive or of
/// what it read. value (N, S, M, chunks) of 16 bytes, locations of the type in (N, Lq, M, L, P, 2), output (N, Lq, M,
/// chunks) of 16 bytes.
void launch_gather(const GatherShape& shape, const void* value, const ConstTensorView& locations, void* output,
                   Stream stream);

}  // namespace tmaops::bench
