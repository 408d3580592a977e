// The definition. A tile at (x, y) of level l of image b is the 64 32-bit words, little-endian, two channels each,
//   word[i], i = (dy * 2 + dx) * 16 + c / 2   of the pixels (x + dx, y + dy), dx, dy in {0, 1}, channels c, c + 1;
// a pixel outside the level is zero. Its checksum is
//   sum over i of word[i] * (2 i + 1)   modulo 2^32:
// sums modulo 2^32 do not depend on their order, and the odd weights make a word at the wrong place change the result.
#include <cstring>

#include "offers/tile_load.hpp"

namespace tmaops::ops::tile_load::reference {

Support supports(const Problem&, const DeviceInfo&) { return Support::yes(); }

namespace {

void run(const Problem& problem, const Arguments& arguments) {
  const auto* value = static_cast<const unsigned char*>(arguments.value);
  std::int64_t tile = 0;
  for (std::int64_t b = 0; b < problem.batch; ++b)
    for (std::int64_t q = 0; q < problem.queries; ++q) {
      std::int64_t level_start = 0;
      for (const LevelShape& level : problem.levels) {
        for (std::int64_t p = 0; p < problem.points; ++p, ++tile) {
          std::uint32_t sum = 0;
          for (std::uint32_t pixel = 0; pixel < 4; ++pixel) {
            const std::int64_t x = std::int64_t{arguments.coordinates[2 * tile]} + pixel % 2;
            const std::int64_t y = std::int64_t{arguments.coordinates[2 * tile + 1]} + pixel / 2;
            if (x < 0 || y < 0 || x >= level.width || y >= level.height) continue;
            std::uint32_t words[16];
            std::memcpy(words, value + (b * problem.length() + level_start + y * level.width + x) * kPixelBytes,
                        kPixelBytes);
            for (std::uint32_t i = 0; i < 16; ++i) sum += words[i] * (2 * (pixel * 16 + i) + 1);
          }
          arguments.checksums[tile] = sum;
        }
        level_start += level.height * level.width;
      }
    }
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  return cpu_work(run, problem, arguments);
}

}  // namespace tmaops::ops::tile_load::reference
