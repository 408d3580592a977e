// A gemm call whose buffers, f64 reference and comparison all live on the GPU, so that thousands of problems take
// seconds. Same cases and same error bound as the CPU's tests (tests/ops/gemm/gemm_case.hpp).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <string>

#include "gpu/support.hpp"
#include "ops/gemm/gemm_case.hpp"
#include "ops/gemm/problem.hpp"

namespace tmaops::test {

/// A tensor of up to three dimensions as the kernels here see it: element (p, i, j) at first + p s0 + i s1 + j s2.
struct DeviceTensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t first = 0;
  std::int64_t extent[3] = {1, 1, 1};
  std::int64_t stride[3] = {0, 0, 0};

  __host__ __device__ std::int64_t size() const { return extent[0] * extent[1] * extent[2]; }
  __device__ std::int64_t at(std::int64_t index) const {
    const std::int64_t j = index % extent[2];
    const std::int64_t i = index / extent[2] % extent[1];
    return first + index / extent[2] / extent[1] * stride[0] + i * stride[1] + j * stride[2];
  }
  __device__ double get(std::int64_t offset) const {
    if (dtype == DType::f16) return static_cast<double>(__half2float(static_cast<const __half*>(data)[offset]));
    if (dtype == DType::bf16)
      return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(data)[offset]));
    return static_cast<double>(static_cast<const float*>(data)[offset]);
  }
  __device__ std::uint32_t bits(std::int64_t offset) const {
    return dtype == DType::f32 ? static_cast<const std::uint32_t*>(data)[offset]
                               : static_cast<const std::uint16_t*>(data)[offset];
  }
  __device__ void set(std::int64_t offset, float value) const {
    if (dtype == DType::f16)
      static_cast<__half*>(data)[offset] = __float2half_rn(value);
    else if (dtype == DType::bf16)
      static_cast<__nv_bfloat16*>(data)[offset] = __float2bfloat16_rn(value);
    else
      static_cast<float*>(data)[offset] = value;
  }
};

/// Device memory that holds one Placement, all bytes 0xFF (NaN) before it is filled. Kept and reused between cases.
class DevicePlaced {
 public:
  DevicePlaced() = default;
  DevicePlaced(const DevicePlaced&) = delete;
  DevicePlaced& operator=(const DevicePlaced&) = delete;
  ~DevicePlaced() { cudaFree(memory_); }

  void place(DType dtype, const Layout& layout, std::int64_t shift) {
    constexpr std::int64_t kAround = 128;  // elements of 0xFF before and behind: what is read there shows
    layout_ = layout;
    const std::int64_t before = (elements_below(layout) + kAround) / 128 * 128 + 128;  // keeps alignment
    tensor_ = {.data = nullptr, .dtype = dtype, .first = before + shift};
    for (int i = 0; i < layout.rank; ++i) {
      tensor_.extent[3 - layout.rank + i] = layout.shape[static_cast<std::size_t>(i)];
      tensor_.stride[3 - layout.rank + i] = layout.strides[static_cast<std::size_t>(i)];
    }
    bytes_ = static_cast<std::size_t>(before + shift + elements_above(layout) + 1 + kAround) * size_of(dtype);
    bytes_ = (bytes_ + 3) / 4 * 4;
    if (bytes_ > capacity_) {
      cudaFree(memory_);
      check_cuda(cudaMalloc(&memory_, 2 * bytes_), "cudaMalloc");
      capacity_ = 2 * bytes_;
    }
    tensor_.data = memory_;
    poison();
  }
  void poison() { check_cuda(cudaMemsetAsync(memory_, 0xFF, bytes_), "poison"); }
  TensorView view() const {
    return {static_cast<char*>(memory_) + static_cast<std::size_t>(tensor_.first) * size_of(tensor_.dtype),
            tensor_.dtype,
            layout_,
            {DeviceType::cuda, 0}};
  }
  const DeviceTensor& tensor() const { return tensor_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Layout layout_;
  DeviceTensor tensor_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;
};

struct Outcome {
  std::uint64_t checksum = 0;  // of the bits of D, any order
  std::int64_t wrong = 0;
  std::int64_t first_wrong = INT64_MAX;
  std::int64_t stray_words = 0;  // written outside the elements of D
};

namespace detail {

__device__ inline std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

__global__ void fill_kernel(DeviceTensor to, std::uint64_t seed) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < to.size(); i += gridDim.x * blockDim.x) {
    const std::int64_t at = to.at(i);  // broadcast elements are written more than once, with one value
    const std::uint64_t random = mix(seed + mix(static_cast<std::uint64_t>(at)));
    const float u = (static_cast<float>(random >> 40) + 1.0F) * 0x1p-24F;
    const float angle = static_cast<float>(random & 0xFFFFFF) * 0x1p-24F;
    to.set(at, sqrtf(-2.0F * logf(u)) * cospif(2.0F * angle));
  }
}

struct Definition {
  DeviceTensor a, b, c, d, bias;
  std::int64_t k = 0;
  double alpha = 1, beta = 0;
  bool has_bias = false, bias_by_column = true;
  Activation activation = Activation::none;
  double rounding = 0, smallest = 0;
};

__device__ inline double exact(Activation activation, double x) {
  if (activation == Activation::relu) return x < 0 ? 0 : x;
  if (activation == Activation::gelu) return x / 2 * erfc(-x * 0.70710678118654752440);
  if (activation == Activation::silu) return x / (1 + exp(-x));
  return x;
}

/// The value of every element of D and how far from it a result may be; see expect_exact_enough.
__global__ void reference_kernel(Definition x, double2* want) {
  for (std::int64_t index = blockIdx.x * blockDim.x + threadIdx.x; index < x.d.size();
       index += gridDim.x * blockDim.x) {
    const std::int64_t j = index % x.d.extent[2];
    const std::int64_t i = index / x.d.extent[2] % x.d.extent[1];
    const std::int64_t p = index / x.d.extent[2] / x.d.extent[1];
    std::int64_t a = x.a.first + p * x.a.stride[0] + i * x.a.stride[1];
    std::int64_t b = x.b.first + p * x.b.stride[0] + j * x.b.stride[2];
    double sum = 0, magnitude = 0;
    for (std::int64_t k = 0; k < x.k; ++k, a += x.a.stride[2], b += x.b.stride[1]) {
      const double product = x.a.get(a) * x.b.get(b);
      sum += product;
      magnitude += fabs(product);
    }
    double value = x.alpha * sum;
    magnitude *= fabs(x.alpha);
    const auto add = [&](double term) {
      value += term;
      magnitude += fabs(term);
    };
    if (x.beta != 0) add(x.beta * x.c.get(x.c.at(index)));
    if (x.has_bias) add(x.bias.get(x.bias.first + (x.bias_by_column ? j : i) * x.bias.stride[2]));
    const double result = exact(x.activation, value);
    double bound = 0x1p-24 * static_cast<double>(x.k + 8) * magnitude;
    if (x.activation != Activation::none) bound = 1.2 * bound + 4e-7 * fmax(1.0, fabs(result));
    bound += 1.001 * x.rounding * (fabs(result) + bound) + x.smallest;
    want[index] = make_double2(result, bound);
  }
}

/// Compares, and then leaves 0xFF where the elements were.
__global__ void compare_kernel(DeviceTensor d, const double2* want, Outcome* outcome) {
  for (std::int64_t index = blockIdx.x * blockDim.x + threadIdx.x; index < d.size(); index += gridDim.x * blockDim.x) {
    const std::int64_t at = d.at(index);
    const double error = fabs(d.get(at) - want[index].x);
    if (!(error <= want[index].y)) {
      atomicAdd(reinterpret_cast<unsigned long long*>(&outcome->wrong), 1ull);
      atomicMin(reinterpret_cast<long long*>(&outcome->first_wrong), static_cast<long long>(index));
    }
    atomicAdd(reinterpret_cast<unsigned long long*>(&outcome->checksum),
              mix(d.bits(at) + (static_cast<std::uint64_t>(index) << 32)));
    if (d.dtype == DType::f32)
      static_cast<std::uint32_t*>(d.data)[at] = 0xFFFFFFFFu;
    else
      static_cast<std::uint16_t*>(d.data)[at] = 0xFFFFu;
  }
}

__global__ void stray_kernel(const std::uint32_t* words, std::int64_t count, Outcome* outcome) {
  for (std::int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    if (words[i] != 0xFFFFFFFFu) atomicAdd(reinterpret_cast<unsigned long long*>(&outcome->stray_words), 1ull);
}

}  // namespace detail

/// Runs cases; keeps its memory between them.
class GemmRunner {
 public:
  /// Fills the inputs of a case and computes what D must be.
  void set(const GemmCase& input) {
    x_ = input;
    a_.place(x_.in, test::place(x_.batch, x_.m, x_.k, x_.a), x_.a.shift);
    b_.place(x_.in, test::place(x_.batch, x_.k, x_.n, x_.b), x_.b.shift);
    c_.place(x_.c_dtype, test::place(x_.batch, x_.m, x_.n, x_.c), x_.c.shift);
    d_.place(x_.out, test::place(x_.batch, x_.m, x_.n, x_.d), x_.d.shift);
    bias_.place(x_.bias.value_or(DType::f32),
                Layout::strided({x_.bias_axis == BiasAxis::column ? x_.n : x_.m}, {x_.bias_stride}), 0);
    fill(a_, 1);
    fill(b_, 2);
    if (x_.beta != 0) fill(x_.c_is_d ? d_ : c_, 3);  // with beta = 0, C stays NaN
    fill(bias_, 4);
    const std::int64_t size = d_.tensor().size();
    if (size > want_size_) {
      cudaFree(want_);
      check_cuda(cudaMalloc(&want_, static_cast<std::size_t>(size) * sizeof(double2)), "cudaMalloc");
      want_size_ = size;
    }
    const detail::Definition definition{.a = a_.tensor(),
                                        .b = b_.tensor(),
                                        .c = (x_.c_is_d ? d_ : c_).tensor(),
                                        .d = d_.tensor(),
                                        .bias = bias_.tensor(),
                                        .k = x_.k,
                                        .alpha = static_cast<double>(x_.alpha),
                                        .beta = static_cast<double>(x_.beta),
                                        .has_bias = x_.bias.has_value(),
                                        .bias_by_column = x_.bias_axis == BiasAxis::column,
                                        .activation = x_.activation,
                                        .rounding = rounding_unit(x_.out),
                                        .smallest = smallest_step(x_.out)};
    if (size > 0) detail::reference_kernel<<<1024, 128>>>(definition, want_);
  }
  /// The case as the operator sees it.
  ops::gemm::Problem problem() const { return ops::gemm::make_problem(a_.view(), b_.view(), d_.view(), options()); }
  /// Poisons D, runs a variant, compares. Throws Error variant_refuses when it does not take the case.
  Outcome run(std::string_view variant, bool dependent) {
    d_.poison();
    if (x_.beta != 0 && x_.c_is_d) fill(d_, 3);
    GemmOptions given = options();
    given.variant = variant;
    given.dependent_launch = dependent;
    gemm(a_.view(), b_.view(), d_.view(), given);
    if (outcome_ == nullptr) check_cuda(cudaMalloc(&outcome_, sizeof(Outcome)), "cudaMalloc");
    Outcome outcome;
    check_cuda(cudaMemcpyAsync(outcome_, &outcome, sizeof outcome, cudaMemcpyHostToDevice), "outcome");
    if (d_.tensor().size() > 0) detail::compare_kernel<<<1024, 128>>>(d_.tensor(), want_, outcome_);
    detail::stray_kernel<<<1024, 128>>>(static_cast<const std::uint32_t*>(d_.tensor().data),
                                        static_cast<std::int64_t>(d_.bytes() / 4), outcome_);
    check_cuda(cudaMemcpy(&outcome, outcome_, sizeof outcome, cudaMemcpyDeviceToHost), variant);
    return outcome;
  }
  ~GemmRunner() {
    cudaFree(want_);
    cudaFree(outcome_);
  }

 private:
  GemmOptions options() const {
    GemmOptions made{.alpha = x_.alpha, .beta = x_.beta, .bias_axis = x_.bias_axis, .activation = x_.activation};
    made.c = x_.c_is_d ? d_.view() : c_.view();
    if (x_.bias) made.bias = bias_.view();
    return made;
  }
  void fill(const DevicePlaced& to, std::uint64_t part) {
    if (to.tensor().size() > 0) detail::fill_kernel<<<512, 128>>>(to.tensor(), x_.seed * 8 + part);
  }

  GemmCase x_;
  DevicePlaced a_, b_, c_, d_, bias_;
  double2* want_ = nullptr;
  std::int64_t want_size_ = 0;
  Outcome* outcome_ = nullptr;
};

}  // namespace tmaops::test
