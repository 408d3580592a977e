// Random problems of ms_deform_attn: shapes, layouts, types, and locations at the places that matter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ops/ms_deform_attn/problem.hpp"
#include "ops/ms_deform_attn/shared/half_arithmetic.hpp"
#include "support/buffers.hpp"

namespace tmaops::test {

struct Shape {
  std::int64_t batch = 2;
  std::int64_t heads = 2;
  std::int64_t channels = 8;
  std::int64_t queries = 5;
  std::vector<LevelShape> levels{{8, 16}, {4, 4}};
  std::int64_t points = 3;             // per level, when points_per_level is empty
  std::vector<std::int32_t> ragged{};  // points of each level
  DType value_dtype = DType::f32;
  DType location_dtype = DType::f32;
  DType weight_dtype = DType::f32;
  Sampling sampling = Sampling::bilinear;
  bool f32_output = false;    // beside 16-bit values
  bool strided = false;       // permuted and padded layouts
  bool odd_locations = true;  // NaN, infinities, far outside, exact borders among them

  std::int64_t length() const {
    std::int64_t sum = 0;
    for (const LevelShape& level : levels) sum += level.height * level.width;
    return sum;
  }
  DType output_dtype() const { return f32_output && size_of(value_dtype) == 2 ? DType::f32 : value_dtype; }
};

/// A layout of this shape whose dimensions lie in random order with gaps between them.
inline Layout scattered(const std::vector<std::int64_t>& shape, std::mt19937_64& random, bool keep_last_dense) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), keep_last_dense ? order.end() - 1 : order.end(), random);
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = keep_last_dense ? 1 : 1 + static_cast<std::int64_t>(random() % 2);
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride = stride * shape[order[i]] + static_cast<std::int64_t>(random() % 3);
  }
  return Layout::strided(shape, strides);
}

inline bool is_power_of_two(std::int64_t n) { return (n & (n - 1)) == 0; }

/// The tensors of a problem, filled.
class Case {
 public:
  Case(const Shape& shape, std::uint64_t seed)
      : shape_(shape),
        random_(seed),
        value_(shape.value_dtype, layout({shape.batch, shape.length(), shape.heads, shape.channels})),
        locations_(shape.location_dtype, point_layout(true)),
        weights_(shape.weight_dtype, point_layout(false)),
        output_layout_(layout({shape.batch, shape.queries, shape.heads * shape.channels})) {
    value_.fill_normal(random_);
    weights_.fill_uniform(random_, -0.2, 1.0);
    const std::int64_t rows = shape.batch * shape.queries * shape.heads;
    std::int64_t index = 0;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::size_t l = 0; l < shape.levels.size(); ++l)
        for (std::int64_t p = 0; p < points_of(l); ++p, index += 2) {
          set_coordinate(index, shape.levels[l].width);
          set_coordinate(index + 1, shape.levels[l].height);
        }
  }

  const Shape& shape() const { return shape_; }
  Buffer& value() { return value_; }
  Buffer& locations() { return locations_; }
  Buffer& weights() { return weights_; }
  std::mt19937_64& random() { return random_; }
  std::int64_t points_of(std::size_t level) const {
    return shape_.ragged.empty() ? shape_.points : shape_.ragged[level];
  }
  /// An output full of NaN.
  Buffer output() const { return {shape_.output_dtype(), output_layout_}; }

  MsDeformAttnOptions options(std::string_view variant = {}) const {
    return {.points_per_level = shape_.ragged, .sampling = shape_.sampling, .variant = std::string(variant)};
  }
  void forward(Buffer& output, std::string_view variant) const {
    ms_deform_attn(value_, shape_.levels, locations_, weights_, output, options(variant));
  }
  void backward(const Buffer& grad_output, const MsDeformAttnGradients& gradients, std::string_view variant) const {
    ms_deform_attn_backward(value_, shape_.levels, locations_, weights_, grad_output, gradients, options(variant));
  }
  Buffer reference() const {
    Buffer want = output();
    forward(want, "reference");
    return want;
  }
  ops::ms_deform_attn::Problem problem(Buffer& output) const {
    return ops::ms_deform_attn::make_problem(value_, shape_.levels, locations_, weights_, output, options());
  }
  /// For a variant's own functions.
  ops::ms_deform_attn::Arguments arguments(Buffer& output) const {
    return {.value = value_, .sampling_locations = locations_, .attention_weights = weights_, .output = output};
  }
  std::string text() const {
    Buffer out = output();
    return problem(out).text();
  }

 private:
  Layout layout(const std::vector<std::int64_t>& extents) {
    return shape_.strided ? scattered(extents, random_, random_() % 4 != 0) : Layout::contiguous(extents);
  }
  Layout point_layout(bool locations) {
    std::vector<std::int64_t> extents{shape_.batch, shape_.queries, shape_.heads};
    if (shape_.ragged.empty()) {
      extents.push_back(static_cast<std::int64_t>(shape_.levels.size()));
      extents.push_back(shape_.points);
    } else {
      extents.push_back(std::accumulate(shape_.ragged.begin(), shape_.ragged.end(), std::int64_t{0}));
    }
    if (locations) extents.push_back(2);
    return layout(extents);
  }

  /// A coordinate along a side. Where the side is a power of two, multiples of an eighth of a pixel, borders among
  /// them: these are exact in every type. Elsewhere away from whole pixels, where f32 and f64 could fall on two sides.
  void set_coordinate(std::int64_t index, std::int64_t side) {
    if (shape_.odd_locations && random_() % 16 == 0) {
      constexpr double kOdd[] = {std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 1e30,
                                 -1e30,
                                 -0.0};
      // 1e30 is infinite in f16: then it is skipped as such.
      locations_.set(index, kOdd[random_() % 6]);
      if (is_power_of_two(side) || locations_.get(index) != 0) return;
    }
    const auto size = static_cast<double>(side);
    if (is_power_of_two(side) && side <= 16) {
      const auto eighths = static_cast<double>(random_() % static_cast<std::uint64_t>(8 * (side + 3))) - 12;
      locations_.set(index, (eighths / 8 + 0.5) / size);
      return;
    }
    std::uniform_real_distribution<double> uniform(-0.15, 1.15);
    for (;;) {
      locations_.set(index, uniform(random_));
      const double pixel = locations_.get(index) * size - 0.5;
      if (std::abs(pixel - std::round(pixel)) > 1e-3) return;
    }
  }

  Shape shape_;
  std::mt19937_64 random_;
  Buffer value_;
  Buffer locations_;
  Buffer weights_;
  Layout output_layout_;
};

/// Rounding of one element of this type, relative.
inline double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 1e-13;
    case DType::f16:
      return 1.1e-3;
    case DType::bf16:
      return 8.5e-3;
    default:
      return 1e-6;
  }
}

/// Against the reference: the arithmetic's rounding, a few f32 steps per point, and one rounding of the stored type.
inline void expect_forward(const Buffer& got, const Buffer& want, const std::string& what) {
  const bool f64 = got.dtype() == DType::f64;
  expect_close(got, want, epsilon(got.dtype()), f64 ? 1e-12 : 5e-5, what.c_str());
}
/// A variant that computes in f16: its error as a whole (Frobenius) stays below what f16 arithmetic leaves, and no
/// element is off by more than ten times that part of the root mean square.
inline void expect_half_forward(const Buffer& got, const Buffer& want, double allowed, const std::string& what) {
  ASSERT_EQ(got.layout().size(), want.layout().size());
  EXPECT_TRUE(got.canaries_intact()) << what << ": wrote outside the output";
  double difference = 0;
  double norm = 0;
  double largest = 0;
  for (std::int64_t i = 0; i < got.layout().size(); ++i) {
    const double a = got.get(i);
    const double b = want.get(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) {
      if (std::isfinite(b)) norm += b * b;
      continue;
    }
    ASSERT_TRUE(std::isfinite(a) && std::isfinite(b)) << what << ": element " << i << ": got " << a << ", want " << b;
    difference += (a - b) * (a - b);
    norm += b * b;
    largest = std::max(largest, std::abs(a - b));
  }
  EXPECT_LE(std::sqrt(difference), allowed * std::sqrt(norm)) << what;
  EXPECT_LE(largest, 10 * allowed * std::sqrt(norm / static_cast<double>(got.layout().size()))) << what;
}
/// Any variant of the forward pass.
inline void expect_forward_of(std::string_view variant, const ops::ms_deform_attn::Problem& problem, const Buffer& got,
                              const Buffer& want, const std::string& what) {
  if (ops::ms_deform_attn::computes_in_f16(variant))
    expect_half_forward(got, want, ops::ms_deform_attn::half_arithmetic_error(problem), what);
  else
    expect_forward(got, want, what);
}
inline void expect_gradient(const Buffer& got, const Buffer& want, bool f64, const std::string& what) {
  expect_close(got, want, std::max(epsilon(got.dtype()), f64 ? 0.0 : 1e-4), f64 ? 1e-11 : 1e-3, what.c_str());
}

/// Names of the CPU variants of a table that this build has, for parametrised tests.
template <class Table>
std::vector<std::string> cpu_variants(const Table& table) {
  std::vector<std::string> names;
  for (const auto& variant : table)
    if (variant.built() && variant.device == DeviceType::cpu) names.emplace_back(variant.name);
  return names;
}

/// Whether the named variant takes the problem; a refusal must say why.
template <class Table, class Problem>
bool takes(const Table& table, const Problem& problem, const std::string& name) {
  for (const auto& variant : table)
    if (variant.name == name) {
      const Support support = try_variant(variant, problem, DeviceInfo{});
      EXPECT_TRUE(support.ok || !support.reason.empty()) << name << " refuses without a reason";
      return support.ok;
    }
  ADD_FAILURE() << "no variant " << name;
  return false;
}

}  // namespace tmaops::test
