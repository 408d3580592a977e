// tile_load's arguments and its definition on an example that can be computed by hand.
#include "offers/tile_load.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/broken_views.hpp"

namespace tmaops {
namespace {

namespace op = ops::tile_load;

struct Call {
  std::vector<LevelShape> levels{{3, 4}, {1, 2}};
  std::vector<float16> value = std::vector<float16>(2 * 14 * 32);
  std::vector<std::int32_t> coordinates = std::vector<std::int32_t>(2 * 1 * 2 * 1 * 2, 100);
  std::vector<std::int32_t> checksums = std::vector<std::int32_t>(2 * 1 * 2 * 1, -1);
  std::int64_t length = 14;
  void run() {
    op::plan_tile_load(view(value.data(), {2, length, 32}), levels, view(coordinates.data(), {2, 1, 2, 1, 2}),
                       view(checksums.data(), {2, 1, 2, 1}), {"reference"})
        .run();
  }
};

TEST(TileLoad, checksum_weighs_every_word_and_reads_outside_as_zero) {
  Call call;
  // Image 1, level 0: a tile at (3, -1) of 4 x 3 pixels holds one pixel inside, (3, 0), as its pixel (dx 0, dy 1).
  call.value[static_cast<std::size_t>((14 + 3) * 32 + 4)].bits = 5;   // word 2 of the pixel, low half
  call.value[static_cast<std::size_t>((14 + 3) * 32 + 31)].bits = 1;  // word 15, high half
  call.coordinates[4] = 3;
  call.coordinates[5] = -1;
  // Image 1, level 1 starts at pixel 12: a tile at (0, 0) of 2 x 1 pixels.
  call.value[static_cast<std::size_t>((14 + 12) * 32)].bits = 7;       // pixel (0, 0), word 0
  call.value[static_cast<std::size_t>((14 + 13) * 32 + 2)].bits = 11;  // pixel (1, 0), word 1
  call.coordinates[6] = 0;
  call.coordinates[7] = 0;
  call.run();
  EXPECT_EQ(call.checksums[0], 0);
  EXPECT_EQ(call.checksums[1], 0);
  EXPECT_EQ(call.checksums[2], 5 * (2 * (2 * 16 + 2) + 1) + 65536 * (2 * (2 * 16 + 15) + 1));
  EXPECT_EQ(call.checksums[3], 7 * 1 + 11 * (2 * (16 + 1) + 1));
}

TEST(TileLoad, names_the_argument_that_is_wrong) {
  Call call;
  call.levels[0].width = 5;
  test::expect_error(ErrorCode::level_shapes_mismatch, [&] { call.run(); }, "levels", "17", "14");
  call.levels.clear();
  test::expect_error(ErrorCode::empty_level, [&] { call.run(); }, "levels");
}

TEST(TileLoad, refuses_views_that_are_no_tensors_by_name) {
  std::vector<LevelShape> levels{{1, 2}};
  std::vector<float16> pixels(2 * 32);
  std::vector<std::int32_t> places(4), sums(2);
  ConstTensorView value = view(std::as_const(pixels).data(), {1, 2, 32});
  ConstTensorView coordinates = view(std::as_const(places).data(), {1, 1, 1, 2, 2});
  TensorView checksums = view(sums.data(), {1, 1, 1, 2});
  const auto once = [&] { op::plan_tile_load(value, levels, coordinates, checksums, {"reference"}).run(); };
  once();
  test::expect_refused("tile_load: value", value, once);
  test::expect_refused("tile_load: coordinates", coordinates, once);
  test::expect_refused("tile_load: checksums", checksums, once);
}

TEST(TileLoad, text_is_the_configurations_syntax) {
  const op::Problem problem{1, 1000, 8, {{92, 160}, {46, 80}}};
  EXPECT_EQ(problem.text(), "tile_load: {batch: 1, queries: 1000, points: 8, levels: [92x160, 46x80]}");
  EXPECT_EQ(problem.tiles(), 16000);
}

}  // namespace
}  // namespace tmaops
