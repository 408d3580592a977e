// The C interface with tensors in memory of a GPU.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "c_api/c_tensors.hpp"
#include "gpu/support.hpp"
#include "tmaops/tmaops.h"

namespace tmaops::c_api_test {
namespace {

constexpr std::int64_t kSize = 128;
constexpr std::size_t kElements = kSize * kSize;

/// A product of two squares of ones, whose elements are all kSize, in device memory.
struct Product {
  test::DeviceArray<float16> a{std::vector<float16>(kElements, float16(1.0F))};
  test::DeviceArray<float> d{kElements};
  const std::int64_t shape[2] = {kSize, kSize};
  tmaops_tensor a_tensor{a.get(), {tmaops_device_cuda, 0}, 2, TMAOPS_F16, shape, nullptr, 0};
  tmaops_tensor d_tensor{d.get(), {tmaops_device_cuda, 0}, 2, TMAOPS_F32, shape, nullptr, 0};

  void expect_right() const { EXPECT_EQ(d.values(), std::vector<float>(kElements, static_cast<float>(kSize))); }
};

TEST(CInterfaceOnGpu, a_call_runs_on_the_given_stream) {
  TMAOPS_NEEDS_GPU();
  const Product product;
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  EXPECT_EQ(tmaops_gemm(&product.a_tensor, &product.a_tensor, &product.d_tensor, nullptr, stream), tmaops_done)
      << tmaops_last_error()->message;
  check_cuda(cudaStreamSynchronize(stream), "gemm");
  product.expect_right();
  cudaStreamDestroy(stream);
}

TEST(CInterfaceOnGpu, a_plan_can_be_captured) {
  TMAOPS_NEEDS_GPU();
  const Product product;
  tmaops_plan* plan = nullptr;
  ASSERT_EQ(tmaops_plan_gemm(&product.a_tensor, &product.a_tensor, &product.d_tensor, nullptr, &plan), tmaops_done)
      << tmaops_last_error()->message;
  struct {
    const tmaops_plan* plan;
    void run(cudaStream_t stream) const { EXPECT_EQ(tmaops_plan_run(plan, stream), tmaops_done); }
  } captured{plan};
  test::replay_captured(captured);
  product.expect_right();
  tmaops_plan_destroy(plan);
}

TEST(CInterfaceOnGpu, managed_memory_is_worked_on_by_its_gpu) {
  TMAOPS_NEEDS_GPU();
  float* values = nullptr;
  check_cuda(cudaMallocManaged(reinterpret_cast<void**>(&values), 12 * sizeof(float)), "managed memory");
  const float given[] = {0, 10, 20, 0, 1, 2, 0.5F, 1.5F, 1};
  std::copy(std::begin(given), std::end(given), values);
  const std::int64_t samples[] = {1, 3, 1};
  const auto tensor = [&](std::uint64_t first, std::int32_t ndim) -> tmaops_tensor {
    return {values, {tmaops_device_cuda_managed, 0}, ndim, TMAOPS_F32, samples, nullptr, first * sizeof(float)};
  };
  const tmaops_tensor rows = tensor(0, 3), source_times = tensor(3, 2), target_times = tensor(6, 2),
                      output = tensor(9, 3);
  EXPECT_EQ(tmaops_resample(&rows, &source_times, &target_times, nullptr, &output, nullptr, nullptr), tmaops_done)
      << tmaops_last_error()->message;
  check_cuda(cudaDeviceSynchronize(), "resample");
  EXPECT_EQ(std::vector<float>(values + 9, values + 12), (std::vector<float>{5, 15, 10}));
  cudaFree(values);
}

TEST(CInterfaceOnGpu, tensors_of_two_devices_are_refused) {
  TMAOPS_NEEDS_GPU();
  const Product product;
  CTensor<float16> b({kSize, kSize});
  expect_failed(tmaops_gemm(&product.a_tensor, b, &product.d_tensor, nullptr, nullptr), tmaops_error_device_mismatch,
                "gemm: b");
}

TEST(CInterfaceOnGpu, attention_and_its_gradients_agree_with_the_host) {
  TMAOPS_NEEDS_GPU();
  const tmaops_level_shape level{2, 2};
  const std::int64_t value_shape[] = {1, 4, 1, 1}, location_shape[] = {1, 1, 1, 1, 1, 2}, output_shape[] = {1, 1, 1};
  const test::DeviceArray<float> pixels(std::vector<float>{1, 2, 3, 4}), middle(std::vector<float>{0.5F, 0.5F});
  const test::DeviceArray<float> two(std::vector<float>{2}), out(1), gradient(4);
  const auto tensor = [](const test::DeviceArray<float>& array, std::int32_t ndim, const std::int64_t* shape) {
    return tmaops_tensor{array.get(), {tmaops_device_cuda, 0}, ndim, TMAOPS_F32, shape, nullptr, 0};
  };
  const tmaops_tensor value = tensor(pixels, 4, value_shape), locations = tensor(middle, 6, location_shape);
  const tmaops_tensor weights = tensor(two, 5, location_shape), output = tensor(out, 3, output_shape);
  const tmaops_tensor grad_output = tensor(two, 3, output_shape), grad_value = tensor(gradient, 4, value_shape);
  const tmaops_ms_deform_attn_gradients gradients{&grad_value, nullptr, nullptr};
  EXPECT_EQ(tmaops_ms_deform_attn(&value, &level, 1, &locations, &weights, &output, nullptr, nullptr), tmaops_done)
      << tmaops_last_error()->message;
  EXPECT_EQ(tmaops_ms_deform_attn_backward(&value, &level, 1, &locations, &weights, &grad_output, &gradients, nullptr,
                                           nullptr),
            tmaops_done)
      << tmaops_last_error()->message;
  EXPECT_EQ(out.values()[0], 5);
  EXPECT_EQ(gradient.values(), (std::vector<float>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace tmaops::c_api_test
