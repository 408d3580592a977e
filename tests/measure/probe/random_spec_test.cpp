// The rules against a second, deliberately naive reading of cuda.h, on random specifications near every edge.
#include "probe/random_spec.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tma/driver.hpp"
#include "tma/rules.hpp"

namespace tmaops::tma {
namespace {

using probe::RandomSpecs;

bool is_one_of(ElementType type, std::initializer_list<ElementType> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// cuda.h from top to bottom, one `if` per sentence, without any message; true when the map is legal.
bool naive_is_legal(const TensorMapSpec& s, int compute_capability) {
  const bool im2col = s.mode == Mode::im2col;
  const std::size_t rank = s.dims.size();
  const bool align16 = is_one_of(s.dtype, {ElementType::u4x16_align16, ElementType::u6x16_align16});
  if (rank == 0 || rank > 5) return false;
  if ((im2col || s.interleave != Interleave::none) && rank < 3) return false;
  if (compute_capability < 100 && (static_cast<int>(s.dtype) >= 13 || static_cast<int>(s.swizzle) >= 4)) return false;
  if (s.address & 15U) return false;
  if ((s.interleave == Interleave::b32 || align16) && (s.address & 31U)) return false;
  if (s.address >> 57U) return false;
  for (const std::int64_t dim : s.dims)
    if (dim == 0 || dim > 4294967296) return false;
  if (align16 && s.dims[0] % 128) return false;
  if (s.dtype == ElementType::u4x16_align8 && s.dims[0] % 2) return false;
  for (const std::int64_t stride : s.strides) {
    if (stride % 16 || stride >= 1099511627776) return false;
    if ((s.interleave == Interleave::b32 || align16) && stride % 32) return false;
  }
  for (const std::int64_t step : s.element_strides)
    if (step < 1 || step > 8) return false;
  if (s.interleave == Interleave::b32 && s.swizzle != Swizzle::b32) return false;
  if (s.dtype == ElementType::u6x16_align16) {
    if (s.interleave != Interleave::none) return false;
    if (s.swizzle == Swizzle::b32 || s.swizzle == Swizzle::b64 || s.swizzle == Swizzle::b128_atom32_flip8) return false;
  }
  if (s.dtype == ElementType::u4x16_align16) {
    if (s.swizzle != Swizzle::none && s.swizzle != Swizzle::b128 && s.swizzle != Swizzle::b128_atom32) return false;
  }
  const bool floating = static_cast<int>(s.dtype) >= 6 && static_cast<int>(s.dtype) <= 12;
  if (s.fill == Fill::nan && !floating) return false;

  constexpr int bits_of_type[16] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
  const std::int64_t bits = bits_of_type[static_cast<int>(s.dtype)];
  const std::int64_t inner = im2col ? s.channels_per_pixel : s.box[0];
  if (inner < 1 || inner > 256) return false;
  if (align16 && inner != 128) return false;
  if (inner * bits % (16 * 8)) return false;
  const std::int64_t inner_bytes = align16 ? inner / 16 * 16 : inner * bits / 8;
  constexpr std::int64_t widths[7] = {1 << 20, 32, 64, 128, 128, 128, 128};
  if (s.interleave == Interleave::none && inner_bytes > widths[static_cast<int>(s.swizzle)]) return false;
  if (im2col) {
    constexpr std::int64_t low[3] = {-32768, -128, -16};
    for (std::size_t i = 0; i < rank - 2; ++i) {
      for (const std::int64_t corner : {s.lower_corner[i], s.upper_corner[i]})
        if (corner < low[rank - 3] || corner > -low[rank - 3] - 1) return false;
      std::int64_t pixels = s.dims[s.interleave == Interleave::none ? i + 1 : i];
      if (pixels >= 2147483648) pixels -= 4294967296;
      if (pixels - s.lower_corner[i] + s.upper_corner[i] <= 0) return false;
    }
    if (s.pixels_per_column < 1 || s.pixels_per_column > 1024) return false;
    return inner_bytes * s.pixels_per_column <= 228 * 1024;
  }
  double bytes = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    if (s.box[i] < 1 || s.box[i] > 256) return false;
    std::int64_t count = 0;  // elements 0, step, 2 step, ... of the box
    // Without interleave the hardware loads every element of dimension 0.
    const std::int64_t step = i == 0 && s.interleave == Interleave::none ? 1 : s.element_strides[i];
    for (std::int64_t at = 0; at < s.box[i]; at += step) ++count;
    if (i == 0 && align16) count = (count + 15) / 16 * 16;  // whole groups of 16 values, 16 bytes each
    bytes *= static_cast<double>(count);
  }
  bytes *= align16 ? 1.0 : static_cast<double>(bits) / 8;
  return bytes <= 228 * 1024;
}

TEST(RandomSpecs, ordinary_ones_are_legal) {
  for (const bool blackwell : {false, true}) {
    RandomSpecs random({.seed = 3, .blackwell = blackwell});
    int too_large = 0;
    for (int i = 0; i < 20000; ++i) {
      const TensorMapSpec spec = random.ordinary();
      for (const Finding& finding : check(spec, blackwell ? 100 : 90).errors) {
        ASSERT_EQ(finding.rule->id, "tile_bytes") << spec.text() << "\n" << finding.text;
        ++too_large;
      }
    }
    EXPECT_LT(too_large, 4000);
  }
}

TEST(RandomSpecs, the_rules_agree_with_a_naive_reading_of_the_header) {
  for (const bool blackwell : {false, true}) {
    const int compute_capability = blackwell ? 100 : 90;
    RandomSpecs random({.seed = 2024, .blackwell = blackwell});
    int legal = 0;
    constexpr int count = 100000;
    for (int i = 0; i < count; ++i) {
      const TensorMapSpec spec = random.near_edge();
      ASSERT_TRUE(fits_driver(spec)) << spec.text();
      const bool wanted = naive_is_legal(spec, compute_capability);
      const Findings found = find_violations(spec, compute_capability);
      std::string texts;
      for (const Finding& finding : found.all()) texts += finding.text + "\n";
      ASSERT_EQ(!found.has_errors(), wanted) << spec.text() << "\n" << texts;
      legal += wanted ? 1 : 0;
    }
    EXPECT_GT(legal, count / 3);
    EXPECT_LT(legal, count * 2 / 3);
  }
}

TEST(RandomSpecs, every_map_rule_is_broken_by_some) {
  RandomSpecs random({.seed = 5, .blackwell = true});
  std::vector<int> broken(rules().size());
  for (int i = 0; i < 100000; ++i) {
    const Findings found = find_violations(random.near_edge(), 90);
    for (const Finding& finding : found.all()) ++broken[static_cast<std::size_t>(finding.rule - rules().data())];
  }
  for (std::size_t i = 0; i < rules().size(); ++i) {
    const std::string_view id = rules()[i].id;
    // Lists are always of the right length, ranks 1 to 5 (3 to 5 for im2col), addresses those of real memory.
    if (rules()[i].scope == Scope::load || id == "list_lengths" || id == "rank" || id == "rank_im2col" ||
        id == "address_range")
      continue;
    EXPECT_GT(broken[i], 0) << id;
  }
}

TEST(RandomSpecs, the_same_seed_gives_the_same_sequence) {
  RandomSpecs a({.seed = 42});
  RandomSpecs b({.seed = 42});
  RandomSpecs c({.seed = 43});
  bool different = false;
  for (int i = 0; i < 100; ++i) {
    const TensorMapSpec spec = a.near_edge();
    EXPECT_EQ(spec, b.near_edge());
    different = different || spec != c.near_edge();
  }
  EXPECT_TRUE(different);
}

}  // namespace
}  // namespace tmaops::tma
