// The default choice on a GPU, which needs no GPU to be made.
#include <gtest/gtest.h>

#include "ops/gemm/problem.hpp"
#include "ops/gemm/tiling.hpp"

namespace tmaops::ops::gemm {
namespace {

DeviceInfo hopper() {
  DeviceInfo info;
  info.device = {DeviceType::cuda, 0};
  info.name = "H200";
  info.compute_capability = 90;
  info.multiprocessors = 132;
  info.shared_memory_per_block = 227 << 10;
  return info;
}

MatrixLayout row_major(std::int64_t rows, std::int64_t columns, DType dtype = DType::f16) {
  return {
      .dtype = dtype, .rows = rows, .columns = columns, .row_stride = columns, .column_stride = 1, .alignment = 128};
}

Problem problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = row_major(m, k),
          .b = row_major(k, n),
          .d = row_major(m, n),
          .device = {DeviceType::cuda, 0}};
}

class GemmSelect : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!variants().front().built()) GTEST_SKIP() << variants().front().missing;
  }
};

TEST_F(GemmSelect, large_products_run_persistent) {
  EXPECT_EQ(select(problem(4096, 4096, 4096), hopper(), "").variant->name, "wgmma_persistent");
  EXPECT_EQ(select(problem(8192, 8192, 8192), hopper(), "").variant->name, "wgmma_persistent");
}

TEST_F(GemmSelect, one_wave_does_not) {
  EXPECT_EQ(select(problem(2048, 2048, 2048), hopper(), "").variant->name, "wgmma_specialized");
}

TEST_F(GemmSelect, one_wave_has_the_width_that_fills_it) {
  const auto tile = [](std::int64_t size, Order b) {
    Problem product = problem(size, size, size);
    product.b.order = b;
    if (b == Order::column) std::swap(product.b.row_stride, product.b.column_stride);
    return select(product, hopper(), "").tiling->tile;
  };
  EXPECT_EQ(tile(1408, Order::column), "128x128");
  EXPECT_EQ(tile(1536, Order::column), "128x144");
  EXPECT_EQ(tile(1664, Order::column), "128x176");
  EXPECT_EQ(tile(1792, Order::column), "128x208");
  EXPECT_EQ(tile(1920, Order::column), "128x256");
  EXPECT_EQ(tile(1536, Order::row), "128x192");
}

TEST_F(GemmSelect, warpgroups_take_turns_where_the_last_wave_or_a_short_k_decides) {
  const auto tile = [](Problem product, Order b) {
    product.b.order = b;
    if (b == Order::column) std::swap(product.b.row_stride, product.b.column_stride);
    return select(product, hopper(), "").tiling->tile;
  };
  for (const Order b : {Order::row, Order::column}) EXPECT_EQ(tile(problem(4096, 4096, 4096), b), "128x128");
  EXPECT_EQ(tile(problem(8192, 8192, 8192), Order::row), "128x192c2");
  EXPECT_EQ(tile(problem(8192, 8192, 8192), Order::column), "128x176");
  EXPECT_EQ(tile(problem(4096, 24576, 1536), Order::column), "128x176");
  EXPECT_EQ(tile(problem(4096, 24576, 1536), Order::row), "128x192c2");
}

/// 128 x 192: 31.03 waves of 4096 x 24576, whose last one is cut, and 5.33 of 4096 x 4096, whose last one has room for
/// its pieces; 2.5 waves stay whole.
TEST_F(GemmSelect, few_tiles_in_the_last_wave_are_cut) {
  const Tiling& tiling = *find_tiling("wgmma_persistent", "128x192c2");
  const auto waves = [&](const Problem& product) {
    return (microseconds(tiling, product, 132) - tiling.start) /
           (tiling.finish + static_cast<double>((product.k + 63) / 64) * tiling.step);
  };
  EXPECT_DOUBLE_EQ(waves(problem(4096, 24576, 1536)), 31.5);
  EXPECT_DOUBLE_EQ(waves(problem(4096, 4096, 1024)), 5.5);
  EXPECT_DOUBLE_EQ(waves(problem(128 * 33, 192 * 10, 1024)), 3);
}

TEST_F(GemmSelect, wide_tiles_are_for_plain_products) {
  Problem product = problem(4096, 24576, 1536);
  product.b.order = Order::column;
  std::swap(product.b.row_stride, product.b.column_stride);
  EXPECT_EQ(select(product, hopper(), "").tiling->tile, "128x176");
  product.activation = Activation::relu;
  EXPECT_NE(select(product, hopper(), "").tiling->columns, 176);
  product.activation = Activation::none;
  product.d.dtype = DType::f32;
  EXPECT_NE(select(product, hopper(), "").tiling->columns, 176);
}

TEST_F(GemmSelect, small_products_and_few_rows_get_small_tiles) {
  for (const std::int64_t size : {256, 512, 768, 1024})
    EXPECT_EQ(select(problem(size, size, size), hopper(), "").variant->name, "wgmma_small") << size;
  EXPECT_EQ(select(problem(64, 4096, 7168), hopper(), "").variant->name, "wgmma_small");
  EXPECT_EQ(best_tiling("wgmma_small", problem(64, 4096, 7168), 132).splits, 2);
  EXPECT_EQ(best_tiling("wgmma_small", problem(512, 512, 512), 132).columns, 32);
  EXPECT_EQ(best_tiling("wgmma_small", problem(1024, 1024, 1024), 132).columns, 128);
}

TEST_F(GemmSelect, rows_across_lines_share_columns_in_clusters) {
  Problem odd = problem(1000, 1000, 1000);
  EXPECT_EQ(select(odd, hopper(), "").variant->name, "wgmma_specialized");
  EXPECT_EQ(select(odd, hopper(), "").tiling->tile, "64x144c8");
  odd.activation = Activation::relu;
  EXPECT_NE(select(odd, hopper(), "").tiling->tile, "64x144c8");
  EXPECT_NE(select(problem(1512, 1512, 1512), hopper(), "").tiling->tile, "64x144c8") << "more than one wave";
}

TEST_F(GemmSelect, rows_across_lines_are_read_by_whole_lines_where_both_operands_lie_along_k) {
  const auto along_k = [](Problem made) {
    made.b.order = Order::column;
    made.b.row_stride = 1;
    made.b.column_stride = made.k;
    return made;
  };
  const auto chosen = [](const Problem& product) {
    const Choice choice = select(product, hopper(), "");
    return std::string(choice.variant->name) + "/" + std::string(choice.tiling->tile);
  };
  EXPECT_EQ(chosen(along_k(problem(1000, 1000, 1000))), "wgmma_small/128x64r8");
  EXPECT_EQ(chosen(along_k(problem(1024, 1024, 1024))), "wgmma_small/64x128");
  EXPECT_NE(chosen(along_k(problem(1000, 1000, 1032))), "wgmma_small/128x64r8") << "more than 17 lines";
  Problem activated = along_k(problem(1000, 1000, 1000));
  activated.activation = Activation::relu;
  EXPECT_NE(chosen(activated), "wgmma_small/128x64r8");
}

TEST_F(GemmSelect, what_tma_cannot_describe_goes_to_version_1) {
  Problem odd = problem(4096, 4096, 4095);
  EXPECT_EQ(select(odd, hopper(), "").variant->name, "wgmma_cp_async");
  Problem shifted = problem(4096, 4096, 4096);
  shifted.b.alignment = 2;
  EXPECT_EQ(select(shifted, hopper(), "").variant->name, "wgmma_cp_async");
  EXPECT_EQ(select(problem(64, 64, 0), hopper(), "").variant->name, "wgmma_cp_async");
}

TEST_F(GemmSelect, other_architectures_are_refused_with_a_reason) {
  DeviceInfo old = hopper();
  old.compute_capability = 80;
  try {
    (void)select(problem(64, 64, 64), old, "");
    FAIL() << "chose a variant";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::variant_refuses);
    EXPECT_NE(std::string(error.what()).find("needs compute capability 9.0"), std::string::npos) << error.what();
  }
}

TEST_F(GemmSelect, a_column_major_d_is_judged_by_its_transpose) {
  Problem given = problem(64, 8192, 4096);
  given.d = {.dtype = DType::f16,
             .order = Order::column,
             .rows = 64,
             .columns = 8192,
             .row_stride = 1,
             .column_stride = 64,
             .alignment = 128};
  const Problem turned = transposed(given);
  EXPECT_EQ(turned.m, 8192);
  EXPECT_EQ(turned.d.order, Order::row);
  EXPECT_EQ(turned.a.order, Order::column);
  EXPECT_EQ(transposed(turned), given);
  EXPECT_NO_THROW((void)select(given, hopper(), ""));
}

TEST_F(GemmSelect, more_work_never_takes_less_time) {
  for (const char* variant : {"wgmma_cp_async", "wgmma_tma", "wgmma_specialized", "wgmma_persistent", "wgmma_small"})
    for (const std::int64_t size : {64, 256, 1000, 2048, 4096}) {
      const Problem small = problem(size, size, size);
      const Problem large = problem(2 * size, size, 2 * size);
      EXPECT_LE(microseconds(best_tiling(variant, small, 132), small, 132),
                microseconds(best_tiling(variant, large, 132), large, 132))
          << variant << " " << size;
    }
}

}  // namespace
}  // namespace tmaops::ops::gemm
