#include "ops/resample/tiles.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/parallel.hpp"
#include "ops/resample/data_checks.hpp"
#include "ops/resample/definition.hpp"

namespace tmaops::ops::resample {
namespace {

/// Cost of a target in elements moved: the search and the bookkeeping weigh as much as this many channels.
constexpr std::int64_t kTargetCost = 24;
/// Cost of a chunk: large enough to hide the hand-out of a chunk, small enough to balance the threads.
constexpr std::int64_t kChunkCost = 64 * 1024;

/// Targets per chunk; a whole number of chunks per trajectory or of trajectories per chunk where they are equally long.
std::int64_t targets_per_chunk(const Problem& problem, const Timeline& line) {
  const std::int64_t wanted = std::max<std::int64_t>(64, kChunkCost / (kTargetCost + problem.channels));
  if (line.target_offsets || line.target_rows == 0) return wanted;
  if (wanted >= line.target_rows) return line.target_rows * (wanted / line.target_rows);
  const std::int64_t parts = (line.target_rows + wanted - 1) / wanted;
  return (line.target_rows + parts - 1) / parts;
}

/// The trajectory of target `index` of all.
std::int64_t trajectory_of(const Timeline& line, std::int64_t index) {
  if (!line.target_offsets) return index / line.target_rows;
  const std::int64_t* end = line.target_offsets + line.batch + 1;
  return std::upper_bound(line.target_offsets, end, index) - line.target_offsets - 1;
}

/// The share of the source times that the tile ending at target t closes: n at the last.
std::int64_t share(std::int64_t n, std::int64_t t, std::int64_t targets) {
  if (t == targets) return n;
  return static_cast<std::int64_t>(static_cast<double>(n) * static_cast<double>(t) / static_cast<double>(targets));
}

template <class Time>
bool check_ends_of(const Timeline& line, std::int64_t b) {
  const Times<Time> x = source_times<Time>(line, b);
  const Time first = x[0];
  const Time last = x[x.count - 1];
  Time span{};
  if (!difference(last, first, span)) return false;  // also when one of them is not finite
  if constexpr (std::is_same_v<Time, float>) return !too_coarse(first, last, x.count);
  return true;
}

class TileRun {
 public:
  TileRun(const Problem& problem, const Arguments& arguments, const TileKernels& kernels)
      : problem_(problem), arguments_(arguments), line_(arguments.timeline), kernels_(kernels) {
    for (const ChannelGroup& group : problem.groups) {
      nearest_ = nearest_ || group.interpolation == Interpolation::nearest;
      cubic_ = cubic_ || group.interpolation == Interpolation::cubic;
    }
  }

  /// Targets [t, t + count) of trajectory b, count up to kTileTargets.
  bool tile(std::int64_t b, std::int64_t t, std::int64_t count) const {
    const std::int64_t n = line_.source_count(b);
    const std::int64_t targets = line_.target_count(b);
    if (n == 0) {
      if (line_.outside == Outside::nan) write_missing(b, t, count);
      return line_.outside == Outside::nan;
    }
    Tile tile;
    const bool shared = line_.source.trajectory_stride == 0 && !line_.source.offsets && !line_.target_offsets;
    if (!shared || b == 0)
      if (!check_source(b, share(n, t, targets), share(n, t + count, targets), t == 0)) return false;
    double grid[kTileTargets];
    LocateRequest request{.timeline = &line_,
                          .source = source_time_address(line_, b, 0),
                          .source_stride = line_.source.row_stride,
                          .source_count = n,
                          .target = nullptr,
                          .target_stride = 1,
                          .target_count = count,
                          .nearest = nearest_};
    set_targets(request, b, t, count, grid);
    if (!kernels_.locate(request, tile)) return false;
    if (cubic_) kernels_.ratios(request, tile);
    if (arguments_.valid.data) write_valid(tile, b, t, count);
    return combine(tile, b, t, count, n);
  }

 private:
  bool check_source(std::int64_t b, std::int64_t begin, std::int64_t end, bool first) const {
    if (first && !check_ends(line_, b)) return false;
    begin = std::max<std::int64_t>(begin, 1);
    return begin >= end || kernels_.ordered(source_time_address(line_, b, 0), line_.source.row_stride, begin, end,
                                            line_.duplicates == Duplicates::error);
  }

  /// A trajectory without samples: NaN everywhere.
  void write_missing(std::int64_t b, std::int64_t t, std::int64_t count) const {
    const Rows& to = arguments_.output;
    const std::int64_t first = to.first(b) + t * to.row_stride;
    const auto fill = [&](auto nan) {
      auto* out = static_cast<decltype(nan)*>(const_cast<void*>(to.data)) + first;
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t d = 0; d < problem_.channels; ++d) out[k * to.row_stride + d * to.channel_stride] = nan;
    };
    if (problem_.values == DType::f64)
      fill(std::numeric_limits<double>::quiet_NaN());
    else if (problem_.values == DType::f32)
      fill(std::numeric_limits<float>::quiet_NaN());
    else if (problem_.values == DType::f16)
      fill(float16(std::numeric_limits<float>::quiet_NaN()));
    else
      fill(bfloat16(std::numeric_limits<float>::quiet_NaN()));
    if (!arguments_.valid.data) return;
    auto* valid = valid_address(b, t);
    for (std::int64_t k = 0; k < count; ++k) valid[k * arguments_.valid.row_stride] = 0;
  }

  std::uint8_t* valid_address(std::int64_t b, std::int64_t t) const {
    return static_cast<std::uint8_t*>(const_cast<void*>(arguments_.valid.data)) + arguments_.valid.first(b) +
           t * arguments_.valid.row_stride;
  }

  void write_valid(const Tile& tile, std::int64_t b, std::int64_t t, std::int64_t count) const {
    auto* valid = valid_address(b, t);
    for (std::int64_t k = 0; k < count; ++k)
      valid[k * arguments_.valid.row_stride] =
          problem_.values == DType::f64 ? !std::isnan(tile.weight<double>()[k]) : !std::isnan(tile.weight<float>()[k]);
  }

  bool combine(const Tile& tile, std::int64_t b, std::int64_t t, std::int64_t count, std::int64_t n) const {
    const Rows& from = arguments_.values;
    const Rows& to = arguments_.output;
    const auto size = static_cast<std::int64_t>(size_of(problem_.values));
    for (const ChannelGroup& group : problem_.groups) {
      const ChannelRequest request{
          .values = static_cast<const char*>(from.data) + size * (from.first(b) + group.first * from.channel_stride),
          .row_stride = from.row_stride,
          .channel_stride = from.channel_stride,
          .row_count = n,
          .output = static_cast<char*>(const_cast<void*>(to.data)) +
                    size * (to.first(b) + t * to.row_stride + group.first * to.channel_stride),
          .output_row_stride = to.row_stride,
          .output_channel_stride = to.channel_stride,
          .channel_count = group.count,
          .target_count = count};
      if (!kernels_.combine[static_cast<std::size_t>(group.interpolation)](request, tile)) return false;
    }
    return true;
  }

  const Problem& problem_;
  const Arguments& arguments_;
  const Timeline& line_;
  const TileKernels& kernels_;
  bool nearest_ = false;
  bool cubic_ = false;
};

}  // namespace

bool check_ends(const Timeline& line, std::int64_t b) {
  switch (line.dtype) {
    case DType::f32:
      return check_ends_of<float>(line, b);
    case DType::f64:
      return check_ends_of<double>(line, b);
    default:
      return check_ends_of<std::int64_t>(line, b);
  }
}

const void* source_time_address(const Timeline& line, std::int64_t b, std::int64_t i) {
  const auto size = static_cast<std::int64_t>(size_of(line.dtype));
  return static_cast<const char*>(line.source.data) + size * (line.source.first(b) + i * line.source.row_stride);
}

void set_targets(LocateRequest& request, std::int64_t b, std::int64_t t, std::int64_t count, double* buffer) {
  const Timeline& line = *request.timeline;
  request.target_count = count;
  if (!line.uniform_grid) {
    const auto size = static_cast<std::int64_t>(size_of(line.dtype));
    request.target =
        static_cast<const char*>(line.target.data) + size * (line.target.first(b) + t * line.target.row_stride);
    request.target_stride = line.target.row_stride;
    return;
  }
  request.target = buffer;
  request.target_stride = 1;
  const auto fill = [&](auto* times) {
    for (std::int64_t k = 0; k < count; ++k)
      times[k] = target_time<std::remove_pointer_t<decltype(times)>>(line, b, t + k);
  };
  if (line.dtype == DType::f32)
    fill(reinterpret_cast<float*>(buffer));
  else if (line.dtype == DType::f64)
    fill(buffer);
  else
    fill(reinterpret_cast<std::int64_t*>(buffer));
}

void run_tiles(const Problem& problem, const Arguments& arguments, const TileKernels& kernels) {
  const Timeline& line = arguments.timeline;
  const TileRun run(problem, arguments, kernels);
  std::atomic<bool> failed{false};
  parallel_for(line.target_total(), targets_per_chunk(problem, line), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t b = trajectory_of(line, begin);
    while (begin < end && !failed.load(std::memory_order_relaxed)) {
      while (line.target_begin(b) + line.target_count(b) <= begin) ++b;
      const std::int64_t t = begin - line.target_begin(b);
      const std::int64_t count = std::min({line.target_count(b) - t, end - begin, std::int64_t{kTileTargets}});
      if (!run.tile(b, t, count)) failed.store(true, std::memory_order_relaxed);
      begin += count;
    }
  });
  if (failed.load()) throw_data_error(problem, line, &arguments.values);
}

Support tiles_support(const Problem& problem) {
  if (problem.longest_source > std::numeric_limits<std::int32_t>::max())
    return Support::no("a trajectory of " + std::to_string(problem.longest_source) + " samples; at most 2^31 - 1");
  return Support::yes();
}

}  // namespace tmaops::ops::resample
