// Edges of resampling on the GPU: values and targets that are not numbers, errors nobody can throw, graph capture.
#include "ops/resample/gpu/check.hpp"

namespace tmaops::test {
namespace {

TEST(GpuResampleEdges, not_a_number_reaches_only_the_targets_between_its_neighbours) {
  TMAOPS_NEEDS_GPU();
  for (const std::int64_t channels : {8, 7}) {
    Buffer values(DType::f32, {1, 4, channels});
    Buffer source(DType::f32, {1, 4});
    Buffer target(DType::f32, {1, 5});
    for (std::int64_t i = 0; i < values.layout().size(); ++i) values.set(i, i / channels == 1 ? NAN : 1.0);
    for (std::int64_t i = 0; i < 4; ++i) source.set(i, static_cast<double>(i));
    const double times[] = {0.0, 0.5, 1.5, 2.0, 3.0};
    for (std::int64_t i = 0; i < 5; ++i) target.set(i, times[i]);
    const Mirror device_values(values, 0), device_source(source, 0), device_target(target, 0);
    for (const auto& variant : ops::resample::variants()) {
      if (!test::runs_here(variant)) continue;
      const Mirror output(Buffer(DType::f32, {1, 5, channels}), 0);
      ResampleOptions options;
      options.variant = std::string(variant.name);
      try {
        resample(device_values.view(), device_source.view(), device_target.view(), output.view(), options);
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::variant_refuses);
        continue;
      }
      const Buffer got = output.download();
      for (std::int64_t t = 0; t < 5; ++t)
        EXPECT_EQ(std::isnan(got.get(t * channels)), t == 1 || t == 2) << variant.name << ", target " << t;
    }
  }
}

TEST(GpuResampleEdges, an_infinite_sample_beside_an_interval_leaves_the_curve_finite) {
  TMAOPS_NEEDS_GPU();
  constexpr std::int64_t kSamples = 6;
  constexpr std::int64_t kTargets = 2 * kSamples - 1;
  ResampleOptions options;
  options.interpolation = Interpolation::cubic;
  for (const std::int64_t channels : {128, 8, 7})
    for (std::int64_t bad = 0; bad < 2 * kSamples; ++bad) {
      Buffer values(DType::f32, {1, kSamples, channels});
      Buffer source(DType::f32, {1, kSamples});
      Buffer target(DType::f32, {1, kTargets});
      for (std::int64_t i = 0; i < values.layout().size(); ++i) values.set(i, static_cast<double>(i / channels));
      for (std::int64_t c = 0; c < channels; ++c)
        values.set(bad / 2 * channels + c, bad % 2 == 0 ? INFINITY : -INFINITY);
      for (std::int64_t i = 0; i < kSamples; ++i) source.set(i, static_cast<double>(i));
      for (std::int64_t i = 0; i < kTargets; ++i) target.set(i, 0.5 * static_cast<double>(i));
      Buffer expected(DType::f32, {1, kTargets, channels});
      options.variant = "reference";
      resample(values, source, target, expected, options);
      const Mirror device_values(values, 0), device_source(source, 0), device_target(target, 0);
      int ran = 0;
      for (const auto& variant : ops::resample::variants()) {
        if (!test::runs_here(variant)) continue;
        options.variant = std::string(variant.name);
        const Mirror output(Buffer(DType::f32, {1, kTargets, channels}), 0);
        try {
          resample(device_values.view(), device_source.view(), device_target.view(), output.view(), options);
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), ErrorCode::variant_refuses);
          continue;
        }
        ++ran;
        const Buffer got = output.download();
        for (std::int64_t i = 0; i < kTargets * channels; ++i) {
          if (!std::isfinite(expected.get(i))) continue;
          ASSERT_NEAR(got.get(i), expected.get(i), 1e-5)
              << variant.name << ", target " << i / channels << ", sample " << bad / 2 << " of " << channels;
        }
      }
      EXPECT_GE(ran, 1);
    }
}

/// y0 + w (y1 - y0), as documented: (1 - w) y0 + w y1 would be off by w roundings.
TEST(GpuResampleEdges, a_constant_stays_that_constant_however_far_it_is_extrapolated) {
  TMAOPS_NEEDS_GPU();
  constexpr std::int64_t kSamples = 40;
  constexpr std::int64_t kTargets = 90;
  for (const Interpolation interpolation : {Interpolation::linear, Interpolation::cubic})
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (const DType times : {DType::f32, DType::f64, DType::i64})
        for (const std::int64_t channels : {128, 8, 7}) {
          Buffer values(dtype, {2, kSamples, channels});
          Buffer source(times, {2, kSamples});
          Buffer target(times, {2, kTargets});
          for (std::int64_t i = 0; i < values.layout().size(); ++i)
            values.set(i, 1.1 + 0.3 * static_cast<double>(i % channels));
          for (std::int64_t i = 0; i < 2 * kSamples; ++i) source.set(i, static_cast<double>(i % kSamples));
          for (std::int64_t i = 0; i < 2 * kTargets; ++i)  // from 1e5 steps before the samples to as many behind them
            target.set(i, std::floor(-1e5 + static_cast<double>(i % kTargets) * 2e5 / (kTargets - 1)));
          const Mirror device_values(values, 0), device_source(source, 0), device_target(target, 0);
          int ran = 0;
          for (const auto& variant : ops::resample::variants()) {
            if (!test::runs_here(variant)) continue;
            const Mirror output(Buffer(dtype, {2, kTargets, channels}), 0);
            ResampleOptions options;
            options.interpolation = interpolation;
            options.outside = Outside::extrapolate;
            options.variant = std::string(variant.name);
            try {
              resample(device_values.view(), device_source.view(), device_target.view(), output.view(), options);
            } catch (const Error& error) {
              ASSERT_EQ(error.code(), ErrorCode::variant_refuses);
              continue;
            }
            ++ran;
            const Buffer got = output.download();
            for (std::int64_t i = 0; i < got.layout().size(); ++i)
              ASSERT_EQ(got.get(i), values.get(i % channels))
                  << variant.name << ", " << to_string(dtype) << ", times " << to_string(times) << ", " << channels
                  << " channels, target " << i / channels;
          }
          EXPECT_GE(ran, 1);
        }
}

TEST(GpuResampleEdges, targets_outside_are_not_a_number_where_the_cpu_reports_an_error) {
  TMAOPS_NEEDS_GPU();
  for (const std::int64_t channels : {8, 7}) {
    ProblemShape c{.batch = 3, .samples = 40, .targets = 90, .channels = channels, .valid = true, .reach = 0.3};
    c.outside = Outside::nan;
    c.groups = one_group(channels, Interpolation::linear);
    check(c, 11, Outside::error);
  }
}

TEST(GpuResampleEdges, plan_runs_inside_a_captured_graph) {
  TMAOPS_NEEDS_CHIP();
  const ProblemShape c{.batch = 2,
                       .samples = 200,
                       .targets = 100,
                       .channels = 16,
                       .dtype = DType::bf16,
                       .groups = one_group(16, Interpolation::linear),
                       .packed_source = true};
  Made made = make(c, 3);
  const Buffer poisoned = *made.output;
  ResampleOptions options = made.options;
  options.variant = "reference";
  resample(*made.values, *made.source, *made.target, *made.output, options);
  const Mirror values(*made.values, 0), source(*made.source, 0), target(*made.target, 0);
  int replayed = 0;
  int left_out = 0;  // of the GPU variants: this build has no kernels of theirs for this GPU
  for (const auto& variant : ops::resample::variants()) {
    if (!test::runs_here(variant)) {
      left_out += variant.device == DeviceType::cuda ? 1 : 0;
      continue;
    }
    const Mirror output(poisoned, 0);
    options.variant = std::string(variant.name);
    try {
      const Plan plan = plan_resample(values.view(), source.view(), target.view(), output.view(), options);
      test::replay_captured(plan);
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
      continue;
    }
    ++replayed;
    expect_close(output.download(), *made.output, 0x1p-7, 2e-6, options.variant.c_str());
  }
  EXPECT_GE(replayed, left_out > 0 ? 3 : 7);
}

}  // namespace
}  // namespace tmaops::test
