// Problems for the GPU tests of resampling: what makes one, its host buffers and their mirrors in device memory.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/mirror.hpp"
#include "gpu/support.hpp"
#include "support/buffers.hpp"
#include "support/random_choice.hpp"
#include "tmaops/resample.hpp"

namespace tmaops::test {

/// What makes a problem; everything else is drawn from the seed.
struct ProblemShape {
  std::int64_t batch = 2, samples = 50, targets = 60, channels = 8;
  DType dtype = DType::f32;
  DType times = DType::f32;
  std::vector<ChannelGroup> groups{};
  Outside outside = Outside::hold;
  bool duplicates = false;
  bool gap = false;
  bool valid = false;
  bool shared_source = false, shared_target = false, grid = false;
  bool packed_source = false, packed_target = false;
  bool unsorted = false;
  bool clustered = false;  // all targets in a small part of the time
  std::int64_t pitch = 0;  // elements between rows beyond the channels
  std::int64_t apart = 0;  // rows between trajectories
  std::int64_t channel_step = 1;
  std::int64_t time_step = 1;
  int shift = 0;        // elements by which all tensors are off their alignment
  double lean = 0;      // added to every fourth channel: quaternions that are hardly ever orthogonal
  double reach = 0.02;  // how far targets leave the recorded time, as a part of it
};

inline std::string text(const ProblemShape& c) {
  std::string line;
  const auto add = [&](const char* name, std::int64_t number) {
    line += name;
    line += std::to_string(number);
  };
  add("B,S->T,D ", c.batch);
  add(",", c.samples);
  add("->", c.targets);
  add(",", c.channels);
  line += " ";
  line += to_string(c.dtype);
  line += " times ";
  line += to_string(c.times);
  add(" outside ", static_cast<int>(c.outside));
  add(" shift ", c.shift);
  add(" pitch ", c.pitch);
  add(" apart ", c.apart);
  add(" steps ", c.channel_step);
  add(",", c.time_step);
  line += " groups";
  for (const ChannelGroup& group : c.groups) {
    add(" ", static_cast<int>(group.interpolation));
    add("x", group.count);
  }
  for (const auto& [name, set] : {std::pair{" duplicates", c.duplicates},
                                  {" gap", c.gap},
                                  {" valid", c.valid},
                                  {" shared_source", c.shared_source},
                                  {" shared_target", c.shared_target},
                                  {" grid", c.grid},
                                  {" packed_source", c.packed_source},
                                  {" packed_target", c.packed_target},
                                  {" unsorted", c.unsorted},
                                  {" clustered", c.clustered}})
    if (set) line += name;
  return line;
}

/// B + 1 offsets of trajectories with 0 to 2 * mean rows; at least `least`.
inline std::vector<std::int64_t> offsets(std::mt19937_64& random, std::int64_t batch, std::int64_t mean,
                                         std::int64_t least) {
  std::vector<std::int64_t> all{0};
  for (std::int64_t b = 0; b < batch; ++b)
    all.push_back(all.back() +
                  std::max(least, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * mean + 1))));
  return all;
}

inline Layout rows_layout(bool packed, std::int64_t batch, std::int64_t rows, std::int64_t channels,
                          const ProblemShape& c) {
  const std::int64_t row = channels * c.channel_step + c.pitch;
  if (packed) return Layout::strided({rows, channels}, {row, c.channel_step});
  return Layout::strided({batch, rows, channels}, {(rows + c.apart) * row, row, c.channel_step});
}

/// The host side of a problem, and how it is called.
struct Made {
  std::vector<std::int64_t> source_offsets, target_offsets;
  std::unique_ptr<Buffer> values, source, target, output, valid;
  UniformGrid grid;
  ResampleOptions options;
};

inline Made make(const ProblemShape& c, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  Made made;
  if (c.packed_source) made.source_offsets = offsets(random, c.batch, c.samples, c.outside == Outside::nan ? 0 : 1);
  if (c.packed_target) made.target_offsets = offsets(random, c.batch, c.targets, 0);
  const std::int64_t source_rows = c.packed_source ? made.source_offsets.back() : c.samples;
  const std::int64_t target_rows = c.packed_target ? made.target_offsets.back() : c.targets;
  made.values = std::make_unique<Buffer>(c.dtype, rows_layout(c.packed_source, c.batch, source_rows, c.channels, c));
  made.output = std::make_unique<Buffer>(c.dtype, rows_layout(c.packed_target, c.batch, target_rows, c.channels, c));
  made.values->fill_normal(random);
  for (std::int64_t i = 0; c.lean != 0 && i < made.values->layout().size(); i += 4)
    made.values->set(i, made.values->get(i) + c.lean);

  // Timestamps in units of a mean step of 1 (f64: at 1.7e9 s; i64: 1 ms at that epoch, in ns).
  const double unit = c.times == DType::i64 ? 1e6 : 1.0;
  const double origin = c.times == DType::f64 ? 1.7e9 : 0.0;
  const std::int64_t epoch = c.times == DType::i64 ? 1'700'000'000'000'000'000 : 0;
  const auto set_time = [&](Buffer& buffer, std::int64_t index, double time) {
    if (c.times == DType::i64)
      static_cast<std::int64_t*>(buffer.data())[buffer.offset(index)] = epoch + static_cast<std::int64_t>(time * unit);
    else
      buffer.set(index, origin + time);
  };
  const auto times_layout = [&](bool flat, std::int64_t rows) {
    return flat ? Layout::strided({rows}, {c.time_step})
                : Layout::strided({c.batch, rows}, {(rows + c.apart) * c.time_step, c.time_step});
  };
  const bool flat_source = c.shared_source || c.packed_source;
  made.source = std::make_unique<Buffer>(c.times, times_layout(flat_source, source_rows));
  std::vector<double> timestamps;
  for (std::int64_t b = 0; b < (c.shared_source ? 1 : c.batch); ++b) {
    const std::int64_t first = c.packed_source ? made.source_offsets[static_cast<std::size_t>(b)] : b * c.samples;
    const std::int64_t count =
        c.packed_source ? made.source_offsets[static_cast<std::size_t>(b) + 1] - first : c.samples;
    double time = uniform(0, 1);
    for (std::int64_t i = 0; i < count; ++i) {
      set_time(*made.source, first + i, time);
      timestamps.push_back(time);
      const bool twice = c.duplicates && random() % 7 == 0;
      if (!twice) time += c.gap && random() % 9 == 0 ? 4.5 : uniform(0.5, 1.5);
    }
  }

  const double span = static_cast<double>(c.samples);
  const double low = c.clustered ? 0.7 * span : -c.reach * span;
  const double high = c.clustered ? 0.75 * span : (1 + c.reach) * span;
  if (c.grid) {
    made.grid.count = c.targets;
    const double period = (high - low) / static_cast<double>(std::max<std::int64_t>(c.targets, 1));
    if (c.times == DType::i64) {
      made.grid.start = epoch + static_cast<std::int64_t>(low * unit);
      made.grid.period = static_cast<std::int64_t>(period * unit) + 1;
    } else {
      made.grid.start = origin + low;
      made.grid.period = period;
    }
  } else {
    const bool flat_target = c.shared_target || c.packed_target;
    made.target = std::make_unique<Buffer>(c.times, times_layout(flat_target, target_rows));
    for (std::int64_t b = 0; b < (c.shared_target || c.packed_target ? 1 : c.batch); ++b) {
      std::vector<double> times(static_cast<std::size_t>(target_rows));
      for (double& time : times) time = uniform(low, high);
      for (std::size_t i = 0; i < times.size(); i += 5)  // some at the very time of a sample
        if (!timestamps.empty()) times[i] = timestamps[random() % timestamps.size()];
      if (!c.unsorted) std::sort(times.begin(), times.end());
      for (std::int64_t t = 0; t < target_rows; ++t)
        set_time(*made.target, b * target_rows + t, times[static_cast<std::size_t>(t)]);
    }
  }

  made.options.channel_groups = c.groups;
  made.options.outside = c.outside;
  made.options.duplicates = c.duplicates ? Duplicates::last : Duplicates::error;
  if (c.gap) {
    if (c.times == DType::i64)
      made.options.max_gap = static_cast<std::int64_t>(3 * unit);
    else
      made.options.max_gap = 3.0;
  }
  made.options.source_offsets = made.source_offsets;
  made.options.target_offsets = made.target_offsets;
  if (c.valid)
    made.valid = std::make_unique<Buffer>(
        DType::u8, c.packed_target ? Layout::contiguous({target_rows})
                                   : Layout::strided({c.batch, target_rows}, {target_rows + c.apart, 1}));
  return made;
}

inline std::vector<ChannelGroup> one_group(std::int64_t channels, Interpolation interpolation) {
  return {{0, channels, interpolation}};
}

/// Any problem that the definition allows.
inline ProblemShape random_case(std::mt19937_64& random) {
  const auto pick = picker(random);
  const auto chance = chances(random);
  ProblemShape c;
  c.batch = pick(1, 2, 3, 7);
  c.samples = kOnExecutor ? pick(1, 2, 5, 30, 61, 129) : pick(1, 2, 3, 5, 30, 61, 100, 257, 1000);
  c.targets = kOnExecutor ? pick(1, 2, 7, 50, 64) : pick(1, 2, 7, 50, 64, 129, 300, 1000);
  c.channels = pick(1, 2, 3, 4, 7, 8, 14, 16, 32, 64, 72, 256);
  c.dtype = pick(DType::f32, DType::f16, DType::bf16);
  c.times = pick(DType::f32, DType::f64, DType::i64);
  c.outside = pick(Outside::hold, Outside::nan, Outside::extrapolate);
  c.duplicates = chance(4);
  c.gap = chance(3);
  c.valid = chance(2);
  c.grid = chance(4);
  c.packed_source = chance(4);
  c.packed_target = !c.grid && chance(4);
  c.shared_source = !c.packed_source && chance(5);
  c.shared_target = !c.packed_target && chance(5);
  c.unsorted = chance(4);
  c.clustered = chance(5);
  if (chance(3)) c.pitch = pick(1, 2, 8, 16);
  if (chance(3)) c.apart = pick(1, 2, 3);
  if (chance(8)) c.channel_step = 2;
  if (chance(8)) c.time_step = 3;
  if (chance(3)) c.shift = pick(1, 2, 3, 4);
  if (chance(3)) {  // several groups
    std::int64_t first = 0;
    while (first < c.channels) {
      const bool quaternion = c.channels - first >= 4 && chance(3);
      const std::int64_t count =
          quaternion ? 4 : 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(c.channels - first));
      c.groups.push_back({first, count,
                          quaternion ? Interpolation::slerp
                                     : pick(Interpolation::linear, Interpolation::previous, Interpolation::next,
                                            Interpolation::nearest, Interpolation::cubic)});
      first += count;
    }
  } else {
    c.groups = one_group(c.channels, pick(Interpolation::linear, Interpolation::linear, Interpolation::previous,
                                          Interpolation::next, Interpolation::nearest, Interpolation::cubic));
  }
  return c;
}

}  // namespace tmaops::test
