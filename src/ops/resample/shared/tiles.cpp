#include "ops/resample/shared/tiles.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "core/cache_size.hpp"
#include "core/parallel.hpp"
#include "ops/resample/data_checks.hpp"
#include "ops/resample/options.hpp"
#include "ops/resample/shared/reference_bracket.hpp"

namespace tmaops::ops::resample {
namespace {

/// Cost of a target in elements moved: the search and the bookkeeping weigh as much as this many channels.
constexpr std::int64_t kTargetCost = 24;
/// Cost of a chunk: large enough to hide the hand-out of a chunk, small enough to balance the threads.
constexpr std::int64_t kChunkCost = 64 * 1024;

/// Microseconds one thread takes for a call of such cost, about.
double microseconds(double cost) { return 0.4e-3 * cost; }

/// Elements of a piece, at most: pieces are located one ahead, and should stay in the L2 until they are written.
constexpr std::int64_t kPieceElements = 4 * 1024;

/// Targets per chunk; a whole number of chunks per trajectory or of trajectories per chunk where they are equally long.
std::int64_t targets_per_chunk(const Problem& problem, const Timeline& line) {
  const std::int64_t wanted = std::max<std::int64_t>(64, kChunkCost / (kTargetCost + problem.channels));
  if (line.target_offsets || line.target_rows == 0) return wanted;
  if (wanted >= line.target_rows) return line.target_rows * (wanted / line.target_rows);
  const std::int64_t parts = (line.target_rows + wanted - 1) / wanted;
  return (line.target_rows + parts - 1) / parts;
}

/// Targets per piece of a chunk: several pieces, so that one is located while the samples of another are on their way.
std::int64_t targets_per_piece(const Problem& problem) {
  return std::clamp<std::int64_t>(kPieceElements / std::max<std::int64_t>(1, problem.channels) / 16 * 16, 32,
                                  kTileTargets);
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

/// Whether values and output together are more than half of the last-level cache: part of it holds other data.
bool exceeds_caches(const Problem& problem) {
  const std::int64_t rows = (problem.packed_source ? 1 : problem.batch) * problem.source +
                            (problem.packed_target ? 1 : problem.batch) * problem.target;
  const std::int64_t cache = detail::last_level_cache_bytes();
  return cache > 0 && rows * problem.channels * static_cast<std::int64_t>(size_of(problem.values)) > cache / 2;
}

/// Targets [t, t + count) of trajectory b, count up to kTileTargets.
struct Range {
  std::int64_t b = 0;
  std::int64_t t = 0;
  std::int64_t count = 0;
};

/// Targets on their way from being located to being written.
struct Piece {
  Range targets;
  Tile tile;
};

class TileRun {
 public:
  TileRun(const Problem& problem, const Arguments& arguments, const TileKernels& kernels)
      : problem_(problem),
        arguments_(arguments),
        line_(arguments.timeline),
        kernels_(kernels),
        beyond_caches_(exceeds_caches(problem)),
        intervals_(has_intervals(problem)) {
    for (const ChannelGroup& group : problem.groups) {
      nearest_ = nearest_ || group.interpolation == Interpolation::nearest;
      cubic_ = cubic_ || group.interpolation == Interpolation::cubic;
    }
  }

  /// Where the targets of a piece lie, and the checks of their times.
  bool locate(Piece& piece) const {
    const auto [b, t, count] = piece.targets;
    const std::int64_t n = line_.source_count(b);
    if (n == 0) return line_.outside == Outside::nan && check_targets(line_, b, t, count);
    const std::int64_t targets = line_.target_count(b);
    const bool shared = line_.source.trajectory_stride == 0 && !line_.source.offsets && !line_.target_offsets;
    if (!shared || b == 0)
      if (!check_source(b, share(n, t, targets), share(n, t + count, targets), t == 0)) return false;
    double grid[kTileTargets];
    const LocateRequest request = locate_request(line_, b, t, count, nearest_, grid);
    if (!kernels_.locate(request, piece.tile)) return false;
    if (cubic_) kernels_.ratios(request, piece.tile);
    return true;
  }

  /// Writes the targets of a located piece; `coming` is the one after it.
  bool write(const Piece& piece, const Piece& coming) const {
    const auto [b, t, count] = piece.targets;
    const std::int64_t n = line_.source_count(b);
    if (n == 0) {
      write_missing(b, t, count);
      return true;
    }
    if (arguments_.valid.data && !intervals_) write_valid(piece.tile, b, t, count);
    return combine(piece, coming, n);
  }

 private:
  bool check_source(std::int64_t b, std::int64_t begin, std::int64_t end, bool first) const {
    if (first && !check_ends(line_, b)) return false;
    begin = std::max<std::int64_t>(begin, 1);
    return begin >= end || kernels_.ordered(line_.source.address(line_.dtype, b), line_.source.row_stride, begin, end,
                                            line_.duplicates == Duplicates::error);
  }

  /// A trajectory without samples: NaN everywhere.
  void write_missing(std::int64_t b, std::int64_t t, std::int64_t count) const {
    const Rows& to = arguments_.output;
    visit_value_type(problem_.values, [&]<class Value>(Value*) {
      const auto nan = static_cast<Value>(std::numeric_limits<float>::quiet_NaN());
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t d = 0; d < problem_.channels; ++d) to.at<Value>(b, t + k)[d * to.channel_stride] = nan;
    });
    if (!arguments_.valid.data) return;
    for (std::int64_t k = 0; k < count; ++k) *arguments_.valid.at<std::uint8_t>(b, t + k) = 0;
  }

  void write_valid(const Tile& tile, std::int64_t b, std::int64_t t, std::int64_t count) const {
    auto* valid = arguments_.valid.at<std::uint8_t>(b, t);
    for (std::int64_t k = 0; k < count; ++k)
      valid[k * arguments_.valid.row_stride] = problem_.values == DType::f64 ? !std::isnan(tile.weight.as<double>()[k])
                                                                             : !std::isnan(tile.weight.as<float>()[k]);
  }

  bool combine(const Piece& piece, const Piece& coming, std::int64_t n) const {
    const auto [b, t, count] = piece.targets;
    const Rows& from = arguments_.values;
    const Rows& to = arguments_.output;
    const bool more = coming.targets.count > 0 && line_.source_count(coming.targets.b) > 0;
    for (const ChannelGroup& group : problem_.groups) {
      if (over_interval(group.interpolation)) continue;
      const ChannelRequest request{.values = from.address(problem_.values, b, 0, group.first),
                                   .row_stride = from.row_stride,
                                   .channel_stride = from.channel_stride,
                                   .row_count = n,
                                   .output = to.address(problem_.values, b, t, group.first),
                                   .output_row_stride = to.row_stride,
                                   .output_channel_stride = to.channel_stride,
                                   .channel_count = group.count,
                                   .target_count = count,
                                   .beyond_caches = beyond_caches_,
                                   .coming = {.values = from.address(problem_.values, coming.targets.b, 0, group.first),
                                              .tile = &coming.tile,
                                              .target_count = more ? coming.targets.count : 0}};
      if (!kernels_.combine[static_cast<std::size_t>(group.interpolation)](request, piece.tile)) return false;
    }
    return true;
  }

  const Problem& problem_;
  const Arguments& arguments_;
  const Timeline& line_;
  const TileKernels& kernels_;
  bool beyond_caches_;
  bool intervals_;  // run_intervals() writes some of the channels, and `valid`
  bool nearest_ = false;
  bool cubic_ = false;
};

}  // namespace

bool check_ends(const Timeline& line, std::int64_t b) {
  return visit_time_type(line.dtype, [&]<class Time>(Time*) {
    const Times<Time> x = source_times<Time>(line, b);
    const Time first = x[0];
    const Time last = x[x.count - 1];
    Time span{};
    if (!difference(last, first, span)) return false;  // also when one of them is not finite
    if constexpr (std::is_same_v<Time, float>) return !too_coarse(first, last, x.count);
    return true;
  });
}

bool check_targets(const Timeline& line, std::int64_t b, std::int64_t t, std::int64_t count) {
  return visit_time_type(line.dtype, [&]<class Time>(Time*) {
    if constexpr (std::is_floating_point_v<Time>)
      for (std::int64_t k = t; k < t + count; ++k)
        if (!std::isfinite(target_time<Time>(line, b, k))) return false;
    return true;
  });
}

LocateRequest locate_request(const Timeline& line, std::int64_t b, std::int64_t t, std::int64_t count, bool nearest,
                             double* buffer) {
  if (line.uniform_grid)
    visit_time_type(line.dtype, [&]<class Time>(Time*) {
      auto* times = reinterpret_cast<Time*>(buffer);
      for (std::int64_t k = 0; k < count; ++k) times[k] = target_time<Time>(line, b, t + k);
    });
  return {.timeline = &line,
          .source = line.source.address(line.dtype, b),
          .source_stride = line.source.row_stride,
          .source_count = line.source_count(b),
          .target = line.uniform_grid ? static_cast<const void*>(buffer) : line.target.address(line.dtype, b, t),
          .target_stride = line.uniform_grid ? 1 : line.target.row_stride,
          .target_count = count,
          .nearest = nearest};
}

void run_tiles(const Problem& problem, const Arguments& arguments, const TileKernels& kernels) {
  const Timeline& line = arguments.timeline;
  const TileRun run(problem, arguments, kernels);
  const std::int64_t most = targets_per_piece(problem);
  std::atomic<bool> failed{false};
  const double cost = static_cast<double>(line.target_total()) * static_cast<double>(kTargetCost + problem.channels);
  const int threads = threads_for(microseconds(cost));
  const std::int64_t chunk = targets_per_chunk(problem, line);
  parallel_for(line.target_total(), chunk, threads, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t b = trajectory_of(line, begin);
    const auto next_targets = [&]() -> Range {
      if (begin == end) return {};
      while (line.target_begin(b) + line.target_count(b) <= begin) ++b;
      const std::int64_t t = begin - line.target_begin(b);
      const std::int64_t count = std::min({line.target_count(b) - t, end - begin, most});
      begin += count;
      return {b, t, count};
    };
    // A piece is located before the one in front of it is written, which then asks for the samples of both.
    Piece pieces[2];
    bool good = true;
    for (int i = 0; good && !failed.load(std::memory_order_relaxed); ++i) {
      Piece& piece = pieces[i % 2];
      piece.targets = next_targets();
      if (piece.targets.count > 0) good = run.locate(piece);
      if (good && i > 0) good = run.write(pieces[(i + 1) % 2], piece);
      if (piece.targets.count == 0) break;
    }
    kernels.finish();
    if (!good) failed.store(true, std::memory_order_relaxed);
  });
  if (failed.load()) throw_data_error(problem, line, &arguments.values);
}

Support tiles_support(const Problem& problem) {
  if (problem.longest_source > std::numeric_limits<std::int32_t>::max())
    return Support::no("a trajectory of " + std::to_string(problem.longest_source) + " samples; at most 2^31 - 1");
  return Support::yes();
}

}  // namespace tmaops::ops::resample
