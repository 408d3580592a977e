// Offsets of packed rows that lie on the device: what offsets on the host give, bit by bit; NaN within bounds where
// they are wrong; no wait, and graphs that read them anew in every replay.
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "ops/resample/backward/problem.hpp"
#include "ops/resample/gpu/check.hpp"
#include "ops/resample/violations/problem.hpp"

namespace tmaops::test {
namespace {

using OffsetList = std::vector<std::int64_t>;

ConstTensorView tensor_of(const DeviceArray<std::int64_t>& numbers, std::size_t count) {
  return {numbers.get(), DType::i64, Layout::contiguous({static_cast<std::int64_t>(count)}), {DeviceType::cuda, 0}};
}

/// Offsets in device memory that are not the default stream's alone.
struct OnDevice {
  OnDevice(const OffsetList& source_list, const OffsetList& target_list)
      : source(source_list.empty() ? OffsetList(1) : source_list),
        target(target_list.empty() ? OffsetList(1) : target_list),
        source_count(source_list.size()),
        target_count(target_list.size()) {}
  DeviceArray<std::int64_t> source, target;
  std::size_t source_count, target_count;

  void set(const OffsetList& source_list, const OffsetList& target_list) const {
    const auto bring = [](const DeviceArray<std::int64_t>& to, const OffsetList& list) {
      check_cuda(cudaMemcpy(to.get(), list.data(), list.size() * sizeof(std::int64_t), cudaMemcpyHostToDevice), "set");
    };
    bring(source, source_list);
    bring(target, target_list);
    check_cuda(cudaDeviceSynchronize(), "set");
  }
  /// The options with these tensors in place of lists.
  ResampleOptions options(ResampleOptions made) const {
    made.source_offsets = made.target_offsets = {};
    if (source_count > 0) made.source_offset_tensor = tensor_of(source, source_count);
    if (target_count > 0) made.target_offset_tensor = tensor_of(target, target_count);
    return made;
  }
};

/// A forward call and a backward call of one problem on the device, whose gradients have the type of the values.
class OnGpu {
 public:
  OnGpu(const ProblemShape& c, std::uint64_t seed) : c_(c), made_(make(c_, seed)) {
    std::mt19937_64 random(seed);
    // Numbers everywhere, so that an element that is not written is seen, and so is one outside the tensor.
    const auto number = [](Buffer& buffer) { std::memset(buffer.data(), 0x11, buffer.bits().size()); };
    gradient_ = std::make_unique<Buffer>(c.dtype, made_.output->layout());
    gradient_->fill_normal(random);
    number(*made_.output);
    to_ = std::make_unique<Buffer>(c.dtype, made_.values->layout());
    number(*to_);
    if (c.valid) number(*made_.valid);
    values = std::make_unique<Mirror>(*made_.values, c.shift);
    source = std::make_unique<Mirror>(*made_.source, c.shift);
    target = std::make_unique<Mirror>(c.grid ? Buffer(c.times, {0}) : *made_.target, c.shift);
    output = std::make_unique<Mirror>(*made_.output, c.shift);
    grad_output = std::make_unique<Mirror>(*gradient_, c.shift);
    grad_values = std::make_unique<Mirror>(*to_, c.shift);
    valid = std::make_unique<Mirror>(c.valid ? *made_.valid : Buffer(DType::u8, {0}));
  }
  ResampleOptions options() const {
    ResampleOptions made = made_.options;
    if (c_.valid) made.valid = valid->view();
    return made;
  }
  const OffsetList& source_offsets() const { return made_.source_offsets; }
  const OffsetList& target_offsets() const { return made_.target_offsets; }
  OnDevice offsets() const { return {made_.source_offsets, made_.target_offsets}; }

  void forward(const ResampleOptions& options) const {
    if (c_.grid)
      resample(values->view(), source->view(), made_.grid, output->view(), options);
    else
      resample(values->view(), source->view(), target->view(), output->view(), options);
  }
  Plan forward_plan(const ResampleOptions& options) const {
    if (c_.grid) return plan_resample(values->view(), source->view(), made_.grid, output->view(), options);
    return plan_resample(values->view(), source->view(), target->view(), output->view(), options);
  }
  std::size_t forward_workspace(const ResampleOptions& options) const {
    if (c_.grid) return resample_workspace(values->view(), source->view(), made_.grid, output->view(), options);
    return resample_workspace(values->view(), source->view(), target->view(), output->view(), options);
  }
  void backward(const ResampleOptions& options) const {
    if (c_.grid)
      resample_backward(source->view(), made_.grid, grad_output->view(), grad_values->view(), options);
    else
      resample_backward(source->view(), target->view(), grad_output->view(), grad_values->view(), options);
  }
  Plan backward_plan(const ResampleOptions& options) const {
    return plan_resample_backward(source->view(), target->view(), grad_output->view(), grad_values->view(), options);
  }
  OffsetList violations(const ResampleOptions& options) const {
    const Mirror counts(Buffer(DType::i64, {kResampleViolations}));
    if (c_.grid)
      resample_violations(source->view(), made_.grid, counts.view(), options);
    else
      resample_violations(source->view(), target->view(), counts.view(), options);
    check_cuda(cudaDeviceSynchronize(), "violations");
    OffsetList found;
    for (const double count : counts.download().values()) found.push_back(static_cast<std::int64_t>(count));
    return found;
  }
  bool backward_allowed() const {
    return std::ranges::none_of(c_.groups, [](const ChannelGroup& group) {
      return group.interpolation == Interpolation::cubic || group.interpolation == Interpolation::slerp;
    });
  }

  using Bits = std::pair<std::vector<unsigned char>, std::vector<unsigned char>>;
  /// Output and mask after run(), which starts on numbers.
  Bits outputs_of(const std::function<void()>& run) const {
    output->reset();
    valid->reset();
    run();
    check_cuda(cudaDeviceSynchronize(), "run");
    const Buffer got = output->download(), mask = valid->download();
    EXPECT_TRUE(got.canaries_intact() && mask.canaries_intact());
    return {got.bits(), mask.bits()};
  }
  std::vector<unsigned char> gradients_of(const std::function<void()>& run) const {
    grad_values->reset();
    run();
    check_cuda(cudaDeviceSynchronize(), "run");
    const Buffer got = grad_values->download();
    EXPECT_TRUE(got.canaries_intact());
    return got.bits();
  }
  /// Every element is NaN, every mark 0, and nothing between them was written.
  void expect_poisoned(const std::function<void()>& run) const {
    outputs_of(run);
    expect_nan(output->download(), *made_.output);
    if (!c_.valid) return;
    Buffer mask = valid->download();
    for (std::int64_t i = 0; i < mask.layout().size(); ++i) {
      ASSERT_EQ(mask.get(i), 0) << "valid " << i;
      mask.set(i, 0x11);
    }
    EXPECT_EQ(mask.bits(), made_.valid->bits());
  }
  void expect_poisoned_gradients(const std::function<void()>& run) const {
    gradients_of(run);
    expect_nan(grad_values->download(), *to_);
  }

  std::unique_ptr<Mirror> values, source, target, output, valid, grad_output, grad_values;

 private:
  static void expect_nan(Buffer got, const Buffer& before) {
    for (std::int64_t i = 0; i < got.layout().size(); ++i) {
      ASSERT_TRUE(std::isnan(got.get(i))) << "element " << i << " is " << got.get(i);
      std::memcpy(
          static_cast<unsigned char*>(got.data()) + got.offset(i) * static_cast<std::int64_t>(size_of(got.dtype())),
          static_cast<const unsigned char*>(before.data()) +
              got.offset(i) * static_cast<std::int64_t>(size_of(got.dtype())),
          size_of(got.dtype()));
    }
    EXPECT_EQ(got.bits(), before.bits()) << "wrote between the elements";
  }

  ProblemShape c_;
  Made made_;
  std::unique_ptr<Buffer> gradient_, to_;
};

/// Both passes with offsets on the device give the bits that they give with offsets on the host.
void expect_same(const ProblemShape& c, std::uint64_t seed) {
  SCOPED_TRACE(text(c) + ", seed " + std::to_string(seed));
  const OnGpu call(c, seed);
  const OnDevice offsets = call.offsets();
  ResampleOptions known = call.options();
  known.variant = "element_search";
  const auto want = call.outputs_of([&] { call.forward(known); });
  for (const bool dependent : {false, true}) {
    ResampleOptions unknown = offsets.options(call.options());
    unknown.dependent_launch = dependent;
    EXPECT_EQ(call.outputs_of([&] { call.forward(unknown); }), want);
    const Plan plan = call.forward_plan(unknown);
    EXPECT_EQ(plan.variant(), "element_search");
    EXPECT_EQ(call.outputs_of([&] {
      plan.run();
      plan.run();
    }),
              want)
        << "planned";
    if (c.packed_source && c.packed_target) {  // one list and one tensor
      unknown.source_offset_tensor = {};
      unknown.source_offsets = call.source_offsets();
      EXPECT_EQ(call.outputs_of([&] { call.forward(unknown); }), want) << "source offsets on the host";
    }
  }
  EXPECT_EQ(call.violations(offsets.options(call.options())), call.violations(call.options()));
  if (!call.backward_allowed()) return;
  known = call.options();
  known.valid = {};
  known.variant = "row_gather";
  const auto gradients = call.gradients_of([&] { call.backward(known); });
  for (const bool dependent : {false, true}) {
    ResampleOptions unknown = offsets.options(call.options());
    unknown.valid = {};
    unknown.dependent_launch = dependent;
    EXPECT_EQ(call.gradients_of([&] { call.backward(unknown); }), gradients);
    if (c.grid) continue;
    const Plan plan = call.backward_plan(unknown);
    EXPECT_EQ(plan.variant(), "row_gather");
    EXPECT_EQ(call.gradients_of([&] {
      plan.run();
      plan.run();
    }),
              gradients)
        << "planned";
  }
}

/// One packed trajectory, whose times increase from end to end: its rows can be divided anywhere.
ProblemShape one_trajectory(std::int64_t samples, std::int64_t targets) {
  return {.batch = 1,
          .samples = samples,
          .targets = targets,
          .channels = 7,
          .groups = one_group(7, Interpolation::linear),
          .outside = Outside::nan,
          .valid = true,
          .packed_source = true,
          .packed_target = true};
}

/// Offsets of so many trajectories that divide the rows anyhow.
OffsetList divided(std::mt19937_64& random, std::int64_t rows, std::size_t batch) {
  OffsetList list(batch + 1);
  for (std::int64_t& number : list) number = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows + 1));
  list.front() = 0;
  list.back() = rows;
  std::ranges::sort(list);
  return list;
}

ProblemShape random_packed(std::mt19937_64& random) {
  ProblemShape c = random_case(random);
  c.dtype = picker(random)(DType::f16, DType::bf16, DType::f32, DType::f64);
  c.packed_source = c.packed_source || random() % 2 == 0;
  c.packed_target = !c.grid && (c.packed_target || random() % 2 == 0 || !c.packed_source);
  if (!c.packed_source && !c.packed_target) c.packed_source = true;
  c.shared_source = c.shared_source && !c.packed_source;
  c.shared_target = c.shared_target && !c.packed_target;
  return c;
}

class GpuResampleOffsetTensors : public ::testing::TestWithParam<int> {};

TEST_P(GpuResampleOffsetTensors, give_the_bits_of_offsets_on_the_host) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(static_cast<std::uint64_t>(7100 + GetParam()));
  for (int i = 0; i < problems(25); ++i) {
    expect_same(random_packed(random), random());
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuResampleOffsetTensors, ::testing::Range(0, 4));

TEST(GpuResampleOffsetTensors, of_every_type_width_and_interpolation) {
  TMAOPS_NEEDS_CHIP();
  std::uint64_t seed = 7200;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (const std::int64_t channels : {1, 7, 32, 512})
      for (const Interpolation mode : {Interpolation::linear, Interpolation::previous, Interpolation::nearest,
                                       Interpolation::cubic, Interpolation::slerp}) {
        ProblemShape c{.batch = 9,
                       .samples = 12,
                       .targets = 15,
                       .channels = channels,
                       .dtype = dtype,
                       .valid = true,
                       .packed_source = true,
                       .packed_target = true,
                       .unsorted = true};
        if (mode == Interpolation::slerp) {
          if (channels % 4 != 0) continue;
          for (std::int64_t first = 0; first < channels; first += 4) c.groups.push_back({first, 4, mode});
        } else {
          c.groups = one_group(channels, mode);
        }
        expect_same(c, ++seed);
        if (HasFailure()) return;
      }
}

TEST(GpuResampleOffsetTensors, of_many_short_and_one_long_trajectory) {
  TMAOPS_NEEDS_CHIP();
  ProblemShape c{.batch = 70000,
                 .samples = 2,
                 .targets = 2,
                 .channels = 3,
                 .outside = Outside::nan,
                 .packed_source = true,
                 .packed_target = true};
  c.groups = one_group(3, Interpolation::linear);
  expect_same(c, 7300);
  c.batch = 1;
  c.samples = c.targets = 20000;
  expect_same(c, 7301);
  // One of 40 has nearly all rows: far more than its share of the grids.
  const OnGpu call(one_trajectory(14000, 10000), 7302);
  OffsetList source(41, call.source_offsets().back()), target(41, call.target_offsets().back());
  ASSERT_GT(std::min(source[1], target[1]), 1000);
  source[0] = target[0] = 0;
  for (std::size_t i = 1; i < 20; ++i) source[i] = target[i] = static_cast<std::int64_t>(i);
  ResampleOptions known = call.options();
  known.source_offsets = source;
  known.target_offsets = target;
  const OnDevice offsets(source, target);
  const ResampleOptions unknown = offsets.options(call.options());
  known.variant = "element_search";
  EXPECT_EQ(call.outputs_of([&] { call.forward(unknown); }), call.outputs_of([&] { call.forward(known); }));
  known.variant = "row_gather";
  EXPECT_EQ(call.gradients_of([&] { call.backward(unknown); }), call.gradients_of([&] { call.backward(known); }));
  known.variant = "";
  EXPECT_EQ(call.violations(unknown), call.violations(known));
}

TEST(GpuResampleOffsetTensors, that_are_wrong_make_nan_of_everything_and_stay_in_bounds) {
  TMAOPS_NEEDS_GPU();
  std::mt19937_64 random(7400);
  const auto spoiled = [&](OffsetList good, int way) {
    const std::int64_t rows = good.back();
    const std::size_t middle = 1 + random() % (good.size() - 2);
    switch (way) {
      case 0:
        good[middle] = -1;
        break;
      case 1:
        good[middle] = rows + 1 + static_cast<std::int64_t>(random() % 1000);
        break;
      case 2:
        good.front() = 1;
        break;
      case 3:
        good.back() = rows - 1;
        break;
      case 4:
        good.back() = rows + 1;
        break;
      case 5:
        good[middle] = INT64_MAX;
        break;
      case 6:
        good[middle] = INT64_MIN;
        break;
      case 7:
        good.front() = -(std::int64_t{1} << 40);
        break;
      case 8:
        std::ranges::reverse(good);
        break;
      default:  // anything at all
        for (std::int64_t& number : good) number = static_cast<std::int64_t>(random());
        good.back() = rows + 7;
    }
    return good;
  };
  for (int round = 0; round < 60; ++round) {
    ProblemShape c = random_packed(random);
    c.batch = 2 + c.batch;
    c.samples = std::min<std::int64_t>(c.samples, 100);
    c.targets = std::min<std::int64_t>(c.targets, 100);
    if (c.packed_target && c.targets < 7) c.targets = 7;
    SCOPED_TRACE(text(c) + ", way " + std::to_string(round % 10));
    const OnGpu call(c, random());
    if (c.packed_source && call.source_offsets().back() < 2) continue;
    if (c.packed_target && call.target_offsets().back() < 2) continue;
    const bool of_source = c.packed_source && (!c.packed_target || random() % 2 == 0);
    const OnDevice offsets(of_source ? spoiled(call.source_offsets(), round % 10) : call.source_offsets(),
                           of_source ? call.target_offsets() : spoiled(call.target_offsets(), round % 10));
    for (const bool dependent : {false, true}) {
      ResampleOptions options = offsets.options(call.options());
      options.dependent_launch = dependent;
      call.expect_poisoned([&] { call.forward(options); });
      const OffsetList found = call.violations(options);
      EXPECT_GE(found[6], 1);
      if (call.backward_allowed()) {
        options.valid = {};
        call.expect_poisoned_gradients([&] { call.backward(options); });
      }
      if (HasFailure()) return;
    }
  }
}

TEST(GpuResampleOffsetTensors, that_are_wrong_are_counted_and_nothing_else_is) {
  TMAOPS_NEEDS_GPU();
  const OnGpu call({.batch = 4, .samples = 9, .targets = 9, .packed_source = true, .packed_target = true}, 7500);
  const std::int64_t rows = call.source_offsets().back();
  const OnDevice offsets({1, 5, 4, 4, rows + 1}, call.target_offsets());
  EXPECT_EQ(call.violations(offsets.options(call.options())), (OffsetList{0, 0, 0, 0, 0, 0, 3}));
  // Without room for that counter nothing is counted.
  const Mirror counts(Buffer(DType::i64, {6}));
  resample_violations(call.source->view(), call.target->view(), counts.view(), offsets.options(call.options()));
  check_cuda(cudaDeviceSynchronize(), "violations");
  const Buffer got = counts.download();
  EXPECT_TRUE(got.canaries_intact());
  EXPECT_EQ(got.values(), std::vector<double>(6, 0));
}

TEST(GpuResampleOffsetTensors, are_read_anew_by_every_replay_of_a_graph) {
  TMAOPS_NEEDS_CHIP();
  const OnGpu call(one_trajectory(400, 300), 7600);
  std::mt19937_64 random(7601);
  const auto any = [&](const OffsetList& of) { return divided(random, of.back(), 6); };
  const OffsetList source = any(call.source_offsets());
  const OffsetList target = any(call.target_offsets());
  OffsetList wrong = source;
  std::swap(wrong.front(), wrong.back());
  const std::vector<std::pair<OffsetList, OffsetList>> all{
      {source, target}, {any(source), any(target)}, {wrong, target}, {any(source), target}, {source, any(target)}};
  const auto known_options = [&](const std::pair<OffsetList, OffsetList>& lists, const char* variant) {
    ResampleOptions options = call.options();
    options.source_offsets = lists.first;
    options.target_offsets = lists.second;
    options.variant = variant;
    return options;
  };
  const OnDevice offsets(source, target);
  CountingAllocator memory;
  ResampleOptions unknown = offsets.options(call.options());
  unknown.allocator = memory.allocator();
  std::size_t bytes = call.forward_workspace(unknown);
  EXPECT_GE(bytes, 14 * sizeof(std::int64_t));
  call.forward(unknown);
  check_cuda(cudaDeviceSynchronize(), "call");
  EXPECT_EQ(memory.allocated, bytes);
  EXPECT_EQ(memory.held, 0U);

  const Plan plan = call.forward_plan(unknown);
  const Plan back = call.backward_plan(offsets.options(known_options({}, "")));
  const std::function<void(cudaStream_t)> fresh = [&](cudaStream_t stream) {
    ResampleOptions options = offsets.options(call.options());
    options.stream = stream;
    call.forward(options);
  };
  const std::function<void(cudaStream_t)> planned = [&](cudaStream_t stream) { plan.run(stream); };
  const std::function<void(cudaStream_t)> fresh_back = [&](cudaStream_t stream) {
    ResampleOptions options = offsets.options(call.options());
    options.valid = {};
    options.stream = stream;
    call.backward(options);
  };
  const std::function<void(cudaStream_t)> planned_back = [&](cudaStream_t stream) { back.run(stream); };
  int number = 0;
  for (const auto* run : {&fresh, &planned, &fresh_back, &planned_back}) {
    SCOPED_TRACE(number);
    const bool forward = number++ < 2;
    offsets.set(source, target);
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    check_cuda(cudaStreamCreate(&stream), "stream");
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    (*run)(stream);
    check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
    check_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
    const auto replayed = [&] {
      check_cuda(cudaGraphLaunch(replay, stream), "replay");
      check_cuda(cudaStreamSynchronize(stream), "replay");
    };
    for (const auto& lists : all) {
      if (&lists == &all[2]) {
        offsets.set(lists.first, lists.second);
        if (forward)
          call.expect_poisoned(replayed);
        else
          call.expect_poisoned_gradients(replayed);
        continue;
      }
      offsets.set(lists.first, lists.second);
      if (forward) {
        const auto want = call.outputs_of([&] { call.forward(known_options(lists, "element_search")); });
        EXPECT_EQ(call.outputs_of(replayed), want);
      } else {
        ResampleOptions known = known_options(lists, "row_gather");
        known.valid = {};
        const auto want = call.gradients_of([&] { call.backward(known); });
        EXPECT_EQ(call.gradients_of(replayed), want);
      }
    }
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
}

TEST(GpuResampleOffsetTensors, are_bound_to_a_plan_with_its_other_tensors) {
  TMAOPS_NEEDS_CHIP();
  const OnGpu call(one_trajectory(150, 150), 7700);
  std::mt19937_64 random(7701);
  const auto any = [&](const OffsetList& of) { return divided(random, of.back(), 5); };
  const OnDevice first(any(call.source_offsets()), any(call.target_offsets()));
  const OffsetList source = any(call.source_offsets());
  const OffsetList target = any(call.target_offsets());
  const OnDevice second(source, target);
  Plan plan = call.forward_plan(first.options(call.options()));
  plan.rebind({call.values->view().data, call.source->view().data, call.target->view().data, call.output->view().data,
               call.valid->view().data, second.source.get(), second.target.get()});
  first.set(OffsetList(6, -1), OffsetList(6, -1));
  ResampleOptions known = call.options();
  known.source_offsets = source;
  known.target_offsets = target;
  known.variant = "element_search";
  EXPECT_EQ(call.outputs_of([&] { plan.run(); }), call.outputs_of([&] { call.forward(known); }));
  try {
    plan.rebind({call.values->view().data, call.source->view().data, call.target->view().data, second.source.get(),
                 call.valid->view().data, second.source.get(), second.target.get()});
    ADD_FAILURE() << "offsets in the output";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::overlap) << error.what();
  }

  known.valid = {};
  known.variant = "row_gather";
  ResampleOptions unknown = call.options();
  unknown.valid = {};
  Plan back = call.backward_plan(first.options(unknown));
  back.rebind({call.source->view().data, call.target->view().data, call.grad_output->view().data,
               call.grad_values->view().data, second.source.get(), second.target.get()});
  EXPECT_EQ(call.gradients_of([&] { back.run(); }), call.gradients_of([&] { call.backward(known); }));
}

TEST(GpuResampleOffsetTensors, are_not_waited_for) {
  TMAOPS_NEEDS_CHIP();
  const OnGpu call(
      {.batch = 5, .samples = 30, .targets = 30, .channels = 4, .packed_source = true, .packed_target = true}, 7800);
  const OnDevice offsets = call.offsets();
  ResampleOptions options = offsets.options(call.options());
  const Mirror counts(Buffer(DType::i64, {kResampleViolations}));
  const auto enqueue = [&] {
    call.forward(options);
    call.backward(options);
    resample_violations(call.source->view(), call.target->view(), counts.view(), options);
  };
  enqueue();  // kernels are loaded, and memory is there
  check_cuda(cudaDeviceSynchronize(), "first calls");
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  options.stream = stream;
  enqueue();
  check_cuda(cudaStreamSynchronize(stream), "first calls on the stream");
  std::atomic<bool> go{false};
  const auto hold = [](void* flag) {  // for at most ten seconds, so that a call that waits fails the test and ends it
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!static_cast<std::atomic<bool>*>(flag)->load() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  check_cuda(cudaLaunchHostFunc(stream, hold, &go), "hold");
  enqueue();
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady) << "the calls returned after the stream had gone on";
  go = true;
  check_cuda(cudaStreamSynchronize(stream), "stream");
  cudaStreamDestroy(stream);
}

TEST(GpuResampleOffsetTensors, are_refused_by_every_other_variant) {
  TMAOPS_NEEDS_GPU();
  const OnGpu call(
      {.batch = 5, .samples = 30, .targets = 30, .channels = 16, .packed_source = true, .packed_target = true}, 7900);
  const OnDevice offsets = call.offsets();
  ResampleOptions options = offsets.options(call.options());
  int refused = 0;
  const auto expect_refusal = [&](const auto& variant, std::string_view taker, const std::function<void()>& run) {
    if (!runs_here(variant) || variant.name == taker) return;
    options.variant = std::string(variant.name);
    try {
      run();
      ADD_FAILURE() << variant.name << " ran";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::variant_refuses) << error.what();
      ++refused;
    }
  };
  for (const auto& variant : ops::resample::variants())
    expect_refusal(variant, "element_search", [&] { call.forward(options); });
  for (const auto& variant : ops::resample_backward::variants())
    expect_refusal(variant, "row_gather", [&] { call.backward(options); });
  EXPECT_GE(refused, 3);
}

}  // namespace
}  // namespace tmaops::test
