// The copies of a head that simd_packed reads: every corner of every sample lies in them.
#include "ops/ms_deform_attn/shared/head_maps.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "ops/ms_deform_attn/case.hpp"

namespace tmaops::test {
namespace {

namespace forward = ops::ms_deform_attn;

std::vector<std::vector<LevelShape>> level_lists() {
  return {{{1, 1}}, {{40, 30}, {20, 15}, {10, 8}}, {{3, 100}, {1, 1}}, {{1, 1}, {2, 90}, {1, 3}, {5, 1}}};
}

TEST(HeadMaps, every_corner_of_a_sample_up_to_a_pixel_off_the_map_lies_in_them) {
  for (const std::vector<LevelShape>& levels : level_lists()) {
    Case c({.channels = 32, .queries = 1, .levels = levels}, 1);
    Buffer output = c.output();
    const forward::Problem problem =
        forward::make_problem(c.value(), c.shape().levels, c.locations(), c.weights(), output, c.options());
    const forward::HeadMapLayout layout(problem);
    for (std::size_t l = 0; l < levels.size(); ++l) {
      const auto& map = layout.levels[l];
      EXPECT_GE(map.first - map.pitch - 1, 0) << c.text() << ", level " << l;
      const std::int64_t lower_right = map.first + (levels[l].height + 1) * map.pitch + levels[l].width + 1;
      EXPECT_LE(lower_right + 1, layout.pixels) << c.text() << ", level " << l;
    }
    // All of them are filled.
    std::int64_t at = 0;
    for (const auto& row : layout.rows) {
      EXPECT_EQ(row.at, at);
      at += row.pitch;
    }
    EXPECT_EQ(at, layout.pixels);
  }
}

// Memory that held NaN a moment ago lies behind the map of the last head.
TEST(HeadMaps, points_off_a_wide_level_before_small_ones_weigh_nothing) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::vector<LevelShape>& levels : level_lists()) {
      Case c({.batch = 1, .heads = 1, .channels = 32, .queries = 40, .levels = levels, .value_dtype = dtype}, 2);
      Buffer got = c.output();
      const forward::Problem problem =
          forward::make_problem(c.value(), c.shape().levels, c.locations(), c.weights(), got, c.options());
      if (!takes(forward::variants(), problem, "simd_packed")) continue;
      std::uint64_t i = 0;
      c.locations().fill([&] { return i++ % 3 == 0 ? 0.4 : 1.5; });
      Case dirty = c;
      dirty.value().fill([] { return std::numeric_limits<double>::quiet_NaN(); });
      dirty.forward(got, "simd_packed");
      c.forward(got, "simd_packed");
      expect_forward(got, c.reference(), "simd_packed on " + c.text());
    }
  }
}

}  // namespace
}  // namespace tmaops::test
