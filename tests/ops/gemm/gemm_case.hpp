// A gemm call with buffers of any layout around it, and what it must give, computed here in f64 with an error bound.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/buffers.hpp"
#include "tmaops/gemm.hpp"
#include "tmaops/registry.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::test {

/// How far a layout reaches from its first element downwards (negative strides) and upwards, in elements.
inline std::int64_t elements_reached(const Layout& layout, int sign) {
  std::int64_t reach = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(layout.rank); ++i)
    if (layout.shape[i] > 0 && layout.strides[i] * sign > 0) reach += (layout.shape[i] - 1) * layout.strides[i] * sign;
  return reach;
}
inline std::int64_t elements_below(const Layout& layout) { return elements_reached(layout, -1); }
inline std::int64_t elements_above(const Layout& layout) { return elements_reached(layout, 1); }

/// A matrix or vector somewhere in a buffer of NaN between canaries; strides may be negative or 0.
class Placed {
 public:
  Placed(DType dtype, const Layout& layout, std::int64_t shift)
      : layout_(layout),
        first_(kAfter + shift + elements_below(layout)),
        storage_(dtype, {2 * kAfter + shift + elements_below(layout) + elements_above(layout)}) {}

  ConstTensorView view() const { return {address(), storage_.dtype(), layout_}; }
  TensorView view() { return {const_cast<void*>(address()), storage_.dtype(), layout_}; }
  const Layout& layout() const { return layout_; }
  std::int64_t at(std::int64_t batch, std::int64_t i, std::int64_t j) const {
    const auto last = static_cast<std::size_t>(layout_.rank - 1);
    std::int64_t offset = first_ + j * layout_.strides[last];
    if (last > 0) offset += i * layout_.strides[last - 1];
    if (last > 1) offset += batch * layout_.strides[0];
    return offset;
  }
  double get(std::int64_t batch, std::int64_t i, std::int64_t j) const { return storage_.get(at(batch, i, j)); }
  void set(std::int64_t batch, std::int64_t i, std::int64_t j, double x) { storage_.set(at(batch, i, j), x); }
  Buffer& storage() { return storage_; }

  /// Calls fn(batch, i, j) for every element.
  template <class Fn>
  void each(const Fn& fn) const {
    const auto extent = [&](int from_last) {
      return layout_.rank > from_last ? layout_.shape[static_cast<std::size_t>(layout_.rank - 1 - from_last)] : 1;
    };
    for (std::int64_t b = 0; b < extent(2); ++b)
      for (std::int64_t i = 0; i < extent(1); ++i)
        for (std::int64_t j = 0; j < extent(0); ++j) fn(b, i, j);
  }
  Placed& fill_normal(std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    each([&](std::int64_t b, std::int64_t i, std::int64_t j) { set(b, i, j, normal(random)); });
    return *this;
  }
  /// Whether nothing but the elements themselves was written since the buffer was made.
  bool gaps_untouched() const {
    Placed copy = *this;
    each([&](std::int64_t b, std::int64_t i, std::int64_t j) {
      const std::size_t size = size_of(storage_.dtype());
      std::memset(static_cast<char*>(copy.storage_.data()) + static_cast<std::size_t>(at(b, i, j)) * size, 0xFF, size);
    });
    const auto bits = copy.storage_.bits();
    return storage_.canaries_intact() && std::all_of(bits.begin(), bits.end(), [](auto byte) { return byte == 0xFF; });
  }

 private:
  const void* address() const {
    return static_cast<const char*>(storage_.data()) + static_cast<std::size_t>(first_) * size_of(storage_.dtype());
  }

  static constexpr std::int64_t kAfter = 40;  // NaN before and behind the elements: what is read there shows

  Layout layout_;
  std::int64_t first_;  // element of the storage that index (0, 0, 0) is
  Buffer storage_;
};

/// How one matrix of a case is laid out.
struct Placement {
  bool column_major = false;
  std::int64_t padding = 0;  // extra elements between rows (or columns)
  std::int64_t step = 1;     // distance of neighbours: above 1 neither index is contiguous
  bool reversed = false;     // rows run backwards
  bool broadcast = false;    // batch stride 0
  std::int64_t shift = 0;    // elements before the first one: alignment to the element size only
};

struct GemmCase {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t batch = 0;  // 0: tensors of two dimensions
  DType in = DType::f32, out = DType::f32;
  Placement a{}, b{}, c{}, d{};
  float alpha = 1.0F, beta = 0.0F;
  bool c_is_d = false;
  DType c_dtype = DType::f32;
  std::optional<DType> bias{};
  BiasAxis bias_axis = BiasAxis::column;
  std::int64_t bias_stride = 1;
  Activation activation = Activation::none;
  std::uint64_t seed = 1;
};

inline Layout place(std::int64_t batch, std::int64_t rows, std::int64_t columns, const Placement& placement) {
  std::int64_t row = 0;
  std::int64_t column = 0;
  (placement.column_major ? row : column) = placement.step;
  (placement.column_major ? column : row) =
      (placement.column_major ? rows : columns) * placement.step + placement.padding;
  const std::int64_t matrix =
      std::max<std::int64_t>(1, placement.column_major ? columns * column : rows * row) + placement.padding;
  if (placement.reversed) row = -row;
  if (batch == 0) return Layout::strided({rows, columns}, {row, column});
  return Layout::strided({batch, rows, columns}, {placement.broadcast ? 0 : matrix, row, column});
}

inline std::string describe(const GemmCase& x) {
  const auto placement = [](const Placement& p) {
    return std::string(p.column_major ? "C" : "R") + "+" + std::to_string(p.padding) + "*" + std::to_string(p.step) +
           (p.reversed ? " reversed" : "") + (p.broadcast ? " broadcast" : "") + " shift " + std::to_string(p.shift);
  };
  return std::to_string(x.m) + "x" + std::to_string(x.n) + "x" + std::to_string(x.k) + " batch " +
         std::to_string(x.batch) + " " + std::string(to_string(x.in)) + "->" + std::string(to_string(x.out)) + " A " +
         placement(x.a) + ", B " + placement(x.b) + ", D " + placement(x.d) + ", alpha " + std::to_string(x.alpha) +
         ", beta " + std::to_string(x.beta) +
         (x.beta != 0 ? x.c_is_d ? " C is D" : " C " + std::string(to_string(x.c_dtype)) + " " + placement(x.c) : "") +
         (x.bias ? " bias " + std::string(to_string(*x.bias)) + " " + std::string(to_string(x.bias_axis)) : "") + " " +
         std::string(to_string(x.activation)) + " seed " + std::to_string(x.seed);
}

/// The buffers of a case.
struct GemmBuffers {
  GemmCase x;
  Placed a, b, c, d, bias;

  explicit GemmBuffers(const GemmCase& input)
      : x(input),
        a(x.in, place(x.batch, x.m, x.k, x.a), x.a.shift),
        b(x.in, place(x.batch, x.k, x.n, x.b), x.b.shift),
        c(x.c_dtype, place(x.batch, x.m, x.n, x.c), x.c.shift),
        d(x.out, place(x.batch, x.m, x.n, x.d), x.d.shift),
        bias(x.bias.value_or(DType::f32),
             Layout::strided({x.bias_axis == BiasAxis::column ? x.n : x.m}, {x.bias_stride}), 0) {
    std::mt19937_64 random(x.seed);
    a.fill_normal(random);
    b.fill_normal(random);
    if (x.beta != 0) (x.c_is_d ? d : c).fill_normal(random);  // with beta = 0, C stays NaN
    bias.fill_normal(random);
  }
  GemmOptions options(std::string_view variant) {
    GemmOptions options{.alpha = x.alpha, .beta = x.beta, .bias_axis = x.bias_axis, .activation = x.activation};
    options.c = x.c_is_d ? ConstTensorView(d.view()) : ConstTensorView(c.view());
    if (x.bias) options.bias = bias.view();
    options.variant = variant;
    return options;
  }
  void run(std::string_view variant) { gemm(a.view(), b.view(), d.view(), options(variant)); }
};

/// act(value) in f64.
inline double exact_activation(Activation activation, double x) {
  if (activation == Activation::relu) return x < 0 ? 0 : x;
  if (activation == Activation::gelu) return x / 2 * std::erfc(-x / std::numbers::sqrt2);
  if (activation == Activation::silu) return x / (1 + std::exp(-x));
  return x;
}

/// Largest relative error of one rounding to a type, and the spacing of its subnormals.
inline double rounding_unit(DType dtype) {
  return dtype == DType::f32 ? 0x1p-24 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
}
inline double smallest_step(DType dtype) {
  return dtype == DType::f32 ? 0x1p-149 : dtype == DType::f16 ? 0x1p-24 : 0x1p-133;
}

/// Every element of D in f64, in the order of Placed::each, and how far from it a result may be: the bound of any f32
/// summation order, (K + 8) 2^-24 times the sum of magnitudes, then one rounding to D's type. A second rounding would
/// break it.
struct Exact {
  std::vector<double> want, bound;

  explicit Exact(const GemmBuffers& inputs) {
    const GemmCase& x = inputs.x;
    std::vector<double> a, b;  // a row of A, and the columns of B behind each other: read once, summed often
    inputs.d.each([&](std::int64_t p, std::int64_t i, std::int64_t j) {
      if (j == 0) {
        a.clear();
        for (std::int64_t k = 0; k < x.k; ++k) a.push_back(inputs.a.get(p, i, k));
      }
      if (i == 0) {
        if (j == 0) b.clear();
        for (std::int64_t k = 0; k < x.k; ++k) b.push_back(inputs.b.get(p, k, j));
      }
      const double* column = b.data() + j * x.k;
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < x.k; ++k) {
        const double product = a.data()[k] * column[k];
        sum += product;
        magnitude += std::abs(product);
      }
      double value = static_cast<double>(x.alpha) * sum;
      magnitude *= std::abs(static_cast<double>(x.alpha));
      if (x.beta != 0) {
        const double term = static_cast<double>(x.beta) * (x.c_is_d ? inputs.d : inputs.c).get(p, i, j);
        value += term;
        magnitude += std::abs(term);
      }
      if (x.bias) {
        const double term = inputs.bias.get(0, 0, x.bias_axis == BiasAxis::column ? j : i);
        value += term;
        magnitude += std::abs(term);
      }
      want.push_back(exact_activation(x.activation, value));
      const double size = std::abs(want.back());
      double far = 0x1p-24 * static_cast<double>(x.k + 8) * magnitude;
      if (x.activation != Activation::none) far = 1.2 * far + 4e-7 * std::max(1.0, size);
      bound.push_back(far + 1.001 * rounding_unit(x.out) * (size + far) + smallest_step(x.out));
    });
  }
};

inline void expect_exact_enough(GemmBuffers& result, const Exact& exact, const std::string& what) {
  std::int64_t failures = 0;
  std::size_t at = 0;
  result.d.each([&](std::int64_t p, std::int64_t i, std::int64_t j) {
    const double got = result.d.get(p, i, j);
    const double want = exact.want[at];
    const double bound = exact.bound[at++];
    if (std::abs(got - want) <= bound || failures++ > 0) return;
    ADD_FAILURE() << what << ": D[" << p << ", " << i << ", " << j << "] is " << got << ", want " << want << " within "
                  << bound << "\n"
                  << describe(result.x);
  });
  EXPECT_TRUE(result.d.gaps_untouched()) << what << ": wrote between or around the elements of D\n"
                                         << describe(result.x);
}

/// Names of the CPU variants of this build that take a product of m x n.
inline std::vector<std::string> cpu_variants(std::int64_t m, std::int64_t n) {
  std::vector<std::string> names;
  for (const VariantInfo& variant : variants("gemm"))
    if (variant.built && variant.device == DeviceType::cpu && (variant.name != "few_rows" || std::min(m, n) <= 8))
      names.emplace_back(variant.name);
  return names;
}

/// Runs a case with every CPU variant: right, the same bits again and for another number of threads.
inline void check_case(const GemmCase& x) {
  const GemmBuffers inputs(x);
  const Exact exact(inputs);
  for (const std::string& variant : cpu_variants(x.m, x.n)) {
    std::optional<std::vector<unsigned char>> bits;
    for (const int threads : {1, 3, 3}) {
      set_num_threads(threads);
      GemmBuffers buffers = inputs;
      buffers.run(variant);
      if (!bits)
        expect_exact_enough(buffers, exact, variant);
      else
        EXPECT_EQ(*bits, buffers.d.storage().bits()) << variant << " gives other bits with " << threads << " threads\n"
                                                     << describe(x);
      bits = buffers.d.storage().bits();
    }
    set_num_threads(0);
  }
}

}  // namespace tmaops::test
