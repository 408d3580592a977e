// The default choice on a GPU, which needs no GPU to be made.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ops/gemm/estimate.hpp"
#include "ops/gemm/problem.hpp"
#include "support/gpus.hpp"

namespace tmaops::ops::gemm {
namespace {

DeviceInfo hopper() {
  DeviceInfo info;
  info.device = {DeviceType::cuda, 0};
  info.name = "H200";
  info.compute_capability = 90;
  info.multiprocessors = 132;
  info.shared_memory_per_block = 227 << 10;
  info.l2_bytes = 50 << 20;
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

std::string chosen(const Problem& product) { return select(product, hopper(), "", "off").name(); }

Choice named(const std::string& name, const Problem& product) { return select(product, hopper(), name, "off"); }

Problem with_b(Problem made, Order order) {
  made.b.order = order;
  made.b.row_stride = order == Order::row ? made.n : 1;
  made.b.column_stride = order == Order::row ? 1 : made.k;
  return made;
}

class GemmSelect : public ::testing::Test {
  const PretendedDevice pretended_{hopper()};
};

TEST_F(GemmSelect, large_products_run_persistent) {
  DeviceInfo h200 = hopper();
  h200.name = "NVIDIA H200";  // at the power limit the estimate of wgmma_specialized is as good
  for (const std::int64_t size : {4096, 8192})
    EXPECT_EQ(select(with_b(problem(size, size, size), Order::column), h200, "", "off").variant->name,
              "wgmma_persistent");
}

TEST_F(GemmSelect, one_wave_does_not) {
  EXPECT_EQ(select(problem(2048, 2048, 2048), hopper(), "").variant->name, "wgmma_specialized");
}

TEST_F(GemmSelect, one_wave_may_have_widths_that_fill_it) {
  const auto has = [](const Problem& product, const std::string& name) {
    return std::ranges::any_of(every_choice(product, hopper()), [&](const Choice& one) { return one.name() == name; });
  };
  const auto square = [](std::int64_t size) { return with_b(problem(size, size, size), Order::column); };
  EXPECT_TRUE(has(square(1792), "wgmma_split_k/192x152")) << "10 x 12 tiles";
  EXPECT_FALSE(has(square(4096), "wgmma_split_k/192x152"));
}

TEST_F(GemmSelect, a_long_k_is_shared_by_all_multiprocessors) {
  EXPECT_EQ(chosen(problem(256, 256, 30000)), "wgmma_persistent/128x128p32") << "4 tiles of 469 steps";
  for (const Choice& one : every_choice(problem(256, 256, 4096), hopper()))
    EXPECT_EQ(one.config.parts, 1) << one.name();
}

TEST_F(GemmSelect, few_rows_are_computed_as_columns) {
  for (const std::int64_t m : {1, 8, 16}) {
    const Problem product = with_b(problem(m, 28672, 4096), Order::column);
    EXPECT_EQ(named("wgmma_split_k", product).config.columns, 16) << m;
    EXPECT_TRUE(named("wgmma_split_k", product).config.swapped) << m;
  }
}

/// 128 x 192: 31.03 waves of 4096 x 24576, whose last one is cut, and 5.33 of 4096 x 4096, whose last one has room for
/// its pieces; 2.5 waves stay whole.
TEST_F(GemmSelect, few_tiles_in_the_last_wave_are_cut) {
  const Config config = named("wgmma_persistent/128x192", problem(4096, 4096, 4096)).config;
  DeviceInfo device = hopper();
  device.l2_bytes = std::int64_t{1} << 40;  // nothing comes from memory
  const TileCost cost = cost_of("wgmma_persistent", config).value();
  const auto waves = [&](const Problem& product) {
    const double edge = product.n % config.columns != 0 ? cost.edge : 0;
    return (*estimate("wgmma_persistent", config, product, device) - cost.start - edge + cost.finish) /
           (cost.finish + static_cast<double>((product.k + 63) / 64) * cost.step);
  };
  EXPECT_DOUBLE_EQ(waves(problem(4096, 24576, 1536)), 31.5);
  EXPECT_DOUBLE_EQ(waves(problem(4096, 4096, 1024)), 5.5);
  EXPECT_DOUBLE_EQ(waves(problem(128 * 33, 192 * 10, 1024)), 3);
}

TEST_F(GemmSelect, wider_tiles_are_for_less_of_an_epilogue) {
  const auto widest = [](const Problem& product) {
    int columns = 0;
    for (const Choice& one : every_choice(product, hopper()))
      if (one.variant->name == "wgmma_persistent" && one.config.columns != 256)
        columns = std::max(columns, one.config.columns);
    return columns;
  };
  Problem product = with_b(problem(4096, 24576, 1536), Order::column);
  EXPECT_EQ(widest(product), 192);
  product.activation = Activation::relu;
  EXPECT_EQ(widest(product), 160);
  product.bias_dtype = DType::f32;
  EXPECT_EQ(widest(product), 128);
  product.bias_dtype.reset();
  product.activation = Activation::none;
  product.d.dtype = DType::f32;
  EXPECT_EQ(widest(product), 128);
}

TEST_F(GemmSelect, small_products_get_small_tiles) {
  EXPECT_EQ(select(problem(256, 256, 256), hopper(), "", "off").variant->name, "wgmma_unrolled_k");
  EXPECT_EQ(chosen(problem(704, 256, 256)), "wgmma_unrolled_k/64x32") << "64 x 16 would be two waves";
  EXPECT_EQ(chosen(problem(512, 512, 512)), "wgmma_unrolled_k/64x32");
}

TEST_F(GemmSelect, unrolled_kernels_are_for_whole_tiles_of_plain_products) {
  Problem product = problem(512, 512, 512);
  product.activation = Activation::relu;
  EXPECT_FALSE(chosen(product).starts_with("wgmma_unrolled"));
  product = problem(1024, 1024, 1024);
  product.alpha = 2;
  EXPECT_FALSE(chosen(product).starts_with("wgmma_unrolled"));
  EXPECT_FALSE(chosen(problem(320, 512, 512)).starts_with("wgmma_unrolled")) << "not four tiles one below the other";
  EXPECT_FALSE(chosen(problem(256, 256, 248)).starts_with("wgmma_unrolled")) << "a K that no kernel knows";
}

TEST_F(GemmSelect, rows_across_lines_share_columns_in_clusters) {
  for (const Order b : {Order::row, Order::column}) {
    Problem odd = with_b(problem(1000, 1000, 1000), b);
    EXPECT_EQ(chosen(odd), "wgmma_cluster8/64x144c8");
    odd.activation = Activation::relu;
    EXPECT_NE(chosen(odd), "wgmma_cluster8/64x144c8");
    EXPECT_NE(chosen(with_b(problem(1512, 1512, 1512), b)), "wgmma_cluster8/64x144c8") << "more than one wave";
  }
}

TEST_F(GemmSelect, what_tma_cannot_describe_goes_to_version_1) {
  Problem odd = problem(4096, 4096, 4095);
  EXPECT_EQ(select(odd, hopper(), "").variant->name, "wgmma_cp_async");
  Problem shifted = problem(4096, 4096, 4096);
  shifted.b.alignment = 2;
  EXPECT_EQ(select(shifted, hopper(), "").variant->name, "wgmma_cp_async");
  EXPECT_EQ(select(problem(64, 64, 0), hopper(), "").variant->name, "wgmma_cp_async");
}

TEST_F(GemmSelect, without_wgmma_every_product_goes_to_mma_sync) {
  for (const DeviceInfo& device : test::made_up_gpus()) {
    const PretendedDevice pretended(device);
    for (const Problem& product : {problem(1, 1, 0), problem(64, 64, 64), problem(4096, 4096, 4095),
                                   with_b(problem(1000, 24, 333), Order::column), problem(8192, 8192, 8192)}) {
      const std::string_view name = select(product, device, "", "off").variant->name;
      EXPECT_EQ(name == "mma_sync", device.compute_capability != 90) << device.name << " " << product.text();
      EXPECT_EQ(select(product, device, "mma_sync", "off").variant->name, "mma_sync");
    }
  }
}

TEST_F(GemmSelect, mma_sync_takes_the_small_tile_where_it_makes_one_wave) {
  for (const std::int64_t n : {64, 256, 1024}) EXPECT_EQ(named("mma_sync", problem(n, n, n)).name(), "mma_sync/64x128");
  for (const std::int64_t n : {2048, 4096, 8192})
    EXPECT_EQ(named("mma_sync", problem(n, n, n)).name(), "mma_sync/128x128");
}

TEST_F(GemmSelect, mma_sync_is_expected_to_take_longer_than_the_wgmma_that_takes_every_problem) {
  const Config wgmma = named("wgmma_cp_async", problem(64, 64, 64)).config;
  for (const std::int64_t m : {1, 64, 65, 128, 129, 1000, 4096, 8448, 100000})
    for (const std::int64_t n : {1, 128, 1000, 8192})
      for (const std::int64_t k : {0, 1, 64, 1000, 4096})
        for (const int alignment : {2, 128}) {
          Problem product = problem(m, n, k);
          product.a.alignment = product.b.alignment = alignment;
          const Config mma = named("mma_sync", product).config;
          EXPECT_LT(*estimate("wgmma_cp_async", wgmma, product, hopper()),
                    *estimate("mma_sync", mma, product, hopper()))
              << product.text();
        }
}

TEST_F(GemmSelect, other_architectures_are_refused_with_a_reason) {
  DeviceInfo old = hopper();
  old.compute_capability = 75;
  try {
    (void)select(problem(64, 64, 64), old, "");
    FAIL() << "chose a variant";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::variant_refuses);
    for (const char* needs : {"needs compute capability 9.0", "needs compute capability 8.0 or newer"})
      EXPECT_NE(std::string(error.what()).find(needs), std::string::npos) << error.what();
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
  const auto least = [](const auto& variant, const Problem& product) {
    double time = 1e30;
    for (const Config& config : variant.configs(product, hopper()))
      time = std::min(time, estimate(variant.name, config, product, hopper()).value());
    return time;
  };
  for (const auto& variant : variants())
    for (const std::int64_t size : {64, 256, 1000, 2048, 4096}) {
      const Problem small = problem(size, size, size);
      const Problem large = problem(2 * size, size, 2 * size);
      if (!try_variant(variant, small, hopper()) || !try_variant(variant, large, hopper())) continue;
      EXPECT_LE(least(variant, small), least(variant, large)) << variant.name << " " << size;
    }
}

TEST_F(GemmSelect, a_tile_of_which_nothing_is_known_has_no_estimate) {
  EXPECT_EQ(estimate("wgmma_tma", {}, problem(64, 64, 64), hopper()), std::nullopt);
  EXPECT_EQ(estimate("wgmma_tma", {.rows = 64, .columns = 64}, problem(64, 64, 64), hopper()), std::nullopt);
}

}  // namespace
}  // namespace tmaops::ops::gemm
