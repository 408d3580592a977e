// Arguments that are no tensors and options that are none are refused by name, whichever they are.
#include <gtest/gtest.h>

#include <array>

#include "ops/resample/resample_call.hpp"
#include "support/broken_views.hpp"

namespace tmaops::test {
namespace {

/// The right call with everything that an operator of the room takes.
struct WholeCall : Call {
  std::vector<std::uint8_t> marks = std::vector<std::uint8_t>(4, 9);
  std::vector<float> gradient = std::vector<float>(12, 0.0F);
  std::vector<std::int64_t> counted = std::vector<std::int64_t>(kResampleViolations, -1);
  ConstTensorView grad_output = view(std::as_const(data).data(), {2, 2, 2});
  TensorView grad_values = view(gradient.data(), {2, 3, 2});
  TensorView counts = view(counted.data(), {kResampleViolations});
  WholeCall() { options.valid = view(marks.data(), {2, 2}); }

  void planned() { plan_resample(values, source_times, target_times, output, options).run(); }
  void backward() { resample_backward(source_times, target_times, grad_output, grad_values, options); }
  void backward_planned() {
    plan_resample_backward(source_times, target_times, grad_output, grad_values, options).run();
  }
  void violations() { resample_violations(source_times, target_times, counts, options); }

  /// Two trajectories of one and two rows, onto one and one targets.
  void pack() {
    values = view(std::as_const(data).data(), {3, 2});
    source_times = view(std::as_const(x).data(), {3});
    target_times = view(std::as_const(q).data(), {2});
    output = view(out.data(), {2, 2});
    grad_output = view(std::as_const(data).data(), {2, 2});
    grad_values = view(gradient.data(), {3, 2});
    options.valid = view(marks.data(), {2});
    options.source_offsets = source_offsets;
    options.target_offsets = target_offsets;
  }
  std::array<std::int64_t, 3> source_offsets{0, 1, 3};
  std::array<std::int64_t, 3> target_offsets{0, 1, 2};
};

void expect_all_refused(WholeCall& call) {
  const auto refused = [&](const std::string& argument, auto& view) {
    expect_refused("resample: " + argument, view, [&] { call.run(); });
    if (!call.grid) expect_refused("resample: " + argument, view, [&] { call.planned(); });
  };
  refused("values", call.values);
  refused("source_times", call.source_times);
  refused("output", call.output);
  refused("valid", call.options.valid);
  if (!call.grid) refused("target_times", call.target_times);
  call.run();
}

TEST(ResampleViews, that_are_no_tensors_are_refused_by_name) {
  WholeCall call;
  expect_all_refused(call);
  call.pack();
  expect_all_refused(call);
  WholeCall on_grid;
  on_grid.grid = UniformGrid{0.0, 1.0, 2};
  expect_all_refused(on_grid);
}

TEST(ResampleViews, of_the_backward_pass_that_are_no_tensors_are_refused_by_name) {
  WholeCall call;
  for (const bool packed : {false, true}) {
    if (packed) call.pack();
    call.backward();
    const auto refused = [&](const std::string& argument, auto& view) {
      expect_refused("resample_backward: " + argument, view, [&] { call.backward(); });
      expect_refused("resample_backward: " + argument, view, [&] { call.backward_planned(); });
    };
    refused("source_times", call.source_times);
    refused("target_times", call.target_times);
    refused("grad_output", call.grad_output);
    refused("grad_values", call.grad_values);
  }
}

TEST(ResampleViews, of_a_count_of_violations_that_are_no_tensors_are_refused_by_name) {
  WholeCall call;
  for (const bool packed : {false, true}) {
    if (packed) call.pack();
    call.violations();
    expect_refused("resample_violations: source_times", call.source_times, [&] { call.violations(); });
    expect_refused("resample_violations: target_times", call.target_times, [&] { call.violations(); });
    expect_refused("resample_violations: counts", call.counts, [&] { call.violations(); });
  }
  expect_error(
      ErrorCode::bad_parameter,
      [&] {
        WholeCall on_grid;
        resample_violations(on_grid.source_times, UniformGrid{0.0, 1.0, -1}, on_grid.counts);
      },
      "resample_violations: grid.count", "-1");
}

TEST(ResampleViews, options_that_are_none_are_refused_by_name) {
  WholeCall call;
  const auto refused = [&](const std::string& name, auto& option) {
    expect_enumerator_refused("resample: " + name, option, [&] { call.run(); });
    expect_enumerator_refused("resample_backward: " + name, option, [&] { call.backward(); });
  };
  refused("interpolation", call.options.interpolation);
  refused("outside", call.options.outside);
  refused("duplicates", call.options.duplicates);
  expect_enumerator_refused("resample_violations: outside", call.options.outside, [&] { call.violations(); });
  expect_enumerator_refused("resample_violations: duplicates", call.options.duplicates, [&] { call.violations(); });
  std::array<ChannelGroup, 2> groups{{{0, 1, Interpolation::linear}, {1, 1, Interpolation::next}}};
  call.options.channel_groups = groups;
  refused("channel_groups[1].interpolation", groups[1].interpolation);
}

TEST(ResampleViews, lists_without_memory_are_refused_by_name) {
  const std::size_t three = 3;
  const auto refused = [&](const std::string& name, const auto& spoil) {
    WholeCall call;
    call.pack();
    spoil(call.options);
    expect_error(ErrorCode::null_pointer, [&] { call.run(); }, "resample: " + name);
    expect_error(ErrorCode::null_pointer, [&] { call.backward(); }, "resample_backward: " + name);
  };
  constexpr const std::int64_t* kNone = nullptr;
  refused("source_offsets", [&](ResampleOptions& options) { options.source_offsets = {kNone, three}; });
  refused("target_offsets", [&](ResampleOptions& options) { options.target_offsets = {kNone, three}; });
  refused("channel_groups", [&](ResampleOptions& options) {
    options.channel_groups = {static_cast<const ChannelGroup*>(nullptr), three};
  });
}

TEST(ResampleViews, times_beside_times_are_in_their_unit) {
  const std::int64_t whole = 1'000'000;
  const auto refused = [](const std::string& name, const auto& spoil) {
    WholeCall call;
    call.grid = UniformGrid{0.0, 1.0, 2};
    spoil(call);
    expect_error(ErrorCode::bad_parameter, [&] { call.run(); }, "resample: " + name, "seconds", "f64");
  };
  refused("grid.start", [&](WholeCall& call) { call.grid->start = whole; });
  refused("grid.period", [&](WholeCall& call) { call.grid->period = whole; });
  refused("max_gap", [&](WholeCall& call) { call.options.max_gap = whole; });
  WholeCall call;
  call.grid = UniformGrid{std::int64_t{0}, 1.0, 2};  // 0 is the same in every unit
  call.options.max_gap = std::int64_t{0};
  call.run();
  EXPECT_EQ(call.out, (std::vector<float>{0, 1, 2, 3, 10, 11, 12, 13}));
}

}  // namespace
}  // namespace tmaops::test
