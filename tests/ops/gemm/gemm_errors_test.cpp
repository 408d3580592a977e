// Bad input: a named error that says which argument, nothing written, and the next call right.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "ops/gemm/gemm_case.hpp"
#include "support/expect_error.hpp"

namespace tmaops::test {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62;

class GemmErrors : public ::testing::Test {
 protected:
  GemmErrors() {
    std::mt19937_64 random(1);
    a_.fill_normal(random);
    b_.fill_normal(random);
    c_.fill_normal(random);
    bias_.fill_normal(random);
  }

  /// The call fails as named, D still holds its poison, and a correct call works afterwards.
  template <class... Text>
  void refuses(ErrorCode code, ConstTensorView a, ConstTensorView b, TensorView d, const GemmOptions& options,
               const Text&... pieces) {
    const auto before = d_.bits();
    expect_error(code, [&] { gemm(a, b, d, options); }, pieces...);
    expect_error(code, [&] { (void)plan_gemm(a, b, d, options); }, pieces...);
    EXPECT_EQ(d_.bits(), before) << "D was written";
    Buffer good(DType::f32, {4, 6});
    Buffer want(DType::f32, {4, 6});
    gemm(a_, b_, good);
    gemm(a_, b_, want, {.variant = "reference"});
    expect_close(good, want, 1e-5, 1e-5, "call after the error");
  }

  static ConstTensorView at(const Buffer& buffer, Layout layout) { return {buffer.data(), buffer.dtype(), layout}; }

  Buffer a_{DType::f32, {4, 5}}, b_{DType::f32, {5, 6}}, c_{DType::f32, {4, 6}}, d_{DType::f32, {4, 6}};
  Buffer bias_{DType::f32, {6}};
};

TEST_F(GemmErrors, wrong_ranks_and_extents) {
  refuses(ErrorCode::shape_mismatch, at(a_, Layout::contiguous({20})), b_, d_, {}, "gemm: a", "(M, K)");
  refuses(ErrorCode::shape_mismatch, a_, at(b_, Layout::contiguous({1, 1, 5, 6})), d_, {}, "gemm: b");
  refuses(ErrorCode::shape_mismatch, a_, at(b_, Layout::contiguous({6, 5})), d_, {}, "gemm: b", "(6, 5)", "(5, 6)");
  refuses(ErrorCode::shape_mismatch, at(a_, Layout::contiguous({5, 4})), b_, d_, {}, "gemm: a", "(5, 4)");
  refuses(ErrorCode::shape_mismatch, a_, b_, TensorView(d_.data(), DType::f32, Layout::contiguous({24})), {}, "gemm: d",
          "(M, N)");
  refuses(ErrorCode::shape_mismatch, ConstTensorView(), b_, d_, {}, "gemm: a");
}

TEST_F(GemmErrors, batches_that_do_not_match) {
  const TensorView d(d_.data(), DType::f32, Layout::contiguous({2, 2, 6}));
  refuses(ErrorCode::shape_mismatch, at(a_, Layout::contiguous({3, 2, 2})), b_, d, {}, "gemm: a");
  refuses(ErrorCode::shape_mismatch, at(a_, Layout::contiguous({2, 2, 5})), at(b_, Layout::contiguous({1, 5, 6})), d,
          {}, "gemm: b", "(1, 5, 6)");
  refuses(ErrorCode::shape_mismatch, at(a_, Layout::contiguous({1, 4, 5})), b_, d_, {}, "gemm: a", "3 dimensions");
}

TEST_F(GemmErrors, negative_extents) {
  Layout layout = Layout::contiguous({4, 6});
  layout.shape[0] = -4;
  refuses(ErrorCode::shape_mismatch, a_, b_, TensorView(d_.data(), DType::f32, layout), {}, "gemm: d");
  layout = Layout::contiguous({4, 5});
  layout.shape[1] = -5;
  refuses(ErrorCode::shape_mismatch, at(a_, layout), b_, d_, {}, "gemm: a");
}

TEST_F(GemmErrors, element_types) {
  Buffer f64(DType::f64, {4, 6}), i32(DType::i32, {4, 5}), f16(DType::f16, {5, 6});
  refuses(ErrorCode::unsupported_dtype, a_, b_, f64, {}, "gemm: d", "f64", "f16, bf16, f32");
  refuses(ErrorCode::unsupported_dtype, i32, b_, d_, {}, "gemm: a", "i32");
  refuses(ErrorCode::dtype_mismatch, a_, f16, d_, {}, "gemm: b", "f16", "f32");
  refuses(ErrorCode::unsupported_dtype, a_, b_, d_, {.beta = 1, .c = f64.view()}, "gemm: c");
  refuses(ErrorCode::unsupported_dtype, a_, b_, d_, {.bias = at(i32, Layout::contiguous({6}))}, "gemm: bias");
}

TEST_F(GemmErrors, different_devices) {
  const ConstTensorView on_gpu(b_.data(), DType::f32, Layout::contiguous({5, 6}), Device{DeviceType::cuda, 0});
  refuses(ErrorCode::unsupported_dtype, a_, on_gpu, d_, {}, "gemm: b", "f16, bf16");
  Buffer f16(DType::f16, {5, 6}), a16(DType::f16, {4, 5});
  const ConstTensorView half_on_gpu(f16.data(), DType::f16, Layout::contiguous({5, 6}), Device{DeviceType::cuda, 0});
  refuses(ErrorCode::device_mismatch, a16, half_on_gpu, d_, {}, "gemm: b", "cuda:0", "cpu");
}

TEST_F(GemmErrors, c_and_bias_of_wrong_shape_or_missing) {
  refuses(ErrorCode::shape_mismatch, a_, b_, d_, {.beta = 1, .c = at(c_, Layout::contiguous({6, 4}))}, "gemm: c");
  refuses(ErrorCode::shape_mismatch, a_, b_, d_, {.beta = 0, .c = at(c_, Layout::contiguous({6, 4}))}, "gemm: c");
  refuses(ErrorCode::null_pointer, a_, b_, d_, {.beta = 0.5F}, "gemm: c", "beta = 0.5");
  refuses(ErrorCode::shape_mismatch, a_, b_, d_, {.bias = at(bias_, Layout::contiguous({4}))}, "gemm: bias", "(6");
  refuses(ErrorCode::shape_mismatch, a_, b_, d_, {.bias = bias_.view(), .bias_axis = BiasAxis::row}, "gemm: bias",
          "(4");
}

TEST_F(GemmErrors, outputs_whose_elements_overlap) {
  const auto strided = [&](std::int64_t row, std::int64_t column) {
    return TensorView(d_.data(), DType::f32, Layout::strided({4, 6}, {row, column}));
  };
  refuses(ErrorCode::bad_strides, a_, b_, strided(0, 1), {}, "gemm: d", "(0, 1)");
  refuses(ErrorCode::bad_strides, a_, b_, strided(3, 1), {}, "gemm: d");
  refuses(ErrorCode::bad_strides, at(a_, Layout::contiguous({2, 2, 5})), b_,
          TensorView(d_.data(), DType::f32, Layout::strided({2, 2, 6}, {0, 6, 1})), {}, "gemm: d");
}

TEST_F(GemmErrors, outputs_that_share_memory_with_an_input) {
  Buffer shared(DType::f32, {100});
  const auto part = [&](std::int64_t first, Layout layout) {
    return TensorView(static_cast<float*>(shared.data()) + first, layout);
  };
  std::mt19937_64 random(2);
  shared.fill_normal(random);
  const TensorView d = part(20, Layout::contiguous({4, 6}));
  const auto before = shared.bits();
  refuses(ErrorCode::overlap, part(10, Layout::contiguous({4, 5})), b_, d, {}, "gemm: d", "a uses");
  refuses(ErrorCode::overlap, a_, part(43, Layout::contiguous({5, 6})), d, {}, "gemm: d", "b uses");
  refuses(ErrorCode::overlap, a_, b_, d, {.beta = 1, .c = part(21, Layout::contiguous({4, 6}))}, "gemm: d", "c uses");
  refuses(ErrorCode::overlap, a_, b_, d, {.beta = 1, .c = part(20, Layout::strided({4, 6}, {1, 4}))}, "gemm: d");
  refuses(ErrorCode::overlap, a_, b_, d, {.bias = part(20, Layout::contiguous({6}))}, "gemm: d", "bias uses");
  EXPECT_EQ(shared.bits(), before);
  // Neighbours in one buffer, and C in D's own place, are fine.
  Buffer want(DType::f32, {4, 6});
  gemm(part(0, Layout::contiguous({4, 5})), part(50, Layout::contiguous({5, 6})), want,
       {.beta = 2, .c = d, .variant = "reference"});
  gemm(part(0, Layout::contiguous({4, 5})), part(50, Layout::contiguous({5, 6})), d, {.beta = 2, .c = d});
  for (std::int64_t i = 0; i < 24; ++i) EXPECT_NEAR(shared.get(20 + i), want.get(i), 1e-5);
}

TEST_F(GemmErrors, pointers) {
  refuses(ErrorCode::null_pointer, ConstTensorView(nullptr, DType::f32, Layout::contiguous({4, 5})), b_, d_, {},
          "gemm: a");
  refuses(ErrorCode::null_pointer, a_, b_, TensorView(nullptr, DType::f32, Layout::contiguous({4, 6})), {}, "gemm: d");
  refuses(ErrorCode::misaligned, ConstTensorView(static_cast<char*>(a_.data()) + 2, DType::f32, a_.layout()), b_, d_,
          {}, "gemm: a", "2 past a multiple of 4");
}

TEST_F(GemmErrors, sizes_past_64_bits) {
  refuses(ErrorCode::size_overflow, at(a_, Layout::strided({4, 5}, {kHuge, 1})), b_, d_, {}, "gemm: a");
  Layout layout = Layout::strided({kHuge, kHuge}, {0, 0});
  refuses(ErrorCode::size_overflow, ConstTensorView(a_.data(), DType::f32, Layout::strided({kHuge, 1}, {0, 1})),
          at(b_, Layout::contiguous({1, 6})), TensorView(d_.data(), DType::f32, Layout::strided({kHuge, 6}, {6, 1})),
          {}, "gemm: d");
  refuses(ErrorCode::size_overflow, ConstTensorView(a_.data(), DType::f32, layout), at(b_, layout),
          TensorView(d_.data(), DType::f32, layout), {}, "gemm: a");
}

TEST_F(GemmErrors, enumerators_out_of_range) {
  GemmOptions options;
  options.activation = static_cast<Activation>(9);
  refuses(ErrorCode::bad_parameter, a_, b_, d_, options, "gemm: activation", "9");
  options = {.bias_axis = static_cast<BiasAxis>(2)};
  refuses(ErrorCode::bad_parameter, a_, b_, d_, options, "gemm: bias_axis");
}

TEST_F(GemmErrors, variants_that_do_not_exist) {
  refuses(ErrorCode::unknown_variant, a_, b_, d_, {.variant = "fastest"}, "'fastest'", "blocked, reference");
}

/// Offsets past 2^31 elements and 2^32 bytes: a few rows very far apart, in memory that is never touched between them.
TEST(Gemm, strides_reach_past_two_to_the_31) {
  const std::int64_t stride = (std::int64_t{1} << 31) + 8;  // elements of 2 bytes
  std::unique_ptr<void, void (*)(void*)> memory(std::malloc(static_cast<std::size_t>(stride) * 2 + 64), &std::free);
  if (!memory) GTEST_SKIP() << "no address space for 4 GiB";
  auto* far = static_cast<bfloat16*>(memory.get());
  const TensorView a(far, Layout::strided({2, 3}, {stride, 1}));
  const TensorView d(far + 4, Layout::strided({2, 2}, {stride, 1}));
  Buffer b(DType::bf16, {3, 2});
  for (std::int64_t i = 0; i < 6; ++i) b.set(i, static_cast<double>(i + 1));
  for (const std::string& variant : cpu_variants(2, 2)) {
    for (std::int64_t row = 0; row < 2; ++row)
      for (std::int64_t k = 0; k < 3; ++k) far[row * stride + k] = bfloat16(static_cast<float>(row * 3 + k));
    gemm(a, b, d, {.variant = variant});
    EXPECT_EQ(static_cast<float>(far[4]), 13) << variant;           // 0*1 + 1*3 + 2*5
    EXPECT_EQ(static_cast<float>(far[stride + 5]), 52) << variant;  // 3*2 + 4*4 + 5*6
  }
}

}  // namespace
}  // namespace tmaops::test
