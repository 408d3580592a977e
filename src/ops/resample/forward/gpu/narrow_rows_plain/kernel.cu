// Plain calls with f32 times and rows of any number of bytes, up to 128: one thread per target, as in narrow_rows. A
// block takes a tile of one trajectory, or several whole short ones with all their samples. The output of a block
// leaves in one bulk store where it is whole chunks.
//
// With dependent launch, and blocks of whole trajectories that are all resident at once, the blocks of the next call
// start as these leave, and have the L2 fetch what they will read before they wait for this call. That pays only if
// every multiprocessor takes the same number of blocks of one call and then of the next, so blocks ask for so much
// shared memory that no more fit (docs/findings/resample.md, R11).
#include "device/bulk_copy.cuh"
#include "device/fence.cuh"
#include "device/shared_memory.cuh"
#include "ops/resample/forward/shared/narrow_row.cuh"
#include "ops/resample/forward/shared/plain.hpp"
#include "ops/resample/forward/shared/plain_place.cuh"
#include "ops/resample/forward/shared/resident.cuh"
#include "ops/resample/shared/rows.cuh"
#include "ops/resample/shared/shared_array.cuh"

namespace tmaops::ops::resample::narrow_rows_plain {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the operator's shared device code

struct Storage {
  device::Barrier times_ready;
  device::Barrier rows_ready;
  alignas(128) unsigned char bytes[96 * 1024];  // times, rows, strips; the launch asks for what the tile needs
};

/// What a block takes.
enum class Takes { tile, whole_trajectories };

/// Bytes of a row that the kernel is compiled for: poses and joints of 16 and 32-bit values. Others are loops.
constexpr int kAnyBytes = 0;

struct Job : PlainCall {  // strides of values and output: values
  int batch;
  int time_limit, row_limit;            // the last sample that a window may begin with
  int time_unit_limit, row_unit_limit;  // the same in chunks of the whole tensor
  bool ahead;                           // reads ahead of the kernel in front
  NarrowCut cut;
};

template <class Value, int known_bytes, Takes takes>
__global__ void __launch_bounds__(kMostNarrowThreads, resident_blocks(kMostNarrowThreads, known_bytes > 0 ? 8 : 4))
    kernel(const __grid_constant__ Job job) {
  constexpr bool whole = takes == Takes::whole_trajectories;
  constexpr int size = static_cast<int>(sizeof(Value));
  Storage& shared = device::dynamic_shared<Storage, kSite.smem>();
  if (whole && job.ahead) device::let_next_kernel_start();
  const NarrowCut& cut = job.cut;
  const auto thread = static_cast<int>(threadIdx.x);
  const int width = known_bytes > 0 ? known_bytes : cut.row_bytes;

  // Samples count from the first one of trajectory b.
  const int b = static_cast<int>(whole ? blockIdx.x * static_cast<unsigned>(cut.trajectories) : blockIdx.y);
  const int begin = whole ? 0 : static_cast<int>(blockIdx.x) * cut.tile;
  const int end =
      whole ? min(cut.trajectories, job.batch - b) * job.target_count : min(begin + cut.tile, job.target_count);
  const int place = whole ? 0 : sample_beside(job.pace, begin);
  constexpr int begins = whole ? ~0 : ~1;  // tiles: at sectors of 32 bytes, which are what memory is read in
  const int zero = b * job.time_stride;
  const int time_unit = min(
      static_cast<int>(static_cast<unsigned>(zero + max(min(place - cut.time_margin, job.time_limit), 0)) / 4) & begins,
      job.time_unit_limit);
  const int first_row = max(min(place - cut.row_margin, job.row_limit), 0);
  const std::int64_t values_byte = static_cast<std::int64_t>(b * job.value_stride) * size;
  const std::int64_t row_byte = values_byte + static_cast<std::int64_t>(first_row) * width;
  const int row_unit = min(static_cast<int>(row_byte >> 4) & begins, job.row_unit_limit);
  const unsigned char* time_copy = job.times + static_cast<std::int64_t>(time_unit) * 16;
  const unsigned char* row_copy = job.values + static_cast<std::int64_t>(row_unit) * 16;
  if (thread == 0) init_barriers(shared);
  if (whole && job.ahead && thread == device::kWarpThreads) {
    device::bulk_prefetch(row_copy, static_cast<std::uint32_t>(cut.copied_row_bytes));
    device::bulk_prefetch(time_copy, static_cast<std::uint32_t>(cut.time_bytes));
    device::bulk_prefetch(job.targets + static_cast<std::int64_t>(b * job.target_stride) * 4,
                          static_cast<std::uint32_t>(end * 4) & ~15u);
  }
  device::wait_for_previous_kernel();

  // Fetch.
  const int inside = whole ? static_cast<int>(__umulhi(threadIdx.x, cut.target_reciprocal)) : 0;
  const int t = begin + thread - inside * job.target_count;
  const bool active = begin + thread < end;
  float q{};
  if (active) q = device::load_now(reinterpret_cast<const float*>(job.targets) + (b + inside) * job.target_stride + t);
  if (thread == 0) {
    device::arrive_expect_bytes(shared.times_ready, static_cast<std::uint32_t>(cut.time_bytes));
    device::bulk_load(array_of(shared.bytes, kFirstArray), time_copy, static_cast<std::uint32_t>(cut.time_bytes),
                      shared.times_ready);
    device::arrive_expect_bytes(shared.rows_ready, static_cast<std::uint32_t>(cut.copied_row_bytes));
    device::bulk_load(array_of(shared.bytes, cut.rows), row_copy, static_cast<std::uint32_t>(cut.copied_row_bytes),
                      shared.rows_ready);
  }

  // Search: one target per thread.
  __syncthreads();  // barriers are initialised
  const int base = inside * job.samples;
  const auto* times = reinterpret_cast<const float*>(job.times) + (zero + base);
  device::wait(shared.times_ready, 0);
  Place<int> at{0, 0.0f};
  if (active) {
    const int held = time_unit * 4 - (zero + base);  // the trajectory's sample that the window begins with
    const int from = max(held, 0);
    const int until = min(held + cut.time_bytes / 4, job.samples);
    const auto* window = reinterpret_cast<const float*>(array_of(shared.bytes, kFirstArray)) + (from - held);
    at = place_in(job.interpolation, find_interval(times, job.samples, window, Range{from, until - from}, q), q);
  }

  // Combine.
  device::wait(shared.rows_ready, 0);
  if (!whole || !job.ahead) device::let_next_kernel_start();
  const int first = begin + thread / device::kWarpThreads * device::kWarpThreads;
  unsigned char* output =
      job.output + static_cast<std::int64_t>(b * job.output_stride) * size + static_cast<std::int64_t>(first) * width;
  const int phase = cut.stores_tile ? 0 : static_cast<int>(reinterpret_cast<std::uintptr_t>(output) & 15);
  unsigned char* strip = array_of(shared.bytes, cut.strips) + thread / device::kWarpThreads * cut.strip_bytes;
  if (active) {
    const int row = base + at.row;
    const int offset =
        static_cast<int>(row_byte - static_cast<std::int64_t>(row_unit) * 16) + (row - first_row) * width;
    const bool here = offset >= 0 && offset + (at.weight != 0.0f ? 2 : 1) * width <= cut.copied_row_bytes;
    combine_target<Value, known_bytes>(cut, strip + phase + device::lane_index() * width,
                                       array_of(shared.bytes, cut.rows) + offset, here,
                                       job.values + values_byte + static_cast<std::int64_t>(row) * width, at.weight);
  }
  if (cut.stores_tile) {
    device::fence_async_shared();
    __syncthreads();
    if (thread == 0) {  // its strip is the first one
      device::bulk_store(output, strip, static_cast<std::uint32_t>((end - begin) * width));
      device::commit_stores();
      device::wait_stores_read();
    }
    return;
  }
  __syncwarp();
  const int targets = min(device::kWarpThreads, end - first);
  if (targets > 0) store_strip<Value>(output, strip, phase, targets * width);
}

/// Whether what every block writes is whole chunks, for blocks of `targets` targets one after the other.
bool stores_tiles(const Problem& problem, std::int64_t targets, bool whole) {
  const auto chunks = [&](std::int64_t elements) {
    return elements * static_cast<std::int64_t>(size_of(problem.values)) % 16 == 0;
  };
  return problem.output_alignment == 16 && chunks(targets * problem.channels) &&
         chunks((whole ? problem.batch : 1) * problem.target * problem.channels) &&
         (whole || chunks(problem.output_stride));
}

Job make_job(const Problem& problem, const Arguments& arguments, const NarrowCut& cut) {
  const auto size = static_cast<std::int64_t>(size_of(problem.values));
  Job job{};
  static_cast<PlainCall&>(job) = make_plain_call(problem, arguments, 1);
  job.batch = static_cast<int>(problem.batch);
  job.cut = cut;
  const std::int64_t times = ((problem.batch - 1) * problem.source_times_stride + problem.source) * 4 / 16 * 16;
  const std::int64_t values =
      ((problem.batch - 1) * problem.values_stride + problem.source * problem.channels) * size / 16 * 16;
  job.cut.time_bytes = static_cast<int>(std::min<std::int64_t>(cut.time_bytes, times));
  job.cut.copied_row_bytes = static_cast<int>(std::min<std::int64_t>(cut.copied_row_bytes, values));
  // Windows of tiles begin up to 16 bytes in front of the chunk of their first sample, at a sector of 32 bytes: the
  // last ones that much later.
  const bool whole = cut.trajectories > 0;
  job.time_limit = whole ? 0 : job.samples - cut.time_capacity + 4;
  job.row_limit = whole ? 0 : job.samples - cut.row_capacity + (15 + cut.row_bytes) / cut.row_bytes;
  job.time_unit_limit = static_cast<int>((times - job.cut.time_bytes) / 16);
  job.row_unit_limit = static_cast<int>((values - job.cut.copied_row_bytes) / 16);
  return job;
}

}  // namespace

Work plan(const Problem& problem, const Arguments& arguments, const Config& config) {
  Work work(kSite, problem.device);
  const DeviceInfo& device = device_info(problem.device);
  const bool whole = config.trajectories > 0;
  const int threads = whole ? round_up(config.trajectories * static_cast<int>(problem.target), kWarp) : kNarrowThreads;
  const std::int64_t targets = whole ? config.trajectories * problem.target : threads;
  const NarrowCut cut =
      make_narrow_cut(problem, problem.target, config.trajectories, threads, stores_tiles(problem, targets, whole));
  Job job = make_job(problem, arguments, cut);
  LaunchShape shape{.block = static_cast<unsigned>(threads),
                    .shared_bytes = static_cast<int>(offsetof(Storage, bytes)) + cut.shared_end,
                    .dependent = arguments.dependent_launch};
  constexpr int kMostShared = static_cast<int>(sizeof(Storage));
  if (whole) {
    shape.grid = static_cast<unsigned>((problem.batch + config.trajectories - 1) / config.trajectories);
    const int even = one_generation(shape.grid.x, threads, shape.shared_bytes, kMostShared, device);
    job.ahead = shape.dependent && even > 0 && threads > kWarp && !problem.shared_target_times &&
                config.trajectories * problem.target % 4 == 0 && problem.target_times_alignment == 16;
    if (job.ahead) shape.shared_bytes = even;
  } else {
    shape.grid = tile_grid((problem.target + cut.tile - 1) / cut.tile, problem.batch);
    // Where tiles have many rows, as many blocks as run best beside one another, and no more.
    constexpr std::int64_t kThreads = 12 * 128;
    if (problem.target <= problem.source)
      shape.shared_bytes =
          std::max(shape.shared_bytes, one_generation(device.multiprocessors * kThreads / threads, threads,
                                                      shape.shared_bytes, kMostShared, device));
  }
  with_value_type(problem.values, [&]<class Value>(Value*) {
    const auto add = [&]<int known_bytes>(std::integral_constant<int, known_bytes>) {
      if (whole)
        work.add(kernel<Value, known_bytes, Takes::whole_trajectories>, shape, job);
      else
        work.add(kernel<Value, known_bytes, Takes::tile>, shape, job);
    };
    constexpr int size = static_cast<int>(sizeof(Value));
    const bool known = cut.words || cut.row_bytes % 4 != 0;
    if (known && cut.row_bytes == 7 * size)
      add(std::integral_constant<int, 7 * size>{});
    else if (known && cut.row_bytes == 14 * size)
      add(std::integral_constant<int, 14 * size>{});
    else
      add(std::integral_constant<int, kAnyBytes>{});
  });
  return work;
}

}  // namespace tmaops::ops::resample::narrow_rows_plain
