// Version 4: adds to vector_atomics_backward that nothing is added to the value's gradient atomically: samples are
// listed by pixel (integer counts instead of 4 D additions of f32 per sample), and a warp sums each pixel in registers,
// as integers: deterministic, whatever the order of the lists. The gradients of locations and weights are made on the
// way, and their kernel writes the lists.
#include <algorithm>
#include <numeric>

#include "ops/ms_deform_attn/backward/gpu/pixel_lists_backward/points.cuh"
#include "ops/ms_deform_attn/backward/gpu/pixel_lists_backward/sums.cuh"
#include "ops/ms_deform_attn/backward/shared/warp_per_item.cuh"
#include "ops/ms_deform_attn/shared/vector_rows.hpp"

namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward {
namespace {

/// Samples a warp reads: a strip's first list is read for its right shares alone, so longer strips read less, but the
/// last warps end later.
constexpr double kVisitsPerStrip = 2048;
constexpr int kMostStripPixels = 16;  // less than a warp's threads, which hold the ranges of a strip
constexpr int kPlacedPerThread = 8;
constexpr int kFewestCountBits = 10;  // so that a term stays below 2^50 units, as FixedTotals needs

constexpr std::int64_t kSamplesAtATime = 1 << 23;  // 160 MB of lists: an encoder's batch in one go

std::int64_t samples_per_image(const ms_deform_attn::Problem& problem) {
  return problem.queries * problem.heads * problem.points;
}
std::int64_t images_at_a_time(const ms_deform_attn::Problem& problem) {
  return std::clamp<std::int64_t>(kSamplesAtATime / std::max<std::int64_t>(samples_per_image(problem), 1), 1,
                                  std::max<std::int64_t>(problem.batch, 1));
}
std::int64_t lists_per_head(const ms_deform_attn::Problem& problem) {
  std::int64_t lists = 0;
  for (const ms_deform_attn::Level& level : problem.levels) lists += (level.height + 1) * (level.width + 1);
  return lists;
}

/// What the kernels of one batch of images take.
struct Setup {
  BackwardCall call{};
  ItemOrder order{};
  Lists lists{};
  SumsTo to{};
  std::int64_t images = 1;        // at a time
  std::size_t counted_bytes = 0;  // Lists::total and ::counts
};

/// Levels with the longest lists first: their strips take longest.
void share_out(const ms_deform_attn::Problem& problem, Setup& made) {
  const auto samples = [&](const ms_deform_attn::Level& level) {
    return static_cast<double>(level.points * problem.queries) / static_cast<double>(level.height * level.width);
  };
  std::vector<std::size_t> order(problem.levels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t l) { return samples(problem.levels[l]); });
  int first = 0;
  for (std::size_t l = 0; l < problem.levels.size(); ++l) {
    const ms_deform_attn::Level& level = problem.levels[l];
    made.lists.first[l] = first;
    first += static_cast<int>((level.height + 1) * (level.width + 1));
  }
  made.lists.per_head = first;
  int warps = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ms_deform_attn::Level& level = problem.levels[order[i]];
    const double pixels = kVisitsPerStrip / std::max(2 * samples(level), 1.0);
    LevelStrips& strips = made.lists.strips[i];
    strips.level = static_cast<int>(order[i]);
    strips.pixels = std::clamp(static_cast<int>(pixels), 1, kMostStripPixels);
    strips.row_strips = static_cast<int>((level.width + strips.pixels - 1) / strips.pixels);
    strips.first_warp = warps;
    warps += static_cast<int>(made.images * problem.heads * level.height * strips.row_strips);
  }
  made.to.warps = warps;
}

/// Gives the lists their scratch memory.
void allocate(Work& work, const Problem& problem, Setup& made) {
  const ms_deform_attn::Problem& forward = problem.forward;
  const std::int64_t lists = made.images * forward.heads * made.lists.per_head;
  const std::int64_t samples = made.images * samples_per_image(forward);
  const auto align = [](std::int64_t bytes) { return static_cast<std::size_t>((bytes + 15) / 16 * 16); };
  made.counted_bytes = align(16 + lists * 4);
  const std::size_t ranges_bytes = align(lists * 8);
  const std::size_t samples_bytes = static_cast<std::size_t>(samples) * sizeof(Listed);
  const std::size_t ranks_bytes = static_cast<std::size_t>(samples) * 4;
  unsigned char* at = work.allocate(16 + made.counted_bytes + ranges_bytes + samples_bytes + ranks_bytes);
  made.call.largest = reinterpret_cast<unsigned*>(at);
  made.call.count_bits = std::max(count_bits(forward), kFewestCountBits);
  made.lists.total = reinterpret_cast<unsigned*>(at + 16);
  made.lists.counts = reinterpret_cast<unsigned*>(at + 32);
  at += 16 + made.counted_bytes;
  made.lists.ranges = reinterpret_cast<uint2*>(at);
  at += ranges_bytes;
  made.lists.samples = reinterpret_cast<Listed*>(at);
  made.lists.ranks = reinterpret_cast<unsigned*>(at + samples_bytes);
}

/// The kernels of one batch of images, whose lists `lists` are.
template <class Value, class Point>
void add_batch(Work& work, const Setup& setup, const Lists& lists, int bits) {
  const Call& in = setup.call.inputs;
  const bool sums = lists.ranges != nullptr;
  const auto blocks = [](std::int64_t count, std::int64_t each) -> LaunchShape {
    return {.grid = static_cast<unsigned>((count + each - 1) / each), .block = kBackwardThreads};
  };
  if (sums) {
    work.add_memset(lists.total, 0, setup.counted_bytes);
    const std::int64_t samples = lists.images * in.queries * in.heads * in.points;
    if (samples > 0) work.add(count_samples<Point>, blocks(samples, kBackwardThreads), setup.call, lists);
    const auto entries = static_cast<unsigned>(lists.images * in.heads * lists.per_head);
    work.add(place_lists<kPlacedPerThread>, blocks(entries, kPlacedPerThread * kBackwardThreads), lists, entries);
  }
  if (in.items > 0)
    with_constant<0, 5>(bits, [&]<int lane_bits>(Constant<lane_bits>) {
      work.add(point_gradients<Value, lane_bits>,
               one_group_each(lists.images * in.queries * in.heads, kBackwardThreads, lane_bits, false), setup.call,
               lists, setup.order);
    });
  if (!sums) return;
  auto* sum = setup.call.grad_output == DType::f32 ? sum_pixels<float> : sum_pixels<Value>;
  work.add(sum, blocks(setup.to.warps, kBackwardWarps), setup.call, lists, setup.to);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  const ms_deform_attn::Problem& forward = problem.forward;
  if (!problem.deterministic) return Support::no("sums integers, for deterministic gradients");
  if (Support support = supports_items(problem); !support) return support;
  if (Support support = supports_vectors(forward); !support) return support;
  if (forward.channels % kFour != 0 || forward.channels > kFour * device::kWarpThreads)
    return Support::no("needs at most " + std::to_string(kFour * device::kWarpThreads) + " channels");
  constexpr std::int64_t kMost = INT32_MAX;
  const std::int64_t images = images_at_a_time(forward);
  if (images * samples_per_image(forward) > kMost - kBackwardThreads)
    return Support::no("needs less than 2^31 samples per image");
  if (forward.length > kMost / 4 ||
      images * forward.heads > kMost / std::max<std::int64_t>(lists_per_head(forward), 1) / 2)
    return Support::no("needs less than 2^29 pixels per image, and less than 2^30 pixels times heads at a time");
  return Support::yes();
}

Work plan(const Problem& problem, const Arguments& arguments, const Config&) {
  const ms_deform_attn::Problem& forward = problem.forward;
  Work work(kSite, forward.device, arguments.workspace);
  Setup made;
  made.call = backward_call(problem, arguments);
  made.order = item_order(forward);
  const bool sums = problem.grad_value && forward.batch * forward.length * forward.heads * forward.channels > 0;
  if (!sums && made.call.inputs.items == 0) return work;
  const int bits = lane_bits(forward);
  if (sums) {
    made.images = images_at_a_time(forward);
    share_out(forward, made);
    allocate(work, problem, made);
    const ConstTensorView value = arguments.gradients.value;
    made.to.rows = value_rows(value);
    made.to.dtype = value.dtype;
    made.to.vectors = value.strides[3] == 1 && row_alignment(value) >= kFour * static_cast<int>(size_of(value.dtype));
    while (forward.channels > kFour << made.to.lane_bits) ++made.to.lane_bits;
  }
  with_types(forward, [&]<class Value, class Point>(Value*, Point*) {
    if (made.call.largest != nullptr) {
      work.add_memset(made.call.largest, 0, 2 * sizeof(unsigned));
      if (made.call.inputs.items > 0)
        work.add(find_largest<Value>, rounds(made.call.inputs.items * device::kWarpThreads, forward.device), made.call);
    }
    Lists lists = made.lists;
    for (; lists.first_image < forward.batch; lists.first_image += made.images) {
      lists.images = static_cast<int>(std::min(made.images, forward.batch - lists.first_image));
      add_batch<Value, Point>(work, made, lists, bits);
    }
  });
  return work;
}

}  // namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward
