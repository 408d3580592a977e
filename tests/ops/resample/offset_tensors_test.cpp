// Offsets of packed rows as tensors: on the host they are what lists are, and on a GPU nobody reads them here.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ops/resample/backward/problem.hpp"
#include "ops/resample/problem.hpp"
#include "ops/resample/shared/device_offsets.hpp"
#include "ops/resample/violations/problem.hpp"
#include "support/as_if_built.hpp"
#include "support/broken_views.hpp"
#include "support/gpus.hpp"

namespace tmaops::test {
namespace {

namespace gpu = ops::resample::gpu;
using OffsetList = std::vector<std::int64_t>;

ConstTensorView as_tensor(const OffsetList& offsets) {
  return view(offsets.data(), {static_cast<std::int64_t>(offsets.size())});
}

/// Three trajectories of 3, 0 and 2 samples, onto 2, 0 and 1 targets.
struct PackedCall {
  std::vector<float> data{0, 1, 2, 10, 20};
  std::vector<double> x{0, 1, 2, 0, 1};
  std::vector<double> q{0.5, 1.5, 0.5};
  std::vector<float> out = std::vector<float>(3, -1.0F);
  std::vector<float> gradient = std::vector<float>(5, -1.0F);
  std::vector<std::uint8_t> marks = std::vector<std::uint8_t>(3, 9);
  OffsetList counted = OffsetList(static_cast<std::size_t>(kResampleViolations), -1);
  OffsetList source{0, 3, 3, 5};
  OffsetList target{0, 2, 2, 3};
  TensorView output = view(out.data(), {3, 1});
  TensorView grad_values = view(gradient.data(), {5, 1});
  TensorView counts = view(counted.data(), {kResampleViolations});
  ResampleOptions options{};

  PackedCall() {
    options.source_offset_tensor = as_tensor(source);
    options.target_offset_tensor = as_tensor(target);
  }
  ConstTensorView values() const { return view(data.data(), {5, 1}); }
  ConstTensorView source_times() const { return view(x.data(), {5}); }
  ConstTensorView target_times() const { return view(q.data(), {3}); }
  ConstTensorView grad_output() const { return view(data.data(), {3, 1}); }
  Plan planned() const { return plan_resample(values(), source_times(), target_times(), output, options); }
  void forward() const { resample(values(), source_times(), target_times(), output, options); }
  void backward() const { resample_backward(source_times(), target_times(), grad_output(), grad_values, options); }
  void violations() const { resample_violations(source_times(), target_times(), counts, options); }
};

TEST(ResampleOffsetTensors, on_the_host_are_what_lists_are) {
  PackedCall call;
  PackedCall lists;
  lists.options = {.source_offsets = lists.source, .target_offsets = lists.target};
  PackedCall mixed;
  mixed.options = {.source_offsets = mixed.source, .target_offset_tensor = as_tensor(mixed.target)};
  for (const PackedCall* one : {&call, &lists, &mixed}) {
    one->forward();
    one->backward();
    one->violations();
  }
  EXPECT_EQ(call.out, (std::vector<float>{0.5F, 1.5F, 15}));
  EXPECT_EQ(call.gradient, (std::vector<float>{0, 0.5F, 0.5F, 1, 1}));
  EXPECT_EQ(call.counted, OffsetList(7));
  for (const PackedCall* one : {&lists, &mixed}) {
    EXPECT_EQ(one->out, call.out);
    EXPECT_EQ(one->gradient, call.gradient);
    EXPECT_EQ(one->counted, call.counted);
  }
}

TEST(ResampleOffsetTensors, on_the_host_are_copied_by_a_plan) {
  PackedCall call;
  Plan plan = call.planned();
  call.source.assign(4, -7);
  call.target.assign(4, -7);
  plan.run();
  EXPECT_EQ(call.out, (std::vector<float>{0.5F, 1.5F, 15}));
  std::vector<float> other(3);
  plan.rebind({call.data.data(), call.x.data(), call.q.data(), other.data()});
  plan.run();
  EXPECT_EQ(other, call.out);
}

TEST(ResampleOffsetTensors, that_are_none_are_refused_by_name) {
  PackedCall call;
  call.options.valid = view(call.marks.data(), {3});
  const auto refused = [&](const std::string& argument, ConstTensorView& tensor) {
    expect_refused("resample: " + argument, tensor, [&] { call.forward(); });
    expect_refused("resample: " + argument, tensor, [&] { call.planned().run(); });
    expect_refused("resample_backward: " + argument, tensor, [&] { call.backward(); });
    expect_refused("resample_violations: " + argument, tensor, [&] { call.violations(); });
  };
  refused("source_offset_tensor", call.options.source_offset_tensor);
  refused("target_offset_tensor", call.options.target_offset_tensor);
  call.forward();
}

TEST(ResampleOffsetTensors, of_another_type_shape_or_place_are_refused) {
  using enum ErrorCode;
  const auto refused = [](ErrorCode code, const auto& spoil, const std::string& argument, auto... pieces) {
    for (const auto run : {&PackedCall::forward, &PackedCall::backward, &PackedCall::violations}) {
      PackedCall call;
      spoil(call);
      expect_error(code, [&] { (call.*run)(); }, argument, pieces...);
    }
  };
  const std::vector<std::int32_t> narrow{0, 3, 3, 5};
  refused(
      unsupported_dtype, [&](PackedCall& c) { c.options.source_offset_tensor = view(narrow.data(), {4}); },
      "source_offset_tensor", "i32", "i64");
  refused(
      shape_mismatch,
      [](PackedCall& c) { c.options.source_offset_tensor = view(std::as_const(c.source).data(), {2, 2}); },
      "source_offset_tensor", "(B + 1)");
  refused(
      bad_strides,
      [](PackedCall& c) {
        c.source = {0, 0, 3, 3, 3, 3, 5};
        c.options.source_offset_tensor = {c.source.data(), DType::i64, Layout::strided({4}, {2}), {}};
      },
      "source_offset_tensor", "contiguous");
  refused(
      device_mismatch, [](PackedCall& c) { c.options.target_offset_tensor.device = {DeviceType::cuda, 0}; },
      "target_offset_tensor");
  refused(
      bad_parameter, [](PackedCall& c) { c.options.source_offsets = c.source; }, "source_offset_tensor",
      "given beside source_offsets");
  refused(
      bad_parameter, [](PackedCall& c) { c.options.target_offsets = c.target; }, "target_offset_tensor",
      "given beside target_offsets");
}

TEST(ResampleOffsetTensors, on_the_host_must_fit) {
  const auto refused = [](const OffsetList& source, const OffsetList& target, auto... pieces) {
    for (const auto run : {&PackedCall::forward, &PackedCall::backward, &PackedCall::violations}) {
      PackedCall call;
      call.options.source_offset_tensor = as_tensor(source);
      call.options.target_offset_tensor = as_tensor(target);
      expect_error(ErrorCode::bad_offsets, [&] { (call.*run)(); }, pieces...);
    }
  };
  refused({1, 3, 3, 5}, {0, 2, 2, 3}, "source_offset_tensor", "first offset of 1");
  refused({0, 4, 3, 5}, {0, 2, 2, 3}, "source_offset_tensor", "offset 2 is 3 after 4");
  refused({0, 3, 3, 4}, {0, 2, 2, 3}, "source_offset_tensor", "last offset of 4", "5");
  refused({0, 3, 3, 5}, {0, 2, 2, 9}, "target_offset_tensor", "last offset of 9", "3");
  refused({0, 3, 3, 5}, {0, 3}, "target_offset_tensor", "4 for 3 trajectories");
  refused({0}, {0, 3}, "source_offset_tensor", "1 offsets");
  refused({}, {0, 3}, "source_offset_tensor", "0 offsets");
}

TEST(ResampleOffsetTensors, share_no_memory_with_what_is_written) {
  OffsetList numbers{0, 3, 3, 5};
  const auto refused = [&](const std::string& argument, PackedCall& call, const auto& run) {
    call.options.source_offset_tensor = as_tensor(numbers);
    expect_error(ErrorCode::overlap, run, argument, "source_offset_tensor");
  };
  PackedCall call;
  call.output = view(reinterpret_cast<float*>(numbers.data()), {3, 1});
  refused("resample: output", call, [&] { call.forward(); });
  PackedCall masked;
  masked.options.valid = view(reinterpret_cast<std::uint8_t*>(numbers.data()), {3});
  refused("resample: valid", masked, [&] { masked.forward(); });
  PackedCall back;
  back.grad_values = view(reinterpret_cast<float*>(numbers.data()), {5, 1});
  refused("resample_backward: grad_values", back, [&] { back.backward(); });
  OffsetList many{0, 3, 3, 5, 0, 0, 0, 0};
  PackedCall counting;
  counting.counts = view(many.data(), {kResampleViolations});
  counting.options.source_offset_tensor = view(std::as_const(many).data(), {4});
  expect_error(
      ErrorCode::overlap, [&] { counting.violations(); }, "resample_violations: counts", "source_offset_tensor");
}

// --- on a GPU that is not there --------------------------------------------------------------------------------------

constexpr Device kOffsetGpu{DeviceType::cuda, 0};

/// A tensor at an address that nobody reads, a multiple of 16 and far from the others.
TensorView there(std::uintptr_t number, DType dtype, const Layout& layout) {
  return {reinterpret_cast<void*>(number << 40), dtype, layout, kOffsetGpu};
}

/// 40 packed trajectories whose offsets only the device knows.
struct Unknown {
  std::int64_t rows = 4000;
  std::int64_t targets = 2000;
  std::int64_t channels = 16;
  bool source = true;
  bool target = true;
  DType dtype = DType::bf16;

  ResampleOptions options() const {
    ResampleOptions made;
    if (source) made.source_offset_tensor = there(5, DType::i64, Layout::contiguous({41}));
    if (target) made.target_offset_tensor = there(6, DType::i64, Layout::contiguous({41}));
    return made;
  }
  TensorView tensor(std::uintptr_t number, bool packed, std::int64_t count) const {
    return there(number, dtype,
                 packed ? Layout::contiguous({count, channels}) : Layout::contiguous({40, count / 40, channels}));
  }
  TensorView times(std::uintptr_t number, bool packed, std::int64_t count) const {
    return there(number, DType::f32, packed ? Layout::contiguous({count}) : Layout::contiguous({40, count / 40}));
  }
  ops::resample::Problem problem() const {
    return ops::resample::make_problem(tensor(1, source, rows), times(2, source, rows), times(3, target, targets),
                                       tensor(4, target, targets), options());
  }
  ops::resample_backward::Problem backward() const {
    return ops::resample_backward::make_problem(times(2, source, rows), times(3, target, targets),
                                                tensor(4, target, targets), tensor(1, source, rows), options());
  }
  ops::resample_violations::Problem violations() const {
    return ops::resample_violations::make_problem(times(2, source, rows), times(3, target, targets),
                                                  there(7, DType::i64, Layout::contiguous({kResampleViolations})),
                                                  options());
  }
};

TEST(ResampleOffsetTensors, on_a_gpu_are_taken_by_the_variants_that_take_everything) {
  const DeviceInfo device = made_up_gpu(90);
  const PretendedDevice pretended(device);
  const auto check = [&](const auto& problem, const auto& table, std::string_view taker) {
    int refusing = 0;
    for (const auto& variant : as_if_built(table)) {
      if (variant.device != DeviceType::cuda) continue;
      const Support support = try_variant(variant, problem, device);
      EXPECT_EQ(static_cast<bool>(support), variant.name == taker) << variant.name << ": " << support.reason;
      if (support) continue;
      ++refusing;
      const bool plain = support.reason == "needs arrays of times, nothing packed";
      EXPECT_TRUE(plain || support.reason.find("offsets of packed rows on the host") != std::string::npos ||
                  variant.name.find("walk") != std::string::npos || variant.name.find("pairs") != std::string::npos ||
                  variant.name.find("cubic") != std::string::npos)
          << variant.name << ": " << support.reason;
    }
    return refusing;
  };
  for (const auto& [source, target] : {std::pair(true, true), {true, false}, {false, true}}) {
    const Unknown call{.source = source, .target = target};
    EXPECT_GE(check(call.problem(), ops::resample::variants(), "element_search"), 14);
    EXPECT_EQ(check(call.backward(), ops::resample_backward::variants(), "row_gather"), 1);
    EXPECT_EQ(check(call.violations(), ops::resample_violations::variants(), "count_violations"), 0);
    const auto table = as_if_built(ops::resample::variants());
    EXPECT_EQ(ops::resample::select(call.problem(), device, "", table).name(), "element_search");
    const auto back = as_if_built(ops::resample_backward::variants());
    EXPECT_EQ(ops::resample_backward::select(call.backward(), device, "", back).name(), "row_gather");
    expect_error(
        ErrorCode::variant_refuses, [&] { ops::resample::select(call.problem(), device, "touched_rows", table); },
        "touched_rows", "offsets of packed rows on the host");
  }
}

TEST(ResampleOffsetTensors, on_a_gpu_make_another_problem_than_lists) {
  const PretendedDevice pretended(made_up_gpu(90));
  const Unknown call;
  OffsetList source(41), target(41);
  source.back() = call.rows;
  target.back() = call.targets;
  const auto known = ops::resample::make_problem(call.tensor(1, true, call.rows), call.times(2, true, call.rows),
                                                 call.times(3, true, call.targets), call.tensor(4, true, call.targets),
                                                 {.source_offsets = source, .target_offsets = target});
  EXPECT_EQ(known.longest_source, call.problem().longest_source);
  EXPECT_FALSE(known == call.problem()) << "a choice for one of them may not be remembered for the other";
}

TEST(ResampleOffsetTensors, on_a_gpu_have_a_number_that_can_be_checked) {
  const PretendedDevice pretended(made_up_gpu(90));
  const Unknown call;
  const auto refused = [&](std::int64_t source, std::int64_t target, std::int64_t rows, auto... pieces) {
    ResampleOptions options;
    options.source_offset_tensor = there(5, DType::i64, Layout::contiguous({source}));
    options.target_offset_tensor = there(6, DType::i64, Layout::contiguous({target}));
    expect_error(
        ErrorCode::bad_offsets,
        [&] {
          ops::resample::make_problem(call.tensor(1, true, rows), call.times(2, true, rows), call.times(3, true, 2000),
                                      call.tensor(4, true, 2000), options);
        },
        pieces...);
  };
  expect_error(
      ErrorCode::bad_offsets,
      [&] {
        ResampleOptions options;
        options.target_offset_tensor = there(6, DType::i64, Layout::contiguous({0}));
        ops::resample_violations::make_problem(there(2, DType::f32, Layout::contiguous({100})),
                                               call.times(3, true, 2000), there(7, DType::i64, Layout::contiguous({7})),
                                               options);
      },
      "target_offset_tensor", "offsets");
  refused(0, 41, 4000, "source_offset_tensor", "0 offsets");
  refused(1, 1, 4000, "source_offset_tensor", "1 offsets");
  refused(1, 1, 0, "target_offset_tensor", "1 offsets");
  refused(41, 40, 4000, "target_offset_tensor", "41 for 40 trajectories");
}

// --- the parts of the kernel that checks them ------------------------------------------------------------------------

TEST(ResampleOffsetTensors, wrong_numbers_are_found) {
  const auto wrong = [](const OffsetList& numbers, std::int64_t rows) {
    const gpu::UncheckedOffsets offsets{numbers.data(), rows, static_cast<std::int64_t>(numbers.size()) - 1};
    std::string found;
    for (std::int64_t i = 0; i <= offsets.batch; ++i) found += offsets.is_wrong(i) ? 'x' : '.';
    return found;
  };
  EXPECT_EQ(wrong({0, 3, 3, 5}, 5), "....");
  EXPECT_EQ(wrong({0}, 0), ".");
  EXPECT_EQ(wrong({0}, 3), "x");
  EXPECT_EQ(wrong({1, 3, 3, 5}, 5), "x...");
  EXPECT_EQ(wrong({0, 4, 3, 5}, 5), "..x.");
  EXPECT_EQ(wrong({0, 3, 3, 4}, 5), "...x");
  EXPECT_EQ(wrong({0, 3, 9, 5}, 5), "...x");
  EXPECT_EQ(wrong({-1, 3, -2, 7}, 5), "x.xx");
  EXPECT_EQ(wrong({0, INT64_MIN, INT64_MAX, 5}, 5), ".x.x");
  const gpu::UncheckedOffsets none{nullptr, 7, 3};
  for (std::int64_t i = 0; i <= 3; ++i) {
    EXPECT_FALSE(none.is_wrong(i));
    EXPECT_EQ(none.offset(i), 7 * i);
  }
}

/// What every kernel behind the check relies on.
TEST(ResampleOffsetTensors, without_wrong_numbers_divide_the_rows) {
  std::mt19937_64 random(5);
  int right = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto rows = static_cast<std::int64_t>(random() % 4);
    OffsetList numbers(1 + random() % 4);
    for (std::int64_t& number : numbers) number = static_cast<std::int64_t>(random() % 7) - 1;
    if (random() % 2 == 0) numbers.front() = 0;
    const auto batch = static_cast<std::int64_t>(numbers.size()) - 1;
    const gpu::UncheckedOffsets offsets{numbers.data(), rows, batch};
    bool any = false;
    for (std::int64_t i = 0; i <= batch; ++i) any |= offsets.is_wrong(i);
    std::vector<int> owners(static_cast<std::size_t>(rows));
    bool outside = false;
    for (std::int64_t b = 0; b < batch; ++b) {
      outside |= offsets.offset(b) > offsets.offset(b + 1);
      for (std::int64_t row = offsets.offset(b); row < offsets.offset(b + 1); ++row) {
        if (row < 0 || row >= rows)
          outside = true;
        else
          ++owners[static_cast<std::size_t>(row)];
      }
    }
    const bool divided = !outside && std::ranges::all_of(owners, [](int count) { return count == 1; });
    if (!any) {
      EXPECT_TRUE(divided);
      ++right;
    }
    if (!divided) {
      EXPECT_TRUE(any);
    }
  }
  EXPECT_GT(right, 100);
}

TEST(ResampleOffsetTensors, elements_of_a_tensor_are_each_addressed_once) {
  std::vector<unsigned char> memory(4000);
  for (const bool packed : {false, true}) {
    const gpu::Elements all{.data = memory.data(),
                            .trajectories = packed ? 1 : 3,
                            .rows = 5,
                            .channels = 7,
                            .trajectory_stride = packed ? 0 : 130,
                            .row_stride = 20,
                            .channel_stride = 2,
                            .size = 4};
    ASSERT_EQ(all.count(), (packed ? 1 : 3) * 35);
    std::int64_t i = 0;
    for (std::int64_t b = 0; b < all.trajectories; ++b)
      for (std::int64_t row = 0; row < 5; ++row)
        for (std::int64_t channel = 0; channel < 7; ++channel)
          EXPECT_EQ(all.element(i++) - memory.data(), 4 * (b * 130 + row * 20 + channel * 2));
  }
  EXPECT_EQ(gpu::Elements{}.count(), 0);
}

TEST(ResampleOffsetTensors, a_grid_for_trajectories_of_unknown_length_is_in_proportion) {
  EXPECT_EQ(gpu::expected_rows(0, 5), 0);
  EXPECT_EQ(gpu::expected_rows(5, 0), 0);
  EXPECT_EQ(gpu::expected_rows(100, 1), 100);
  EXPECT_EQ(gpu::expected_rows(100, 50), 8);
  EXPECT_EQ(gpu::expected_rows(101, 50), 12);
}

}  // namespace
}  // namespace tmaops::test
