// Adds to vector_atomics_backward that nothing is added to the value's gradient atomically: samples are listed by pixel
// (integer counts instead of 4 D additions of f32 per sample), and a warp sums each pixel in registers. Deterministic
// with integer sums, whatever the order of the lists. The gradients of locations and weights are made on the way, and
// their kernel writes the lists.
#include <numeric>

#include "ops/ms_deform_attn/cuda/pixel_lists_points.cuh"
#include "ops/ms_deform_attn/cuda/pixel_lists_sums.cuh"

namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace): the room's own parts

constexpr std::int64_t kSamplesAtATime = 1 << 23;  // whole images, 160 MB of lists: enc (5.7 million) in one go
/// Samples a warp reads: a strip's first list is read for its right shares alone, so longer strips read less (256: 10 %
/// more time), but the last warps end later.
constexpr double kVisitsPerStrip = 2048;
constexpr int kMostStripPixels = 16;  // less than a warp's threads, which hold the ranges of a strip
constexpr int kPlacedPerThread = 8;
constexpr int kFewestCountBits = 10;  // so that a term stays below 2^50 units, as FixedTotals needs

/// Counts of a level in shared memory, where they fit and a block has enough samples to pay for clearing and adding
/// them.
constexpr std::int64_t kMostCountedBytes = 200 * 1024;
constexpr std::int64_t kSamplesPerList = 2;  // of one image and head, on average

struct PreparedLists : Prepared {
  Lists lists{};
  SumsTo to{};
  std::int64_t images = 1;        // at a time
  std::size_t counted_bytes = 0;  // Lists::total and ::counts
  int parts = 0;                  // of the queries, counted in shared memory each; 0: in global memory
  int shared_bytes = 0;           // for the counts of the largest level
};

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

/// Levels with the longest lists first: their strips take longest.
void share_out(const ms_deform_attn::Problem& problem, std::int64_t images, PreparedLists& made) {
  const auto samples = [&](const ms_deform_attn::Level& level) {
    return static_cast<double>(level.points * problem.queries) / static_cast<double>(level.height * level.width);
  };
  std::vector<int> order(problem.levels.size());
  std::iota(order.begin(), order.end(), 0);
  const auto level_of = [&](int l) -> const ms_deform_attn::Level& {
    return problem.levels[static_cast<std::size_t>(l)];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return samples(level_of(a)) > samples(level_of(b)); });
  int first = 0;
  for (std::size_t l = 0; l < problem.levels.size(); ++l) {
    const ms_deform_attn::Level& level = problem.levels[l];
    made.lists.first[l] = first;
    first += static_cast<int>((level.height + 1) * (level.width + 1));
  }
  made.lists.per_head = first;
  int warps = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ms_deform_attn::Level& level = level_of(order[i]);
    const double pixels = kVisitsPerStrip / std::max(2 * samples(level), 1.0);
    LevelStrips& strips = made.lists.strips[i];
    strips.level = order[i];
    strips.pixels = std::clamp(static_cast<int>(pixels), 1, kMostStripPixels);
    strips.row_strips = static_cast<int>((level.width + strips.pixels - 1) / strips.pixels);
    strips.first_warp = warps;
    warps += static_cast<int>(images * problem.heads * level.height * strips.row_strips);
  }
  made.to.warps = warps;
}

/// Chooses where to count, and parts of the queries so that blocks fill the machine once, two per multiprocessor.
void choose_counting(const ms_deform_attn::Problem& problem, PreparedLists& made) {
  std::int64_t largest = 0;
  for (const ms_deform_attn::Level& level : problem.levels)
    largest = std::max(largest, (level.height + 1) * (level.width + 1));
  const std::int64_t bytes = largest * static_cast<std::int64_t>(sizeof(unsigned));
  const DeviceInfo& device = device_info(problem.device);
  if (bytes > std::min(kMostCountedBytes, device.shared_memory_per_block) ||
      problem.queries * problem.points < kSamplesPerList * made.lists.per_head)
    return;
  const std::int64_t blocks = made.images * problem.heads * static_cast<std::int64_t>(problem.levels.size());
  const std::int64_t parts =
      std::clamp<std::int64_t>(2 * device.multiprocessors / std::max<std::int64_t>(blocks, 1), 1, 16);
  made.shared_bytes = static_cast<int>(bytes);
  made.lists.part_queries = static_cast<int>((problem.queries + parts - 1) / parts);
  made.parts = static_cast<int>((problem.queries + made.lists.part_queries - 1) / made.lists.part_queries);
}

template <class Point>
void count(const PreparedLists& prepared, const Lists& lists, Stream stream) {
  const Call& in = prepared.call.inputs;
  if (prepared.parts > 0) {
    const LaunchConfig config{.grid = dim3(static_cast<unsigned>(prepared.parts * lists.images * in.heads),
                                           static_cast<unsigned>(in.level_count)),
                              .block = dim3(kCountThreads),
                              .shared_bytes = prepared.shared_bytes};
    launch_kernel<count_in_shared_memory<Point>>(kSite, config, stream, prepared.call, lists);
    return;
  }
  const std::int64_t samples = lists.images * in.queries * in.heads * in.points;
  const LaunchConfig config{.grid = dim3(static_cast<unsigned>((samples + kBackwardThreads - 1) / kBackwardThreads)),
                            .block = dim3(kBackwardThreads)};
  launch_kernel<count_samples<Point>>(kSite, config, stream, prepared.call, lists);
}

template <class Value>
void write_points(const PreparedLists& prepared, const Lists& lists, int bits, Stream stream) {
  const Call& in = prepared.call.inputs;
  const std::int64_t items = lists.images * in.queries * in.heads;
  const LaunchConfig config = one_group_each(items, kBackwardThreads, bits, false);
  const auto run = [&]<int lane_bits>() {
    launch_kernel<point_gradients<Value, lane_bits>>(kSite, config, stream, prepared.call, lists);
  };
  if (bits == 0) run.template operator()<0>();
  if (bits == 1) run.template operator()<1>();
  if (bits == 2) run.template operator()<2>();
  if (bits == 3) run.template operator()<3>();
  if (bits == 4) run.template operator()<4>();
  if (bits == 5) run.template operator()<5>();
}

template <class Gradient>
void sum(const PreparedLists& prepared, const Lists& lists, Stream stream) {
  const LaunchConfig config{
      .grid = dim3(static_cast<unsigned>((prepared.to.warps + kBackwardWarps - 1) / kBackwardWarps)),
      .block = dim3(kBackwardThreads)};
  if (prepared.call.largest != nullptr)
    launch_kernel<sum_pixels<Gradient, FixedTotals>>(kSite, config, stream, prepared.call, lists, prepared.to);
  else
    launch_kernel<sum_pixels<Gradient, FloatTotals>>(kSite, config, stream, prepared.call, lists, prepared.to);
}

}  // namespace

Support supports(const Problem& problem, const DeviceInfo&) {
  const ms_deform_attn::Problem& forward = problem.forward;
  if (Support support = supports_items(problem); !support) return support;
  if (Support support = ms_deform_attn::cuda::supports_vectors(forward); !support) return support;
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

std::shared_ptr<const void> prepare(const Problem& problem, const Arguments& arguments) {
  const ms_deform_attn::Problem& forward = problem.forward;
  auto made = std::make_shared<PreparedLists>();
  Prepared& base = *made;
  base = prepare_inputs_and_points(problem, arguments);
  BackwardCall& call = made->call;
  const std::int64_t elements = forward.batch * forward.length * forward.heads * forward.channels;
  if (!problem.grad_value || elements == 0) return made;

  made->images = images_at_a_time(forward);
  share_out(forward, made->images, *made);
  choose_counting(forward, *made);
  const std::int64_t lists = made->images * forward.heads * made->lists.per_head;
  const std::int64_t samples = made->images * samples_per_image(forward);
  const auto align = [](std::int64_t bytes) { return static_cast<std::size_t>((bytes + 15) / 16 * 16); };
  const std::size_t head_bytes = 16;
  made->counted_bytes = align(16 + lists * 4);
  const std::size_t ranges_bytes = align(lists * 8);
  const std::size_t samples_bytes = static_cast<std::size_t>(samples) * sizeof(Listed);
  const std::size_t ranks_bytes = align(samples * 4);
  const std::size_t bases_bytes = align(made->parts * lists * 4);
  const CurrentDevice current(forward.device.index);
  void* memory = nullptr;
  check_cuda(
      cudaMalloc(&memory, head_bytes + made->counted_bytes + ranges_bytes + samples_bytes + ranks_bytes + bases_bytes),
      "ms_deform_attn_backward: scratch of the plan");
  made->scratch = std::shared_ptr<void>(memory, [](void* at) { (void)cudaFree(at); });
  auto* at = static_cast<unsigned char*>(memory);
  if (problem.deterministic) {
    call.largest = reinterpret_cast<unsigned*>(at);
    call.count_bits = std::max(count_bits(forward), kFewestCountBits);
  }
  at += head_bytes;
  made->lists.total = reinterpret_cast<unsigned*>(at);
  made->lists.counts = reinterpret_cast<unsigned*>(at + 16);
  at += made->counted_bytes;
  made->lists.ranges = reinterpret_cast<uint2*>(at);
  at += ranges_bytes;
  made->lists.samples = reinterpret_cast<Listed*>(at);
  made->lists.ranks = reinterpret_cast<unsigned*>(at + samples_bytes);
  if (made->parts > 0) made->lists.bases = reinterpret_cast<unsigned*>(at + samples_bytes + ranks_bytes);

  const ConstTensorView value = arguments.gradients.value;
  made->to.rows = value_rows(value);
  made->to.dtype = value.dtype;
  made->to.vectors = value.dtype == DType::f32 && value.strides[3] == 1 && row_alignment(value) == 16;
  while (forward.channels > kFour << made->to.lane_bits) ++made->to.lane_bits;
  return made;
}

void launch(const Problem& problem, const Arguments& arguments, Stream stream) {
  const auto& prepared = *static_cast<const PreparedLists*>(arguments.prepared.get());
  const ms_deform_attn::Problem& forward = problem.forward;
  const CurrentDevice current(forward.device.index);
  const auto on = static_cast<cudaStream_t>(stream);
  const bool sums = prepared.lists.ranges != nullptr;
  const int bits = lane_bits(forward);
  const bool samples = prepared.call.inputs.items > 0;
  if (!sums && !samples) return;
  with_types(forward, [&](auto* value, auto* point) {
    using Value = std::remove_pointer_t<decltype(value)>;
    using Point = std::remove_pointer_t<decltype(point)>;
    if (prepared.call.largest != nullptr) {
      check_cuda(cudaMemsetAsync(prepared.call.largest, 0, 2 * sizeof(unsigned), on), kSite.where);
      if (samples)
        launch_kernel<find_largest_vectors<Value>>(
            kSite, rounds(prepared.call.inputs.items << bits, forward.device.index), stream, prepared.call, bits);
    }
    Lists lists = prepared.lists;
    for (std::int64_t first = 0; first < forward.batch; first += prepared.images) {
      lists.first_image = first;
      lists.images = static_cast<int>(std::min(prepared.images, forward.batch - first));
      if (sums) {
        check_cuda(cudaMemsetAsync(lists.total, 0, prepared.counted_bytes, on), kSite.where);
        if (samples) count<Point>(prepared, lists, stream);
        const auto entries = static_cast<unsigned>(lists.images * forward.heads * lists.per_head);
        constexpr unsigned kPlaced = kPlacedPerThread * kBackwardThreads;
        launch_kernel<place_lists<kPlacedPerThread>>(
            kSite, {.grid = dim3((entries + kPlaced - 1) / kPlaced), .block = dim3(kBackwardThreads)}, stream, lists,
            entries);
      }
      if (samples) write_points<Value>(prepared, lists, bits, stream);
      if (!sums) continue;
      if (prepared.call.grad_output == DType::f32)
        sum<float>(prepared, lists, stream);
      else
        sum<Value>(prepared, lists, stream);
    }
  });
}

}  // namespace tmaops::ops::ms_deform_attn_backward::pixel_lists_backward
