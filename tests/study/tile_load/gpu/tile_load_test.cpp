// Every tile_load variant against the definition: borders, levels, few and many tiles.
#include "offers/tile_load.hpp"

#include <random>

#include "gpu/support.hpp"

namespace tmaops {
namespace {

namespace op = ops::tile_load;
using test::DeviceArray;

struct Case {
  std::int64_t batch, queries, points;
  std::vector<LevelShape> levels;
};

void check(const Case& shape, std::string_view variant, bool dependent) {
  std::mt19937 random(17);
  std::int64_t length = 0;
  for (const LevelShape& level : shape.levels) length += level.height * level.width;
  std::vector<float16> value(static_cast<std::size_t>(shape.batch * length * op::kChannels));
  for (float16& v : value) v.bits = static_cast<std::uint16_t>(random());
  const auto level_count = static_cast<std::int64_t>(shape.levels.size());
  const auto tiles = static_cast<std::size_t>(shape.batch * shape.queries * level_count * shape.points);
  std::vector<std::int32_t> coordinates(2 * tiles);
  for (std::size_t t = 0; t < tiles; ++t) {
    const LevelShape& level = shape.levels[t / static_cast<std::size_t>(shape.points) % shape.levels.size()];
    // From three pixels before the level to three after it: all ways to lie on the border, and wholly outside.
    coordinates[2 * t] = static_cast<std::int32_t>(random() % static_cast<unsigned>(level.width + 6)) - 3;
    coordinates[2 * t + 1] = static_cast<std::int32_t>(random() % static_cast<unsigned>(level.height + 6)) - 3;
  }
  std::vector<std::int32_t> want(tiles, 0);
  const std::initializer_list<std::int64_t> at{shape.batch, shape.queries, level_count, shape.points, 2};
  const std::initializer_list<std::int64_t> sums{shape.batch, shape.queries, level_count, shape.points};
  op::plan_tile_load(view(value.data(), {shape.batch, length, op::kChannels}), shape.levels,
                     view(coordinates.data(), at), view(want.data(), sums), {"reference"})
      .run();

  const Device gpu{DeviceType::cuda, 0};
  const DeviceArray<float16> device_value(value);
  const DeviceArray<std::int32_t> device_coordinates(coordinates), device_sums(tiles);
  const DeviceArray<std::int64_t> cycles(4, 0);
  const ConstTensorView value_view(view(device_value.get(), {shape.batch, length, op::kChannels}, gpu));
  const ConstTensorView coordinates_view(view(device_coordinates.get(), at, gpu));
  const TensorView sums_view = view(device_sums.get(), sums, gpu);
  op::plan_tile_load(value_view, shape.levels, coordinates_view, sums_view,
                     {.variant = variant, .dependent_launch = dependent, .cycles = cycles.get(), .cycle_count = 4})
      .run();
  check_cuda(cudaDeviceSynchronize(), variant);
  const auto got = device_sums.values();
  for (std::size_t t = 0; t < tiles; ++t)
    ASSERT_EQ(got[t], want[t]) << variant << ", "
                               << op::make_problem(value_view, shape.levels, coordinates_view, sums_view).text()
                               << ", tile " << t << " at (" << coordinates[2 * t] << ", " << coordinates[2 * t + 1]
                               << ")";
  EXPECT_GT(cycles.values()[0], 0) << variant << " counted no cycles";
}

class TileLoadOnGpu : public testing::TestWithParam<std::string> {};

TEST_P(TileLoadOnGpu, loads_every_tile_once) {
  TMAOPS_NEEDS_GPU();
  if (!test::runs_here(op::variants(), GetParam())) GTEST_SKIP() << GetParam() << " does not run here";
  for (const bool dependent : {false, true}) {
    check({1, 1, 1, {{92, 160}}}, GetParam(), dependent);
    check({1, 1000, 8, {{92, 160}}}, GetParam(), dependent);  // the published case
    check({2, 77, 3, {{1, 1}, {5, 2}, {2, 300}}}, GetParam(), dependent);
    check({3, 5001, 4, {{92, 160}, {46, 80}, {23, 40}, {12, 20}}}, GetParam(), dependent);
  }
}

std::vector<std::string> gpu_variants() {
  std::vector<std::string> names;
  for (const VariantInfo& variant : op::variant_list())
    if (variant.device == DeviceType::cuda) names.emplace_back(variant.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Variants, TileLoadOnGpu, testing::ValuesIn(gpu_variants()),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace tmaops
