// Every forward variant: the definition on small cases worked by hand, non-finite data, borders, layouts, 64-bit
// offsets, threads.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ops/ms_deform_attn/case.hpp"
#include "support/expect_error.hpp"
#include "tmaops/threads.hpp"

namespace tmaops::test {
namespace {

namespace forward = ops::ms_deform_attn;

class Forward : public testing::TestWithParam<std::string> {
 protected:
  /// False when the variant refuses the case.
  bool takes_case(const Case& c) const {
    Case copy = c;
    Buffer out = copy.output();
    return takes(
        forward::variants(),
        forward::make_problem(copy.value(), c.shape().levels, copy.locations(), copy.weights(), out, c.options()),
        GetParam());
  }
  bool takes_sampling(Sampling sampling) const { return takes_case(Case({.channels = 16, .sampling = sampling}, 1)); }
  void expect_reference(const Case& c) const {
    if (!takes_case(c)) return;
    Buffer got = c.output();
    c.forward(got, GetParam());
    expect_forward(got, c.reference(), GetParam() + " on " + c.text());
  }
};

INSTANTIATE_TEST_SUITE_P(Variants, Forward, testing::ValuesIn(cpu_variants(forward::variants())),
                         [](const auto& test) { return test.param; });

/// One level, one point: value[row * width + column], the same in every channel, sampled at a pixel coordinate. As many
/// channels as the variants with whole vectors want.
double sample_at(const std::string& variant, LevelShape level, const std::vector<float>& value, float column, float row,
                 Sampling sampling = Sampling::bilinear) {
  const std::vector<float> location{(column + 0.5F) / static_cast<float>(level.width),
                                    (row + 0.5F) / static_cast<float>(level.height)};
  const float weight = 2.0F;
  constexpr std::int64_t kChannels = 16;
  std::vector<float> channels;
  for (const float x : value) channels.insert(channels.end(), kChannels, x);
  std::vector<float> output(kChannels, -1.0F);
  ms_deform_attn(view(channels.data(), {1, level.height * level.width, 1, kChannels}), std::array{level},
                 view(location.data(), {1, 1, 1, 1, 1, 2}), view(&weight, {1, 1, 1, 1, 1}),
                 view(output.data(), {1, 1, kChannels}), {.sampling = sampling, .variant = variant});
  for (const float x : output) EXPECT_TRUE(x == output.front() || (std::isnan(x) && std::isnan(output.front())));
  return output.front();
}

TEST_P(Forward, interpolates_between_four_pixels) {
  const std::vector<float> value{1, 2, 10, 20};
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, 0, 0), 2 * 1);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, 1, 0), 2 * 2);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, 0.5, 0), 2 * 1.5);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, 0, 0.25), 2 * 3.25);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, 0.5, 0.5), 2 * 8.25);
}

TEST_P(Forward, fades_to_zero_over_one_pixel_outside) {
  const std::vector<float> value{1, 2, 10, 20};
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, -0.5, 0), 2 * 0.5);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, -1, 0), 0);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, 1.75, 1), 2 * 5);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, 2, 1), 0);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, 1, 1.5), 2 * 10);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, value, -0.5, -0.5), 2 * 0.25);
  EXPECT_EQ(sample_at(GetParam(), {1, 1}, {8}, -0.5, 0.5), 2 * 2);
}

TEST_P(Forward, nearest_takes_the_pixel_of_the_discrete_method) {
  if (!takes_sampling(Sampling::nearest)) GTEST_SKIP() << GetParam() << " refuses nearest";
  // floor(x * width + 1/2), clamped: at the pixel coordinate c that is floor(c + 1).
  const std::vector<float> value{1, 2, 3, 4};
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, -0.5, 0, Sampling::nearest), 2 * 1);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 0.25, 0, Sampling::nearest), 2 * 2);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 1.75, 0, Sampling::nearest), 2 * 3);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 17, 0, Sampling::nearest), 2 * 4);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, -17, 0, Sampling::nearest), 2 * 1);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 1e30F, -1e30F, Sampling::nearest), 2 * 4);
}

TEST_P(Forward, skips_locations_that_are_not_finite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Sampling sampling : {Sampling::bilinear, Sampling::nearest})
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      if (!takes_sampling(sampling)) continue;
      EXPECT_EQ(sample_at(GetParam(), {2, 2}, {1, 2, 3, 4}, bad, 0, sampling), 0);
      EXPECT_EQ(sample_at(GetParam(), {2, 2}, {1, 2, 3, 4}, 0, bad, sampling), 0);
    }
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, {1, 2, 3, 4}, 1e30F, 0), 0);
  EXPECT_EQ(sample_at(GetParam(), {2, 2}, {1, 2, 3, 4}, 0, -1e30F), 0);
}

TEST_P(Forward, non_finite_values_go_only_to_outputs_that_sample_them) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> value{1, kNan, kInfinity, 4};
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 0, 0), 2);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 3, 0), 8);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 3.5, 0), 4);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, -0.5, 0), 1);
  EXPECT_TRUE(std::isnan(sample_at(GetParam(), {1, 4}, value, 0.125, 0)));
  EXPECT_TRUE(std::isnan(sample_at(GetParam(), {1, 4}, value, 1, 0)));
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 2, 0), kInfinity);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 2.5, 0.5), kInfinity);
  EXPECT_EQ(sample_at(GetParam(), {1, 1}, {kInfinity}, 0.5, -0.5), kInfinity);
  EXPECT_EQ(sample_at(GetParam(), {1, 1}, {kInfinity}, 1, 0), 0);
  EXPECT_EQ(sample_at(GetParam(), {1, 4}, value, 7, 0), 0);

  for (int i = 0; i < 8; ++i) {
    const DType dtype = std::array{DType::f64, DType::f32, DType::f16, DType::bf16}[static_cast<std::size_t>(i) / 2];
    const std::int64_t width = i % 2 == 0 ? 32 : 33;
    Case c({.channels = width, .queries = 64, .levels = {{8, 8}, {2, 4}}, .value_dtype = dtype}, 5);
    for (int k = 0; k < 40; ++k) {
      const auto at = static_cast<std::int64_t>(c.random()() % static_cast<std::uint64_t>(c.value().layout().size()));
      c.value().set(at, k % 2 ? kNan : k % 4 ? kInfinity : -kInfinity);
    }
    const Buffer want = c.reference();
    std::int64_t finite = 0;
    for (const double x : want.values()) finite += std::isfinite(x);
    EXPECT_GT(finite, want.layout().size() / 2);
    EXPECT_LT(finite, want.layout().size());
    expect_reference(c);
  }
}

TEST_P(Forward, the_output_may_be_f32_beside_16_bit_values) {
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const std::int64_t channels : {1, 7, 16, 32, 40, 71})
      for (const Sampling sampling : {Sampling::bilinear, Sampling::nearest})
        expect_reference(
            Case({.channels = channels, .value_dtype = dtype, .sampling = sampling, .f32_output = true}, 6));
}

TEST_P(Forward, non_finite_weights_give_non_finite_outputs) {
  Case c({.channels = 16, .levels = {{4, 4}}, .points = 1, .odd_locations = false}, 8);
  c.locations().fill([] { return 0.4; });
  c.weights().fill([] { return std::numeric_limits<double>::infinity(); });
  Buffer got = c.output();
  c.forward(got, GetParam());
  for (const double x : got.values()) EXPECT_FALSE(std::isfinite(x));
}

TEST_P(Forward, takes_every_number_of_channels) {
  for (const std::int64_t channels :
       {1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 30, 31, 32, 33, 48, 63, 64, 71, 96, 100, 1025})
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      expect_reference(Case({.channels = channels, .value_dtype = dtype}, 1));
}

TEST_P(Forward, takes_every_number_of_points_and_levels) {
  for (const std::int64_t points : {1, 2, 5, 8, 15, 16, 17, 33, 130})
    for (const std::size_t levels : {1U, 2U, 3U, 5U})
      for (const std::int64_t channels : {5, 16}) {
        Shape shape{.channels = channels, .queries = 3, .points = points};
        shape.levels.assign(levels, {3, 5});
        expect_reference(Case(shape, static_cast<std::uint64_t>(points)));
      }
}

TEST_P(Forward, takes_points_of_sixteen_bits) {
  for (const DType value : {DType::f32, DType::f16, DType::bf16})
    for (const DType points : {DType::f16, DType::bf16})
      for (const std::int64_t count : {3, 8, 16})
        expect_reference(Case({.channels = 16,
                               .queries = 40,
                               .levels = {{8, 8}, {2, 4}},
                               .points = count,
                               .value_dtype = value,
                               .location_dtype = points,
                               .weight_dtype = points},
                              6));
}

TEST_P(Forward, takes_ragged_points_and_empty_levels) {
  for (const std::int64_t channels : {8, 16}) {
    const std::vector<LevelShape> levels{{4, 4}, {8, 2}, {1, 1}};
    expect_reference(Case({.channels = channels, .levels = levels, .ragged = {3, 0, 4}}, 2));
    expect_reference(Case({.channels = channels, .levels = levels, .ragged = {1, 12, 4}, .strided = true}, 3));
  }
}

TEST_P(Forward, takes_levels_in_any_place) {
  Case c({.channels = 16, .levels = {{8, 16}, {4, 4}, {2, 3}}}, 4);
  const std::vector<std::int64_t> starts{22, 0, 16};
  Buffer want = c.output();
  Buffer got = c.output();
  MsDeformAttnOptions options = c.options("reference");
  options.level_start_index = starts;
  ms_deform_attn(c.value(), c.shape().levels, c.locations(), c.weights(), want, options);
  options.variant = GetParam();
  ms_deform_attn(c.value(), c.shape().levels, c.locations(), c.weights(), got, options);
  expect_forward(got, want, GetParam());
  EXPECT_NE(want.bits(), c.reference().bits());
}

TEST_P(Forward, empty_batch_queries_heads_or_channels_give_an_empty_output) {
  for (const Shape& shape : {Shape{.batch = 0, .channels = 16}, Shape{.channels = 16, .queries = 0},
                             Shape{.heads = 0, .channels = 16}, Shape{.channels = 0}}) {
    const Case c(shape, 1);
    Buffer out = c.output();
    c.forward(out, GetParam());
    EXPECT_EQ(out.layout().size(), 0);
    EXPECT_TRUE(out.canaries_intact());
  }
}

TEST_P(Forward, same_bits_for_any_number_of_threads) {
  for (int i = 0; i < 4; ++i) {
    const DType dtype = i % 2 == 0 ? DType::f32 : DType::f16;
    const std::int64_t channels = i < 2 ? 20 : 32;
    const Case c({.heads = 3, .channels = channels, .queries = 700, .levels = {{32, 40}, {7, 9}}, .value_dtype = dtype},
                 6);
    if (!takes_case(c)) continue;
    std::vector<unsigned char> first;
    for (const int threads : {1, 2, 5}) {
      set_num_threads(threads);
      Buffer got = c.output();
      c.forward(got, GetParam());
      if (first.empty()) first = got.bits();
      EXPECT_EQ(got.bits(), first) << threads << " threads";
    }
    set_num_threads(0);
  }
}

/// Address space without memory behind it; touched pages only cost.
class Sparse {
 public:
  explicit Sparse(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Sparse() {
    if (ok()) munmap(data_, bytes_);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  bool ok() const { return data_ != MAP_FAILED; }
  void* data() const { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};

/// Copies a dense tensor to its place in a sparse one.
void scatter(const Buffer& from, void* to, const Layout& layout) {
  const std::size_t size = size_of(from.dtype());
  for (std::int64_t i = 0; i < layout.size(); ++i) {
    std::int64_t rest = i;
    std::int64_t at = 0;
    for (int k = layout.rank - 1; k >= 0; --k) {
      const auto d = static_cast<std::size_t>(k);
      at += rest % layout.shape[d] * layout.strides[d];
      rest /= layout.shape[d];
    }
    std::memcpy(static_cast<char*>(to) + at * static_cast<std::int64_t>(size),
                static_cast<const char*>(from.data()) + i * static_cast<std::int64_t>(size), size);
  }
}

// Rows that are whole cache lines are written past the caches, others are not.
TEST_P(Forward, same_bits_wherever_the_output_lies) {
  constexpr std::size_t kLine = 64;
  constexpr unsigned char kUntouched = 0xA5;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Case c({.channels = 32, .queries = 60, .value_dtype = dtype}, 4);
    if (!takes_case(c)) continue;
    Buffer want = c.output();
    c.forward(want, GetParam());
    const std::vector<unsigned char> bits = want.bits();
    for (const std::size_t offset : {std::size_t{0}, size_of(dtype), kLine / 2}) {
      std::vector<unsigned char> memory(bits.size() + 3 * kLine, kUntouched);
      const std::size_t start = kLine - reinterpret_cast<std::uintptr_t>(memory.data()) % kLine + offset;
      ms_deform_attn(c.value(), c.shape().levels, c.locations(), c.weights(),
                     TensorView(memory.data() + start, dtype, want.layout()), c.options(GetParam()));
      std::vector<unsigned char> expected(memory.size(), kUntouched);
      std::copy(bits.begin(), bits.end(), expected.begin() + static_cast<std::ptrdiff_t>(start));
      EXPECT_EQ(memory, expected) << "output " << offset << " bytes behind a cache line's start";
    }
  }
}

TEST_P(Forward, offsets_past_two_to_the_31_are_right) {
  Case c({.channels = 16, .queries = 3, .levels = {{2, 2}, {1, 1}}}, 7);
  constexpr std::int64_t kFar = (1LL << 31) + 48;  // elements
  // Far apart: the images; the pixels of one image; both in the output.
  const Layout layouts[] = {Layout::strided({2, 5, 2, 16}, {kFar, 32, 16, 1}),
                            Layout::strided({2, 5, 2, 16}, {16, kFar / 2, 32, 1})};
  for (const Layout& layout : layouts) {
    const Sparse memory(static_cast<std::size_t>(5 * kFar) * sizeof(float));
    const Sparse far_output(static_cast<std::size_t>(2 * kFar) * sizeof(float));
    if (!memory.ok() || !far_output.ok()) GTEST_SKIP() << "no address space for a sparse tensor of 40 GB";
    scatter(c.value(), memory.data(), layout);
    const ConstTensorView value(static_cast<const float*>(memory.data()), layout);
    Buffer got = c.output();
    ms_deform_attn(value, c.shape().levels, c.locations(), c.weights(), got, c.options(GetParam()));
    expect_forward(got, c.reference(), GetParam());

    const Layout far = Layout::strided({2, 3, 32}, {kFar, 32, 1});
    const TensorView output(static_cast<float*>(far_output.data()), far);
    ms_deform_attn(value, c.shape().levels, c.locations(), c.weights(), output, c.options(GetParam()));
    for (std::int64_t n = 0; n < 2; ++n)
      EXPECT_EQ(std::memcmp(static_cast<float*>(far_output.data()) + n * kFar,
                            static_cast<const float*>(std::as_const(got).data()) + n * 96, 96 * sizeof(float)),
                0);
  }
}

TEST_P(Forward, broadcast_inputs_with_zero_and_negative_strides) {
  Case c({.batch = 1, .heads = 1, .channels = 16, .queries = 4}, 9);
  Layout value = c.value().layout();
  value.shape[0] = 3;
  value.strides[0] = 0;
  Layout locations = c.locations().layout();
  locations.shape[0] = 3;
  locations.strides[0] = 0;
  locations.strides[1] = -locations.strides[1];
  Layout weights = c.weights().layout();
  weights.shape[0] = 3;
  weights.strides[0] = 0;
  weights.strides[1] = -weights.strides[1];
  const auto* last_location = static_cast<const float*>(c.locations().data()) - 3 * locations.strides[1];
  const auto* last_weight = static_cast<const float*>(c.weights().data()) - 3 * weights.strides[1];
  const Buffer want = c.reference();
  Buffer got(DType::f32, {3, 4, 16});
  ms_deform_attn({c.value().data(), DType::f32, value}, c.shape().levels, ConstTensorView(last_location, locations),
                 ConstTensorView(last_weight, weights), got, c.options(GetParam()));
  for (std::int64_t n = 0; n < 3; ++n)
    for (std::int64_t q = 0; q < 4; ++q)
      for (std::int64_t d = 0; d < 16; ++d)
        EXPECT_NEAR(got.get((n * 4 + q) * 16 + d), want.get((3 - q) * 16 + d), 1e-5);
}

TEST(MsDeformAttnPlan, runs_again_on_new_data_and_says_its_variant) {
  Case c({}, 10);
  Buffer got = c.output();
  const Plan plan = plan_ms_deform_attn(c.value(), c.shape().levels, c.locations(), c.weights(), got, c.options());
  EXPECT_TRUE(takes(forward::variants(),
                    forward::make_problem(c.value(), c.shape().levels, c.locations(), c.weights(), got, c.options()),
                    std::string(plan.variant())));
  plan.run();
  expect_forward(got, c.reference(), "first run");
  c.value().fill_normal(c.random());
  plan.run();
  expect_forward(got, c.reference(), "second run");
}

TEST(MsDeformAttnPlan, copies_the_value_only_where_its_pixels_are_read_often) {
  for (const auto& each : forward::variants())
    if (each.name == "simd_packed" && !each.built()) GTEST_SKIP() << each.missing;
  const auto variant = [](std::int64_t queries) {
    const Case c({.channels = 16, .queries = queries, .levels = {{32, 32}}, .points = 4}, 11);
    Case copy = c;
    Buffer out = copy.output();
    const Plan plan = plan_ms_deform_attn(copy.value(), c.shape().levels, copy.locations(), copy.weights(), out);
    return std::string(plan.variant());
  };
  EXPECT_EQ(variant(32 * 32), "simd_packed");  // 16 reads of each pixel
  EXPECT_EQ(variant(100), "simd");
}

TEST(MsDeformAttnRegistry, ends_with_the_reference_that_takes_everything) {
  EXPECT_EQ(variants("ms_deform_attn").back().name, "reference");
  EXPECT_EQ(variants("ms_deform_attn_backward").back().name, "reference_backward");
}

}  // namespace
}  // namespace tmaops::test
