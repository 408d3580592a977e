// Which peers a case has, and how a product is put to a column-major library.
#include "bench/peers/peers.hpp"

#include <gtest/gtest.h>

#include "bench/peers/cublas_library.hpp"
#include "bench/workloads/element.hpp"
#include "support/expect_error.hpp"

namespace tmaops::bench {
namespace {

std::unique_ptr<Workload> product(const std::string& mode,
                                  const std::vector<std::pair<std::string, std::string>>& more) {
  Settings settings("gemm", {"c.yaml", 1, 1});
  settings.add({"case", mode + " 5x3x7", {"c.yaml", 1, 1}, false});
  settings.add({"dtype", "f32", {"c.yaml", 1, 1}, false});
  for (const auto& [name, value] : more) settings.add({name, value, {"c.yaml", 1, 1}, false});
  return make_workload(settings, {});
}

/// What cublasGemmEx does with these arguments.
void column_major_gemm(const cublas::Product& p, const float* first, const float* second, float* result) {
  for (int j = 0; j < p.columns; ++j) {
    for (int i = 0; i < p.rows; ++i) {
      double sum = 0;
      for (int k = 0; k < p.inner; ++k)
        sum += static_cast<double>(first[p.transpose_b != 0 ? i * p.leading_b + k : k * p.leading_b + i]) *
               static_cast<double>(second[p.transpose_a != 0 ? k * p.leading_a + j : j * p.leading_a + k]);
      result[j * p.leading_d + i] = static_cast<float>(sum);
    }
  }
}

TEST(CublasProduct, is_ours_in_every_mode) {
  for (const char* mode : {"RC", "CR", "RR", "CC"}) {
    const auto workload = product(mode, {});
    workload->prepare(1, 1);
    workload->make_reference(1, 0);
    workload->poison(0);
    const auto data = [&](const char* name) { return static_cast<float*>(workload->tensor(name, 0).data); };
    column_major_gemm(cublas::product_of(*workload), data("b"), data("a"), data("d"));
    const Comparison result = workload->check(0, 0);
    EXPECT_TRUE(result.ok) << mode << ": " << result.problem;
  }
}

TEST(CublasProduct, is_refused_with_what_the_peer_does_not_do) {
  for (const auto& more : std::vector<std::pair<std::string, std::string>>{
           {"bias", "row"}, {"activation", "relu"}, {"beta", "0.5"}, {"alpha", "2"}, {"batch", "2"}})
    test::expect_error(
        ErrorCode::variant_refuses, [&] { cublas::product_of(*product("RC", {more})); }, "a plain product");
}

TEST(Peers, are_those_of_the_operator_and_device) {
  const auto names = [](const char* op, DeviceType type) {
    std::string all;
    for (const std::string_view peer : peer_names())
      if (Peers::applies(peer, {.op = op, .device = {type, 0}})) all += (all.empty() ? "" : " ") + std::string(peer);
    return all;
  };
  EXPECT_EQ(names("gemm", DeviceType::cpu), "copy onednn torch_eager torch_compile");
  EXPECT_EQ(names("gemm", DeviceType::cuda),
            "copy empty cublas cublaslt cutlass cute_v1 cute_v2 torch_eager torch_compile");
  EXPECT_EQ(names("resample", DeviceType::cpu), "copy torch_eager torch_compile numpy");
  EXPECT_EQ(names("resample", DeviceType::cuda), "copy empty torch_eager torch_compile");
  EXPECT_EQ(names("ms_deform_attn_backward", DeviceType::cpu), "copy grid_sample torch_compile");
  EXPECT_EQ(names("ms_deform_attn", DeviceType::cpu), "copy grid_sample separate_steps torch_compile");
  EXPECT_EQ(names("ms_deform_attn", DeviceType::cuda),
            "copy empty gather grid_sample deformops_triton deformops_cuda triton separate_steps torch_compile");
  EXPECT_EQ(names("tile_load", DeviceType::cuda), "copy empty");
}

}  // namespace
}  // namespace tmaops::bench
