// The frame of the CPU backward passes: who owns what, and in which order it is added up.
//
// A unit of work is one image, one head and a group of levels. It alone writes the gradients of the value of its pixels
// and of its points, so there are no atomics and nothing to merge. It visits the queries in an order that depends on
// the data only; therefore every sum is added up in the same order whatever the number of threads, and whatever the
// grouping of the levels.
//
// A unit works on maps of its own: the head's pixels next to each other (in the tensor other heads lie between them),
// converted to the arithmetic type, each level with a border of one pixel. Beyond the border the value is 0 and the
// gradient is thrown away, so a sample needs no case distinction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "core/parallel.hpp"
#include "ops/ms_deform_attn/backward/problem.hpp"
#include "ops/ms_deform_attn/shared/aligned_buffer.hpp"
#include "ops/ms_deform_attn/shared/call_threads.hpp"
#include "ops/ms_deform_attn/shared/head_maps.hpp"
#include "ops/ms_deform_attn/shared/point_rows.hpp"
#include "ops/ms_deform_attn/shared/prefetch.hpp"
#include "ops/ms_deform_attn/shared/query_order.hpp"

namespace tmaops::ops::ms_deform_attn_backward {

/// Channels of a map are padded to this many, with zeros: one vector of the widest target.
inline constexpr std::int64_t kChannelBlock = 16;
/// Tables and rows of points are padded by as many elements.
inline constexpr std::size_t kPointPadding = 16;

/// Where the levels lie in a map, in elements; one entry per point (and padding) as the kernels load it.
template <class T>
struct MapTables {
  std::int64_t channels = 0;  // padded
  ms_deform_attn::HeadMapLayout layout;
  std::int64_t size = 0;  // of a map, a dummy corner for skipped points at its end
  std::vector<T> width;
  std::vector<T> height;
  std::vector<std::int32_t> base;   // of pixel (0, 0)
  std::vector<std::int32_t> pitch;  // from row to row
  std::int32_t dummy = 0;

  explicit MapTables(const ms_deform_attn::Problem& problem)
      : channels((problem.channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock),
        layout(problem),
        dummy(static_cast<std::int32_t>(layout.pixels * channels)) {
    std::int64_t widest = 0;
    for (std::size_t l = 0; l < problem.levels.size(); ++l) {
      const ms_deform_attn::HeadMapLayout::LevelMap& map = layout.levels[l];
      for (std::int64_t p = 0; p < problem.levels[l].points; ++p) add(problem.levels[l], map.first, map.pitch);
      widest = std::max(widest, map.pitch);
    }
    size = (layout.pixels + widest + 2) * channels;
    for (std::size_t i = 0; i < kPointPadding; ++i) add(problem.levels.back(), 0, 0);
  }
  /// Whether offsets into a map fit in 32 bits.
  static bool fits(const ms_deform_attn::Problem& problem) {
    std::int64_t pixels = 0;
    std::int64_t elements = 0;
    for (const ms_deform_attn::Level& level : problem.levels) {
      std::int64_t area = 0;
      if (level.height >= 1 << 24 || level.width >= 1 << 24) return false;
      area = (level.height + 3) * (level.width + 3);
      if (__builtin_add_overflow(pixels, area, &pixels)) return false;
    }
    return !__builtin_mul_overflow(pixels + 2, problem.channels + kChannelBlock, &elements) && elements < 1LL << 31;
  }

 private:
  void add(const ms_deform_attn::Level& level, std::int64_t first_pixel, std::int64_t pitch_pixels) {
    width.push_back(static_cast<T>(level.width));
    height.push_back(static_cast<T>(level.height));
    base.push_back(static_cast<std::int32_t>(first_pixel * channels));
    pitch.push_back(static_cast<std::int32_t>(pitch_pixels * channels));
  }
};

using ms_deform_attn::AlignedBuffer;

/// One query and head, for the points [begin, end) of the tables.
template <class T>
struct KernelArguments {
  const MapTables<T>* tables;
  Sampling sampling;
  std::size_t begin;
  std::size_t end;
  const T* xy;             // 2 per point, the padding NaN
  const T* attention;      // 1 per point, padded
  const T* grad_output{};  // channels, padded with 0
  const T* value;          // map; null: no gradients of points wanted
  T* grad_value;           // map; null: not wanted
  T* grad_xy;              // 2 per point, padded
  T* grad_attention;       // 1 per point, padded
  T* scratch;              // 12 per point, padded
};

template <class T>
class Driver {
 public:
  using Kernel = void (*)(const KernelArguments<T>&);

  Driver(const Problem& problem, const Arguments& arguments, Kernel kernel)
      : problem_(problem),
        forward_(problem.forward),
        arguments_(arguments),
        kernel_(kernel),
        tables_(forward_),
        locations_(forward_, arguments.sampling_locations, 2),
        weights_(forward_, arguments.attention_weights, 1) {
    if (problem.grad_sampling_locations)
      grad_locations_.emplace_back(forward_, arguments.gradients.sampling_locations, 2);
    if (problem.grad_attention_weights) grad_weights_.emplace_back(forward_, arguments.gradients.attention_weights, 1);
  }

  void run() {
    if (forward_.batch * forward_.heads == 0) return;
    const bool sampled = forward_.queries > 0;
    if (sampled) order_.emplace(forward_, arguments_.sampling_locations);
    const std::int64_t heads = forward_.batch * forward_.heads;
    const auto levels = static_cast<std::int64_t>(forward_.levels.size());
    const int threads = ms_deform_attn::backward_threads(forward_);
    const std::int64_t groups = std::clamp<std::int64_t>((2 * threads + heads - 1) / heads, 1, levels);
    std::vector<std::unique_ptr<Worker>> workers(static_cast<std::size_t>(threads));
    parallel_for(heads * groups, 1, threads, [&](std::int64_t begin, std::int64_t end, int worker) {
      auto& mine = workers[static_cast<std::size_t>(worker)];
      if (!mine) mine = std::make_unique<Worker>(*this);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t group = i % groups;
        unit(*mine, i / groups / forward_.heads, i / groups % forward_.heads, group * levels / groups,
             (group + 1) * levels / groups);
      }
    });
  }

 private:
  /// What a thread works with.
  struct Worker {
    explicit Worker(const Driver& driver)
        : value(driver.points_wanted() ? static_cast<std::size_t>(driver.tables_.size) : 0, T{}),
          grad_value(driver.problem_.grad_value ? static_cast<std::size_t>(driver.tables_.size) : 0, T{}),
          rows((2 + 1 + 2 + 1 + 12) * driver.padded(), T{}),
          grad_output(static_cast<std::size_t>(driver.tables_.channels), T{}) {}
    AlignedBuffer<T> value;
    AlignedBuffer<T> grad_value;
    AlignedBuffer<T> rows;
    AlignedBuffer<T> grad_output;
  };

  bool points_wanted() const { return problem_.grad_sampling_locations || problem_.grad_attention_weights; }
  std::size_t padded() const {
    return (static_cast<std::size_t>(forward_.points) + 2 * kPointPadding - 1) / kPointPadding * kPointPadding;
  }

  /// Image n, head m, levels [first, last).
  void unit(Worker& worker, std::int64_t n, std::int64_t m, std::int64_t first, std::int64_t last) {
    if (points_wanted()) read_value(worker.value.data(), n, m, first, last);
    if (problem_.grad_value) {
      const std::int64_t from = map_begin(first);
      const std::int64_t to =
          last == static_cast<std::int64_t>(forward_.levels.size()) ? tables_.size : map_begin(last);
      std::fill(worker.grad_value.data() + from, worker.grad_value.data() + to, T(0));
    }
    if (order_) queries(worker, n, m, first, last);
    if (problem_.grad_value) write_grad_value(worker.grad_value.data(), n, m, first, last);
  }

  /// All queries of the unit, tile by tile.
  void queries(Worker& worker, std::int64_t n, std::int64_t m, std::int64_t first, std::int64_t last) {
    const auto& begin_level = forward_.levels[static_cast<std::size_t>(first)];
    const auto& end_level = forward_.levels[static_cast<std::size_t>(last - 1)];
    T* rows = worker.rows.data();
    const std::size_t step = padded();
    KernelArguments<T> call{.tables = &tables_,
                            .sampling = forward_.sampling,
                            .begin = static_cast<std::size_t>(begin_level.first_point),
                            .end = static_cast<std::size_t>(end_level.first_point + end_level.points),
                            .xy = rows,
                            .attention = rows + 2 * step,
                            .value = points_wanted() ? worker.value.data() : nullptr,
                            .grad_value = problem_.grad_value ? worker.grad_value.data() : nullptr,
                            .grad_xy = rows + 3 * step,
                            .grad_attention = rows + 5 * step,
                            .scratch = rows + 6 * step};
    std::fill_n(rows, 2 * step, std::numeric_limits<T>::quiet_NaN());
    ms_deform_attn::MapPrefetcher value(forward_, tables_.layout, *order_, first, last);
    ms_deform_attn::MapPrefetcher grad_value(forward_, tables_.layout, *order_, first, last);
    const std::int64_t pixel_bytes = tables_.channels * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t tiles = order_->tiles();
    const std::int64_t* tile_begin = order_->begin.data() + n * tiles;
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const std::int64_t next_tile = std::min(tile + 1, tiles - 1);
      const std::int64_t steps = tile_begin[tile + 1] - tile_begin[tile];
      if (call.value) value.aim(call.value, pixel_bytes, tile, next_tile, steps);
      if (call.grad_value) grad_value.aim(call.grad_value, pixel_bytes, tile, next_tile, steps);
      for (std::int64_t i = tile_begin[tile]; i < tile_begin[tile + 1]; ++i) {
        value.step();
        grad_value.step();
        const std::int64_t ahead = std::min(i + kAhead, tile_begin[tiles] - 1);
        ask_for_rows(n, order_->queries[static_cast<std::size_t>(ahead)] % forward_.queries, m, call.begin, call.end);
        query(worker, call, n, order_->queries[static_cast<std::size_t>(i)] % forward_.queries, m);
      }
    }
  }

  /// One query, on copies of its rows (docs/findings/ms_deform_attn_cpu.md, D21).
  void query(Worker& worker, KernelArguments<T>& call, std::int64_t n, std::int64_t q, std::int64_t m) {
    const std::size_t begin = call.begin;
    const std::size_t end = call.end;
    T* rows = worker.rows.data();
    const std::size_t step = padded();

    locations_.load(n, q, m, 2 * begin, 2 * end, rows);
    weights_.load(n, q, m, begin, end, rows + 2 * step);
    const ConstTensorView& grad = arguments_.grad_output;
    const std::int64_t at = ms_deform_attn::output_offset(forward_, grad, n, q, m);
    const bool own = grad.dtype == dtype_of<T> && grad.strides[2] == 1 && forward_.channels == tables_.channels;
    if (!own)
      ms_deform_attn::with_float_type(grad.dtype, [&]<class Stored>(Stored*) {
        ms_deform_attn::load_row(static_cast<const Stored*>(grad.data) + at, grad.strides[2], forward_.channels,
                                 worker.grad_output.data());
      });
    call.grad_output = own ? static_cast<const T*>(grad.data) + at : worker.grad_output.data();

    kernel_(call);
    if (problem_.grad_sampling_locations)
      grad_locations_.front().store(n, q, m, 2 * begin, 2 * end, call.grad_xy, arguments_.gradients.sampling_locations);
    if (problem_.grad_attention_weights)
      grad_weights_.front().store(n, q, m, begin, end, call.grad_attention, arguments_.gradients.attention_weights);
  }

  /// Queries, and pixels of a copy, between asking for a row and using it: the rows of one head lie apart, which the
  /// hardware does not foresee. Between 2 and 12 the time does not change.
  static constexpr std::int64_t kAhead = 6;

  /// The rows of a query, points [begin, end).
  void ask_for_rows(std::int64_t n, std::int64_t q, std::int64_t m, std::size_t begin, std::size_t end) const {
    const auto row = [&](const ms_deform_attn::PointRows& rows, DType dtype, std::size_t elements, bool written) {
      const std::size_t size = elements * size_of(dtype);
      const char* address = static_cast<const char*>(rows.address(n, q, m)) + begin * size;
      written ? ms_deform_attn::prefetch_to_write(address, (end - begin) * size)
              : ms_deform_attn::prefetch(address, (end - begin) * size);
    };
    row(locations_, forward_.location_dtype, 2, false);
    row(weights_, forward_.weight_dtype, 1, false);
    if (problem_.grad_sampling_locations) row(grad_locations_.front(), problem_.grad_sampling_locations_dtype, 2, true);
    if (problem_.grad_attention_weights) row(grad_weights_.front(), problem_.grad_attention_weights_dtype, 1, true);
    const ConstTensorView& grad = arguments_.grad_output;
    const auto size = static_cast<std::int64_t>(size_of(grad.dtype));
    ms_deform_attn::prefetch(
        static_cast<const char*>(grad.data) + ms_deform_attn::output_offset(forward_, grad, n, q, m) * size,
        static_cast<std::size_t>(forward_.channels * size));
  }

  /// Start of a level in a map, border included.
  std::int64_t map_begin(std::int64_t level) const {
    const auto& map = tables_.layout.levels[static_cast<std::size_t>(level)];
    return (map.first - map.pitch - 1) * tables_.channels;
  }

  /// Calls fn(offset in the map, pixel in S) for the pixels of the levels.
  template <class Fn>
  void each_pixel(std::int64_t first, std::int64_t last, const Fn& fn) const {
    for (auto l = static_cast<std::size_t>(first); l < static_cast<std::size_t>(last); ++l) {
      const ms_deform_attn::Level& level = forward_.levels[l];
      const auto& map = tables_.layout.levels[l];
      for (std::int64_t i = 0; i < level.height; ++i)
        for (std::int64_t j = 0; j < level.width; ++j)
          fn((map.first + i * map.pitch + j) * tables_.channels, level.start + i * level.width + j);
    }
  }

  void read_value(T* map, std::int64_t n, std::int64_t m, std::int64_t first, std::int64_t last) const {
    const ConstTensorView& value = arguments_.value;
    ms_deform_attn::with_float_type(value.dtype, [&]<class Stored>(Stored*) {
      const auto* from = static_cast<const Stored*>(value.data);
      each_pixel(first, last, [&](std::int64_t at, std::int64_t s) {
        ms_deform_attn::load_row(from + ms_deform_attn::value_offset(value, n, s, m), value.strides[3],
                                 forward_.channels, map + at);
      });
    });
  }

  void write_grad_value(const T* map, std::int64_t n, std::int64_t m, std::int64_t first, std::int64_t last) const {
    const TensorView& grad = arguments_.gradients.value;
    ms_deform_attn::with_float_type(grad.dtype, [&]<class Stored>(Stored*) {
      auto* to = static_cast<Stored*>(grad.data);
      each_pixel(first, last, [&](std::int64_t at, std::int64_t s) {
        ms_deform_attn::store_row(map + at, forward_.channels, to + ms_deform_attn::value_offset(grad, n, s, m),
                                  grad.strides[3]);
      });
    });
  }

  const Problem& problem_;
  const ms_deform_attn::Problem& forward_;
  const Arguments& arguments_;
  Kernel kernel_;
  MapTables<T> tables_;
  ms_deform_attn::PointRows locations_;
  ms_deform_attn::PointRows weights_;
  std::vector<ms_deform_attn::PointRows> grad_locations_;  // one, or none when it is not wanted
  std::vector<ms_deform_attn::PointRows> grad_weights_;
  std::optional<ms_deform_attn::QueryOrder> order_;
};

}  // namespace tmaops::ops::ms_deform_attn_backward
