// What is chosen on an H200 for every case of the configurations with f16 or bf16 products: a change of the choice is a
// change of what the tables show.
#include <gtest/gtest.h>

#include <string>

#include "ops/gemm/problem.hpp"
#include "support/gpus.hpp"

namespace tmaops::ops::gemm {
namespace {

struct Case {
  GemmMode mode;
  std::int64_t m, n, k;
  DType dtype;
  const char* choice;
};

/// configs/gemm.yaml, gemm_large.yaml, seed_gemm.yaml and quick.yaml.
constexpr Case kCases[] = {
    {GemmMode::RC, 256, 256, 256, DType::f16, "wgmma_unrolled_k/64x16"},
    {GemmMode::RC, 512, 512, 512, DType::f16, "wgmma_unrolled_k/64x32"},
    {GemmMode::RC, 512, 512, 512, DType::bf16, "wgmma_unrolled_k/64x32"},
    {GemmMode::RC, 1000, 1000, 1000, DType::f16, "wgmma_cluster8/64x144c8"},
    {GemmMode::RC, 1024, 1024, 1024, DType::f16, "wgmma_unrolled_tma/64x128"},
    {GemmMode::RC, 2048, 2048, 2048, DType::f16, "wgmma_specialized/128x256"},
    {GemmMode::RC, 4096, 4096, 4096, DType::f16, "wgmma_persistent/128x128"},
    {GemmMode::RC, 8192, 8192, 8192, DType::f16, "wgmma_persistent/128x176"},
    {GemmMode::RC, 64, 4096, 7168, DType::f16, "wgmma_deep_stages/64x64k2"},
    {GemmMode::RC, 4096, 24576, 1536, DType::f16, "wgmma_persistent/128x176"},
    {GemmMode::CR, 256, 256, 256, DType::f16, "wgmma_unrolled_k/64x16"},
    {GemmMode::CR, 512, 512, 512, DType::f16, "wgmma_unrolled_k/64x32"},
    {GemmMode::CR, 1000, 1000, 1000, DType::f16, "wgmma_cluster8/64x144c8"},
    {GemmMode::CR, 1024, 1024, 1024, DType::f16, "wgmma_unrolled_tma/64x128"},
    {GemmMode::CR, 2048, 2048, 2048, DType::f16, "wgmma_specialized/128x256"},
    {GemmMode::CR, 4096, 4096, 4096, DType::f16, "wgmma_persistent/128x128"},
    {GemmMode::CR, 8192, 8192, 8192, DType::f16, "wgmma_persistent/128x192c2"},
    {GemmMode::CR, 64, 4096, 7168, DType::f16, "wgmma_deep_stages/64x64k2"},
    {GemmMode::CR, 4096, 24576, 1536, DType::f16, "wgmma_persistent/128x192c2"},
};

MatrixLayout dense(bool row_major, std::int64_t rows, std::int64_t columns, DType dtype) {
  MatrixLayout made{.dtype = dtype, .rows = rows, .columns = columns, .alignment = 128};
  made.row_stride = row_major ? columns : 1;
  made.column_stride = row_major ? 1 : rows;
  made.order = order_of(rows, columns, made.row_stride, made.column_stride);
  return made;
}

Problem problem_of(const Case& one) {
  const std::string_view mode = to_string(one.mode);
  return {.m = one.m,
          .n = one.n,
          .k = one.k,
          .a = dense(mode[0] == 'R', one.m, one.k, one.dtype),
          .b = dense(mode[1] == 'R', one.k, one.n, one.dtype),
          .d = dense(true, one.m, one.n, one.dtype),
          .device = {DeviceType::cuda, 0}};
}

TEST(GemmChoices, every_case_of_the_configurations_has_its_variant_and_tile) {
  if (!variants().front().built()) GTEST_SKIP() << variants().front().missing;
  const DeviceInfo h200 = test::made_up_gpu(90);
  for (const Case& one : kCases) {
    const Problem problem = problem_of(one);
    const Choice choice = select(problem, h200, "", "off");
    EXPECT_EQ(choice.name(), one.choice) << problem.text();
  }
}

}  // namespace
}  // namespace tmaops::ops::gemm
