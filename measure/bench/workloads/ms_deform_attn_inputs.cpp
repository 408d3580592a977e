#include <array>
#include <cmath>
#include <vector>

#include "bench/workloads/element.hpp"
#include "bench/workloads/ms_deform_attn_cases.hpp"
#include "bench/workloads/random.hpp"
#include "core/parallel.hpp"

namespace tmaops::bench {
namespace {

/// The gradient to a location, and with nearest sampling the output, has a step at every pixel centre. Locations nearer
/// to one than this (in pixels) are moved away, or rounding would decide which side of the step a variant takes.
constexpr double kStepMargin = 1e-2;

}  // namespace

void fill_locations(const MsDeformAttnCase& c, const TensorView& locations, const TensorView& reference_points,
                    std::uint64_t seed) {
  const auto levels = static_cast<std::int64_t>(c.levels.size());
  std::vector<std::size_t> level_of;  // of the points of a head
  for (std::size_t l = 0; l < c.levels.size(); ++l)
    level_of.insert(level_of.end(), static_cast<std::size_t>(c.level_points.empty() ? c.points : c.level_points[l]), l);
  const std::int64_t points = c.row_points();
  // Raster order over the levels: pixel i of S is query i; a case with other queries starts over.
  std::vector<std::array<double, 2>> centres;
  for (const LevelShape& level : c.levels)
    for (std::int64_t y = 0; y < level.height; ++y)
      for (std::int64_t x = 0; x < level.width; ++x)
        centres.push_back({(static_cast<double>(x) + 0.5) / static_cast<double>(level.width),
                           (static_cast<double>(y) + 0.5) / static_cast<double>(level.height)});

  parallel_for(c.batch * c.queries, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      Random random(seed, static_cast<std::uint64_t>(row) + 1);
      const auto pixel = static_cast<std::size_t>(row % c.queries) % centres.size();
      const std::array<double, 2> centre =
          c.raster_queries ? centres[pixel] : std::array<double, 2>{random.uniform(), random.uniform()};
      const int components = c.fused.reference_components;
      std::array<double, 4> box{};  // the reference point of all levels, or the box
      for (int i = 0; i < components; ++i) {
        const double wanted = i < 2 ? centre[static_cast<std::size_t>(i)] : random.uniform(0.05, 0.6);
        for (std::int64_t l = 0; l < levels; ++l) {
          const std::int64_t index = (row * levels + l) * components + i;
          store(reference_points.dtype, reference_points.data, index, wanted);
          box[static_cast<std::size_t>(i)] = load(reference_points.dtype, reference_points.data, index);
        }
      }
      std::int64_t at = row * c.heads * points * 2;
      for (std::int64_t sample = 0; sample < c.heads * points; ++sample) {
        const std::size_t l = level_of[static_cast<std::size_t>(sample % points)];
        const LevelShape& level = c.levels[l];
        const double level_points = static_cast<double>(c.level_points.empty() ? c.points : c.level_points[l]);
        for (std::size_t axis = 0; axis < 2; ++axis, ++at) {
          const auto extent = static_cast<double>(axis == 0 ? level.width : level.height);
          // What is stored is (location - origin) / unit: an offset where there are reference points.
          const double origin = components == 0 ? 0 : box[axis];
          const double unit = components == 0   ? 1
                              : components == 2 ? 1 / extent
                                                : box[axis + 2] * c.fused.offset_scale / level_points;
          for (int attempt = 0; attempt < 8; ++attempt) {
            const double offset = random.normal() * random.uniform(2, 4) / extent;
            const double location = c.locations == Locations::uniform ? random.uniform() : centre[axis] + offset;
            store(locations.dtype, locations.data, at, (location - origin) / unit);
            if (!c.backward && c.sampling == Sampling::bilinear) break;
            const double pixels = (origin + load(locations.dtype, locations.data, at) * unit) * extent - 0.5;
            if (std::abs(pixels - std::round(pixels)) > kStepMargin) break;
          }
        }
      }
    }
  });
}

void fill_padding_mask(const MsDeformAttnCase& c, const TensorView& mask, std::uint64_t seed) {
  auto* to = static_cast<std::uint8_t*>(mask.data);
  const std::int64_t border = c.fused.border ? 1 : 0;
  for (std::int64_t n = 0; n < c.batch; ++n) {
    Random random(seed, static_cast<std::uint64_t>(n) + 1);
    const double right = random.uniform(0.7, 1);
    const double bottom = random.uniform(0.7, 1);
    for (const LevelShape& level : c.levels)
      for (std::int64_t y = -border; y < level.height + border; ++y)
        for (std::int64_t x = -border; x < level.width + border; ++x)
          *to++ = static_cast<double>(x) >= right * static_cast<double>(level.width) ||
                  static_cast<double>(y) >= bottom * static_cast<double>(level.height);
  }
}

void fill_attention_weights(const MsDeformAttnCase& c, const TensorView& weights, std::uint64_t seed) {
  const std::int64_t group = c.row_points();
  parallel_for(c.batch * c.queries * c.heads, 64, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> numbers(static_cast<std::size_t>(group));
    for (std::int64_t row = begin; row < end; ++row) {
      Random random(seed, static_cast<std::uint64_t>(row) + 1);
      double sum = 0;
      for (double& number : numbers) sum += number = std::exp(random.normal());
      for (std::int64_t i = 0; i < group; ++i) {
        const double number = numbers[static_cast<std::size_t>(i)];
        store(weights.dtype, weights.data, row * group + i, c.fused.softmax ? std::log(number) : number / sum);
      }
    }
  });
}

}  // namespace tmaops::bench
