// GPU variants of resampling against the reference: random problems over all that the definition allows, and the shapes
// that each variant was made for.
#include "ops/resample/gpu/check.hpp"

namespace tmaops::test {
namespace {

class GpuResample : public ::testing::TestWithParam<int> {};

TEST_P(GpuResample, variants_agree_with_the_reference_on_random_problems) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(static_cast<std::uint64_t>(1000 + GetParam()));
  for (int i = 0; i < problems(25); ++i) {
    const ProblemShape c = random_case(random);
    check(c, random());
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuResample, ::testing::Range(0, 8));

TEST(GpuResampleShapes, measured_shapes_of_each_variant) {
  TMAOPS_NEEDS_CHIP();
  std::vector<ProblemShape> cases;
  for (const auto& [batch, samples, targets, channels] : std::vector<std::array<std::int64_t, 4>>{{3, 512, 512, 128},
                                                                                                  {2, 100, 2048, 256},
                                                                                                  {2, 1000, 500, 512},
                                                                                                  {3, 500, 250, 128},
                                                                                                  {2, 1024, 4096, 64},
                                                                                                  {2, 10000, 5000, 14},
                                                                                                  {2, 500, 256, 256},
                                                                                                  {5, 500, 250, 32},
                                                                                                  {3, 4096, 1024, 32},
                                                                                                  {2, 4000, 997, 32},
                                                                                                  {300, 100, 50, 7},
                                                                                                  {40, 30, 24, 5},
                                                                                                  {4, 100, 256, 32}})
    for (const DType dtype : {DType::bf16, DType::f32})
      for (const DType times : {DType::f32, DType::i64})
        for (const bool valid : {false, true})  // without: plain calls, which have kernels of their own
          cases.push_back({.batch = batch,
                           .samples = samples,
                           .targets = targets,
                           .channels = channels,
                           .dtype = dtype,
                           .times = times,
                           .groups = one_group(channels, Interpolation::linear),
                           .valid = valid});
  for (const std::int64_t targets : {300, 500})  // curves have kernels of their own
    for (const DType dtype : {DType::bf16, DType::f32})
      cases.push_back({.batch = 2,
                       .samples = 300,
                       .targets = targets,
                       .channels = 128,
                       .dtype = dtype,
                       .times = DType::f32,
                       .groups = one_group(128, Interpolation::cubic),
                       .valid = false});
  std::uint64_t seed = 7;
  for (const ProblemShape& c : cases) {
    check(c, ++seed);
    if (HasFailure()) return;
  }
  for (const auto& variant : ops::resample::variants())
    if (test::runs_here(variant)) {
      EXPECT_GE(runs()[std::string(variant.name)], 4) << variant.name;
    }
}

TEST(GpuResampleShapes, f64_values) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(1100);
  const int before = runs()["element_search"];
  for (int i = 0; i < problems(40); ++i) {
    ProblemShape c = random_case(random);
    c.dtype = DType::f64;
    check(c, random());
    if (HasFailure()) return;
  }
  EXPECT_EQ(runs()["element_search"], before + 2 * problems(40));
}

TEST(GpuResampleShapes, curves_and_groups_of_channels) {
  TMAOPS_NEEDS_CHIP();
  const auto quaternions = [](std::int64_t channels) {
    std::vector<ChannelGroup> groups;
    for (std::int64_t first = 0; first < channels; first += 4) groups.push_back({first, 4, Interpolation::slerp});
    return groups;
  };
  // An arm: position, orientation, gripper, joints.
  const std::vector<ChannelGroup> arm{{0, 3, Interpolation::linear},
                                      {3, 4, Interpolation::slerp},
                                      {7, 1, Interpolation::previous},
                                      {8, 6, Interpolation::cubic}};
  std::uint64_t seed = 40;
  for (const auto& [samples, targets] : std::vector<std::array<std::int64_t, 2>>{{512, 512}, {100, 2048}, {1000, 300}})
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
      for (const Outside outside : {Outside::hold, Outside::extrapolate})
        for (const auto& [channels, groups] : std::vector<std::pair<std::int64_t, std::vector<ChannelGroup>>>{
                 {128, one_group(128, Interpolation::cubic)},
                 {128, quaternions(128)},
                 {14, arm},
                 {12, quaternions(12)}}) {
          check({.batch = 3,
                 .samples = samples,
                 .targets = targets,
                 .channels = channels,
                 .dtype = dtype,
                 .groups = groups,
                 .outside = outside,
                 .gap = outside == Outside::hold,
                 .reach = outside == Outside::hold ? 0.02 : 0.002},
                ++seed);
          if (HasFailure()) return;
        }
}

TEST(GpuResampleShapes, short_trajectories_of_rows_with_an_odd_number_of_values) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 60;
  for (const std::int64_t channels : {3, 5, 7, 9})
    for (const DType dtype : {DType::bf16, DType::f16})
      for (const Interpolation interpolation : {Interpolation::linear, Interpolation::next, Interpolation::nearest})
        for (const auto& [batch, samples, targets] : std::vector<std::array<std::int64_t, 3>>{
                 {302, 100, 50}, {16, 4, 8}, {12, 40, 256}, {9, 16, 2}, {6, 300, 120}, {2000, 100, 50}}) {
          if (batch == 2000 && channels != 7) continue;
          for (const int kind : {0, 1, 2}) {
            check({.batch = batch,
                   .samples = samples,
                   .targets = targets,
                   .channels = channels,
                   .dtype = dtype,
                   .groups = one_group(channels, interpolation),
                   .duplicates = kind == 2,
                   .unsorted = kind == 1,
                   .clustered = kind == 2},
                  ++seed);
            if (HasFailure()) return;
          }
        }
}

// Long trajectories, cut into tiles that begin inside a chunk.
TEST(GpuResampleShapes, long_trajectories_of_two_arms) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 70;
  int kind = 0;
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    for (const auto& [batch, samples, targets] :
         std::vector<std::array<std::int64_t, 3>>{{400, 801, 500}, {270, 300, 770}}) {
      const std::int64_t channels = dtype == DType::f32 ? 7 : 14;
      const Interpolation modes[] = {Interpolation::linear, Interpolation::linear, Interpolation::nearest,
                                     Interpolation::next};
      ++kind;
      check({.batch = batch,
             .samples = samples,
             .targets = targets,
             .channels = channels,
             .dtype = dtype,
             .groups = one_group(channels, modes[kind % 4]),
             .duplicates = kind % 3 == 0,
             .shared_source = kind % 5 == 0,
             .unsorted = kind % 3 == 1,
             .clustered = kind % 3 == 0},
            ++seed);
      if (HasFailure()) return;
    }
}

TEST(GpuResampleShapes, long_calls_of_one_curve) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 80;
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32})
    for (const bool slerp : {false, true})
      for (const auto& [batch, samples, targets, channels] :
           std::vector<std::array<std::int64_t, 4>>{{66, 512, 512, 128}, {20, 3000, 1700, 256}, {1030, 16, 33, 128}}) {
        std::vector<ChannelGroup> groups = one_group(channels, Interpolation::cubic);
        if (slerp) groups.clear();
        for (std::int64_t first = 0; slerp && first < channels; first += 4)
          groups.push_back({first, 4, Interpolation::slerp});
        check({.batch = batch,
               .samples = samples,
               .targets = targets,
               .channels = channels,
               .dtype = dtype,
               .groups = groups,
               .duplicates = samples == 16,
               .unsorted = samples == 3000,
               .lean = slerp ? 3.0 : 0.0},  // of two orthogonal ones rounding says which arc is the shorter
              ++seed);
        if (HasFailure()) return;
      }
}

TEST(GpuResampleShapes, more_trajectories_than_one_grid_dimension_holds) {
  TMAOPS_NEEDS_CHIP();
  for (const std::int64_t channels : {8, 3})
    check({.batch = 70001,
           .samples = 3,
           .targets = 2,
           .channels = channels,
           .dtype = DType::bf16,
           .groups = one_group(channels, Interpolation::linear),
           .apart = 1},
          5);
}

TEST(GpuResampleShapes, rows_of_every_width_and_alignment) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 100;
  for (std::int64_t channels = 1; channels <= 33; ++channels)
    for (const int shift : {0, 1, 5}) {
      check({.batch = 3,
             .samples = 77,
             .targets = 61,
             .channels = channels,
             .dtype = DType::bf16,
             .groups = one_group(channels, Interpolation::linear),
             .shift = shift},
            ++seed);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace tmaops::test
