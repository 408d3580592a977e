// The host model of a load: what was read back from an H200, and a naive simulation.
#include "tma/tile.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "probe/random_spec.hpp"
#include "support/expect_error.hpp"

namespace tmaops::tma {
namespace {

using tmaops::test::expect_error;

constexpr std::uint16_t kUnwritten = 0xCCCC;

/// 16-bit words 0, 1, 2, ... as a tensor.
std::vector<std::byte> counting(std::size_t words) {
  std::vector<std::byte> bytes(words * 2);
  for (std::size_t i = 0; i < words; ++i) {
    const auto value = static_cast<std::uint16_t>(i);
    std::memcpy(&bytes[2 * i], &value, 2);
  }
  return bytes;
}

/// The first 16-bit word of every 16 bytes of shared memory after a load of a counting tensor.
std::vector<std::uint16_t> granules(const TensorMapSpec& spec, const TileLoad& load) {
  const std::vector<std::byte> tensor = counting(64 * 64);
  std::vector<std::byte> shared(static_cast<std::size_t>(tile_layout(spec).footprint), std::byte{0xCC});
  load_tile(spec, load, tensor, shared);
  std::vector<std::uint16_t> words;
  for (std::size_t i = 0; i < shared.size(); i += 16) {
    std::uint16_t word = 0;
    std::memcpy(&word, &shared[i], 2);
    words.push_back(word);
  }
  return words;
}

TensorMapSpec map64(std::vector<std::int64_t> box, Swizzle swizzle = Swizzle::none) {
  TensorMapSpec spec = tiled_spec(ElementType::u16, {64, 64}, std::move(box));
  spec.swizzle = swizzle;
  return spec;
}

using Words = std::vector<std::uint16_t>;
constexpr std::uint16_t U = kUnwritten;

TEST(TileLoad, a_dense_tile_lies_row_after_row) {
  EXPECT_EQ(granules(map64({16, 4}), {{0, 0}, 0}), (Words{0, 8, 0x40, 0x48, 0x80, 0x88, 0xC0, 0xC8}));
  EXPECT_EQ(tile_layout(map64({16, 4})).transaction_bytes, 128);
}

TEST(TileLoad, swizzle128_matches_the_hardware) {
  const Words got = granules(map64({64, 16}, Swizzle::b128), {{0, 0}, 0});
  EXPECT_EQ(Words(got.begin(), got.begin() + 24),
            (Words{0x00, 0x08, 0x10, 0x18, 0x20, 0x28, 0x30, 0x38, 0x48, 0x40, 0x58, 0x50,
                   0x68, 0x60, 0x78, 0x70, 0x90, 0x98, 0x80, 0x88, 0xB0, 0xB8, 0xA0, 0xA8}));
}

TEST(TileLoad, a_narrow_row_still_takes_the_whole_span) {
  EXPECT_EQ(granules(map64({16, 3}, Swizzle::b128), {{0, 0}, 0}),
            (Words{0x00, 0x08, U, U, U, U, U, U, 0x48, 0x40, U, U, U, U, U, U, U, U, 0x80, 0x88, U, U, U, U}));
  EXPECT_EQ(granules(map64({8, 3}, Swizzle::b32), {{0, 0}, 0}), (Words{0x00, U, 0x40, U, 0x80, U, U, U}));
  // The barrier counts the data, not the gaps.
  EXPECT_EQ(transaction_bytes(map64({16, 16}, Swizzle::b128)), 512);
  EXPECT_EQ(tile_layout(map64({16, 16}, Swizzle::b128)).footprint, 2048);
}

TEST(TileLoad, the_phase_of_the_swizzle_comes_from_the_absolute_address) {
  EXPECT_EQ(
      granules(map64({16, 5}, Swizzle::b64), {{0, 0}, 128}),
      (Words{0x08, 0x00, U, U, 0x48, 0x40, U, U, U, U, 0x80, 0x88, U, U, 0xC0, 0xC8, U, U, 0x108, 0x100, U, U, U, U}));
  EXPECT_EQ(granules(map64({16, 4}, Swizzle::b32), {{0, 0}, 384}),
            (Words{0x08, 0x00, 0x48, 0x40, 0x88, 0x80, 0xC8, 0xC0}));
  EXPECT_EQ(granules(map64({16, 4}, Swizzle::b32), {{0, 0}, 256}),
            (Words{0x00, 0x08, 0x40, 0x48, 0x80, 0x88, 0xC0, 0xC8}));
}

TEST(TileLoad, what_lies_outside_is_fill_and_still_counted) {
  EXPECT_EQ(granules(map64({16, 4}), {{-8, -1}, 0}), (Words{0, 0, 0, 0x00, 0, 0x40, 0, 0x80}));
  EXPECT_EQ(granules(map64({16, 4}), {{56, 62}, 0}), (Words{0xFB8, 0, 0xFF8, 0, 0, 0, 0, 0}));
  EXPECT_EQ(granules(map64({16, 4}), {{1000, -1000}, 0}), Words(8, 0));
}

TEST(TileLoad, rank_three_wraps_into_fill_in_the_middle) {
  TensorMapSpec spec = tiled_spec(ElementType::u16, {16, 3, 64}, {16, 3, 2});
  EXPECT_EQ(granules(spec, {{0, -1, 0}, 0}), (Words{0, 0, 0, 8, 0x10, 0x18, 0, 0, 0x30, 0x38, 0x40, 0x48, U, U, U, U}));
}

TEST(TileLoad, element_strides_skip_rows_and_shorten_the_tile) {
  TensorMapSpec spec = map64({16, 4});
  spec.element_strides = {1, 2};
  EXPECT_EQ(granules(spec, {{0, 1}, 0}), (Words{0x40, 0x48, 0xC0, 0xC8, U, U, U, U}));
  EXPECT_EQ(transaction_bytes(spec), 64);
  spec.element_strides = {2, 3};  // the innermost has no effect
  EXPECT_EQ(granules(spec, {{0, -1}, 0}), (Words{0, 0, 0x80, 0x88, U, U, U, U}));
  spec.element_strides = {1, 8};
  EXPECT_EQ(granules(spec, {{0, 5}, 0}), (Words{0x140, 0x148, U, U, U, U, U, U}));
}

TEST(TileLoad, zero_and_overlapping_strides_repeat_rows) {
  TensorMapSpec spec = map64({16, 3});
  spec.strides = {0};
  EXPECT_EQ(granules(spec, {{0, 0}, 0}), (Words{0, 8, 0, 8, 0, 8, U, U}));
  spec.strides = {16};
  EXPECT_EQ(granules(spec, {{0, 0}, 0}), (Words{0, 8, 8, 0x10, 0x10, 0x18, U, U}));
}

TEST(TileLoad, nan_fill_is_the_same16_bits_in_every_type) {
  for (const ElementType type :
       {ElementType::f16, ElementType::bf16, ElementType::f32, ElementType::f64, ElementType::tf32}) {
    TensorMapSpec spec = tiled_spec(type, {64, 4}, {16, 1});
    spec.fill = Fill::nan;
    const std::size_t row = static_cast<std::size_t>(16 * bits_of(type) / 8);
    const std::vector<std::byte> tensor(64 * 4 * 8);
    std::vector<std::byte> shared(static_cast<std::size_t>(tile_layout(spec).footprint), std::byte{0xCC});
    load_tile(spec, {{56, 0}, 0}, tensor, shared);
    for (std::size_t i = 0; i < row; ++i) {
      const std::byte wanted =
          i < row / 2 ? std::byte{0} : std::byte{i % 2 == 0 ? std::uint8_t{0xF7} : std::uint8_t{0x7F}};
      ASSERT_EQ(shared[i], wanted) << to_string(type) << " byte " << i;
    }
  }
}

TEST(TileLoad, tf32_is_rounded_to_nearest_even_and_nothing_else_is_changed) {
  EXPECT_EQ(converted(ElementType::tf32, 0x3f801fff), 0x3f802000U);
  EXPECT_EQ(converted(ElementType::tf32, 0x3f801000), 0x3f800000U);
  EXPECT_EQ(converted(ElementType::tf32, 0x3f803000), 0x3f804000U);
  EXPECT_EQ(converted(ElementType::tf32_ftz, 0x007fffff), 0x00800000U);
  EXPECT_EQ(converted(ElementType::tf32_ftz, 0x80012345), 0x80012000U);
  EXPECT_EQ(converted(ElementType::tf32, 0x7f812345), 0x7fffe000U);
  EXPECT_EQ(converted(ElementType::tf32, 0xff800000), 0xff800000U);
  EXPECT_EQ(converted(ElementType::f32_ftz, 0x00000001), 0x00000001U);
  EXPECT_EQ(converted(ElementType::f32, 0x3f801fff), 0x3f801fffU);
}

/// One byte at a time, straight from the definition; independent of TileLayout.
std::vector<std::byte> naive(const TensorMapSpec& spec, const TileLoad& load, const std::vector<std::byte>& tensor,
                             std::size_t size) {
  std::vector<std::byte> shared(size, std::byte{0xCC});
  const std::int64_t bytes = bits_of(spec.dtype) / 8;
  std::array<std::int64_t, 5> j{};
  std::int64_t row = 0;
  while (true) {
    for (std::int64_t x = 0; x < spec.box[0]; ++x) {
      bool inside = load.coordinates[0] + x >= 0 && load.coordinates[0] + x < spec.dims[0];
      std::int64_t from = (load.coordinates[0] + x) * bytes;
      for (std::size_t d = 1; d < spec.dims.size(); ++d) {
        const std::int64_t at = load.coordinates[d] + j[d];
        inside = inside && at >= 0 && at < spec.dims[d];
        from += at * spec.strides[d - 1];
      }
      for (std::int64_t b = 0; b < bytes; ++b) {
        const std::int64_t width = spec.swizzle == Swizzle::none  ? spec.box[0] * bytes
                                   : spec.swizzle == Swizzle::b32 ? 32
                                   : spec.swizzle == Swizzle::b64 ? 64
                                                                  : 128;
        const std::int64_t address = load.shared_address + row * width + x * bytes + b;
        const std::int64_t line = address / 128;
        const std::int64_t mask = spec.swizzle == Swizzle::none ? 0 : width / 16 - 1;
        const std::int64_t place = line * 128 + ((address % 128 / 16) ^ (line & mask)) * 16 + address % 16;
        const std::byte fill =
            spec.fill == Fill::zero ? std::byte{0} : std::byte{b % 2 == 0 ? std::uint8_t{0xF7} : std::uint8_t{0x7F}};
        shared[static_cast<std::size_t>(place - load.shared_address)] =
            inside ? tensor[static_cast<std::size_t>(from + b)] : fill;
      }
    }
    ++row;
    std::size_t d = 1;
    for (; d < spec.dims.size(); ++d) {
      j[d] += spec.element_strides[d];
      if (j[d] < spec.box[d]) break;
      j[d] = 0;
    }
    if (d >= spec.dims.size()) return shared;
  }
}

TEST(TileLoad, agrees_with_a_naive_simulation_on_random_loads) {
  probe::RandomSpecs random({.seed = 77});
  std::vector<std::byte> tensor(1 << 20);
  for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<std::byte>(i * 2654435761U >> 13);
  int tried = 0;
  while (tried < 400) {
    TensorMapSpec spec = random.ordinary();
    if (spec.mode != Mode::tiled || spec.interleave != Interleave::none || !check(spec).valid()) continue;
    if (spec.dtype == ElementType::tf32 || spec.dtype == ElementType::tf32_ftz) continue;
    std::int64_t last = bits_of(spec.dtype) / 8;
    for (std::size_t d = 0; d < spec.dims.size(); ++d)
      last += (spec.dims[d] - 1) * (d == 0 ? bits_of(spec.dtype) / 8 : spec.strides[d - 1]);
    const TileLayout layout = tile_layout(spec);
    if (last > static_cast<std::int64_t>(tensor.size()) || layout.footprint > 65536) continue;
    ++tried;
    TileLoad load;
    for (std::size_t d = 0; d < spec.dims.size(); ++d) {
      const std::int64_t reach = spec.dims[d] + 2 * spec.box[d];
      std::int64_t at = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(reach))) - spec.box[d];
      if (d == 0) at = at / (128 / bits_of(spec.dtype)) * (128 / bits_of(spec.dtype));
      load.coordinates.push_back(at);
    }
    load.shared_address = static_cast<std::uint32_t>(128 * random.below(16));
    std::vector<std::byte> shared(static_cast<std::size_t>(layout.footprint), std::byte{0xCC});
    load_tile(spec, load, tensor, shared);
    ASSERT_EQ(shared, naive(spec, load, tensor, shared.size())) << spec.text();
  }
}

TEST(TileLoad, refuses_what_it_cannot_know_and_what_would_fault) {
  std::vector<std::byte> shared(4096);
  const std::vector<std::byte> tensor = counting(64 * 64);
  TensorMapSpec spec = map64({16, 4});
  expect_error(
      ErrorCode::bad_tile_load, [&] { load_tile(spec, {{1, 0}, 0}, tensor, shared); }, "2 B, not a multiple of 16 B");
  expect_error(ErrorCode::bad_tile_load, [&] { load_tile(spec, {{0, 0}, 64}, tensor, shared); }, "0x40");
  expect_error(ErrorCode::bad_tile_load, [&] { load_tile(spec, {{0}, 0}, tensor, shared); }, "1 coordinates, rank 2");
  expect_error(
      ErrorCode::shape_mismatch, [&] { load_tile(spec, {{0, 0}, 0}, std::span(tensor).first(100), shared); }, "global");
  expect_error(
      ErrorCode::shape_mismatch, [&] { load_tile(spec, {{0, 0}, 0}, tensor, std::span(shared).first(64)); }, "shared");
  expect_error(ErrorCode::bad_tensor_map, [&] { tile_layout(map64({3, 4})); }, "3 x 2 B = 6 B");
  spec.interleave = Interleave::b16;
  spec = tiled_spec(ElementType::u16, {64, 64, 2}, {8, 4, 1});
  spec.interleave = Interleave::b16;
  expect_error(ErrorCode::tile_not_modelled, [&] { tile_layout(spec); }, "interleave 16B");
  expect_error(
      ErrorCode::tile_not_modelled, [&] { tile_layout(tiled_spec(ElementType::u4x16_align8, {64}, {32})); },
      "u4x16_align8");
}

}  // namespace
}  // namespace tmaops::tma
