// The choice against the times of every choice on an H200 (results/h200/gemm_choices.json), which needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ops/gemm/estimate.hpp"
#include "ops/gemm/problem.hpp"
#include "ops/gemm/shared/supports.hpp"
#include "ops/gemm/tuning.hpp"
#include "support/gpus.hpp"

namespace tmaops::ops::gemm {
namespace {

MatrixLayout dense(bool row_major, std::int64_t rows, std::int64_t columns, DType dtype) {
  MatrixLayout made{.dtype = dtype, .rows = rows, .columns = columns, .alignment = 128};
  made.row_stride = row_major ? columns : 1;
  made.column_stride = row_major ? 1 : rows;
  made.order = order_of(rows, columns, made.row_stride, made.column_stride);
  return made;
}

/// "RC 64x4096x7168" or "RC 1024", and what follows: "beta=1 bias=column gelu".
Problem problem_of(const std::string& whole, DType dtype) {
  const std::size_t end = std::min(whole.find(' ', 3), whole.size());
  const std::string name = whole.substr(0, end);
  const std::string rest = whole.substr(end);
  std::vector<std::int64_t> extents;
  for (std::size_t at = 3; at < name.size(); at = std::min(name.find('x', at), name.size() - 1) + 1)
    extents.push_back(std::stoll(name.substr(at)));
  extents.resize(3, extents.front());
  const auto [m, n, k] = std::tuple{extents[0], extents[1], extents[2]};
  Problem made{.m = m,
               .n = n,
               .k = k,
               .a = dense(name[0] == 'R', m, k, dtype),
               .b = dense(name[1] == 'R', k, n, dtype),
               .d = dense(true, m, n, dtype),
               .device = {DeviceType::cuda, 0}};
  if (rest.find("beta") != std::string::npos) {
    made.beta = 1;
    made.c = made.d;
  }
  if (rest.find("bias") != std::string::npos) {
    made.bias_dtype = dtype;
    made.bias_stride = 1;
  }
  for (const Activation one : {Activation::relu, Activation::gelu, Activation::silu})
    if (rest.ends_with(to_string(one))) made.activation = one;
  return made;
}

struct Measured {
  std::string name;
  Problem problem;
  nlohmann::json us;  // by choice
  double best = std::numeric_limits<double>::infinity();

  double loss(const Choice& choice) const {
    return us.contains(choice.name()) ? us[choice.name()].get<double>() / best : 1.5;  // as slow as what is left out
  }
};

std::vector<Measured> measured_products(const std::string& name = "gemm_choices") {
  std::ifstream file(TMAOPS_SOURCE_DIR "/results/h200/" + name + ".json");
  std::vector<Measured> all;
  const nlohmann::json document = nlohmann::json::parse(file);
  for (const auto& one : document["products"]) {
    if (one["temperature"] != "hot") continue;
    Measured made{.name = one["case"],
                  .problem = problem_of(one["case"], one["dtype"] == "f16" ? DType::f16 : DType::bf16),
                  .us = {}};
    for (const auto& [choice, us] : one["us"].items())
      if (choice.find('/') != std::string::npos) {
        made.us[choice] = us;
        made.best = std::min(made.best, us.get<double>());
      }
    all.push_back(std::move(made));
  }
  return all;
}

DeviceInfo h100() {
  DeviceInfo device = test::made_up_gpu(90);
  device.name = "NVIDIA H100 80GB HBM3";
  return device;
}

class GemmMeasuredChoices : public ::testing::Test {
  const PretendedDevice pretended_{h100()};
};

TEST_F(GemmMeasuredChoices, are_within_three_percent_of_the_best_for_every_product_of_the_map) {
  DeviceInfo h200 = h100();
  h200.name = "NVIDIA H200";
  const auto products = measured_products();
  ASSERT_GE(products.size(), 200U);
  for (const Measured& one : products) {
    const Choice choice = select(one.problem, h200, "", "off");
    EXPECT_LE(one.loss(choice), 1.03) << one.name << ": " << choice.name();
  }
}

/// With bias, activation and residual, by the estimate.
TEST_F(GemmMeasuredChoices, are_near_the_best_for_what_follows_a_product) {
  DeviceInfo h200 = h100();
  h200.name = "NVIDIA H200";
  int compared = 0;
  for (const Measured& one : measured_products("gemm_fused_choices")) {
    if (ops::gemm::is_plain_product(one.problem)) continue;
    const Choice choice = select(one.problem, h200, "", "off");
    EXPECT_LE(one.loss(choice), 1.09) << one.name << ": " << choice.name();
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

TEST_F(GemmMeasuredChoices, serve_an_h100_too) {
  const Problem product = problem_of("RC 1x13824x1024", DType::f16);
  EXPECT_EQ(select(product, h100(), "", "off").name(), "wgmma_cp_async/64x128");
  EXPECT_NE(select(product, test::made_up_gpu(90), "", "off").name(), "wgmma_cp_async/64x128");
}

/// What other GPUs of the architecture and other products get, where that was timed: tiles that cannot win were not.
TEST_F(GemmMeasuredChoices, are_near_the_best_by_the_estimate_alone) {
  const DeviceInfo unknown = test::made_up_gpu(90);
  std::vector<double> losses;
  const auto products = measured_products();
  for (const Measured& one : products)
    if (const Choice choice = select(one.problem, unknown, "", "off"); one.us.contains(choice.name()))
      losses.push_back(one.loss(choice));
  EXPECT_GE(losses.size(), products.size() * 4 / 5);
  std::ranges::sort(losses);
  EXPECT_LE(losses[losses.size() / 2], 1.02);
  EXPECT_LE(losses[losses.size() * 9 / 10], 1.12);
}

TEST_F(GemmMeasuredChoices, yield_to_the_table_of_the_user) {
  const std::string path = ::testing::TempDir() + "gemm_measured_choices.yaml";
  TuningTable table;
  table.set({h100().name, "RC 4096", "f16", "wgmma_persistent/128x176", 200});
  std::ofstream(path) << table.text();
  EXPECT_EQ(select(problem_of("RC 4096", DType::f16), h100(), "", path).name(), "wgmma_persistent/128x176");
}

}  // namespace
}  // namespace tmaops::ops::gemm
